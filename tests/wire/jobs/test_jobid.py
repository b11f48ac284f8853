"""Job IDs, which nodes of the original take for their own."""

from __future__ import annotations

import json
from base64 import b64decode
from itertools import pairwise
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.job import valid_id
from disque_tx.wire.jobs.jobid import JobIdSource, ttl_field

_FILE = Path(__file__).parents[2] / "vectors" / "jobids.json"
#: A TTL of 2^32 - 1 s is one minute to the original, which loses its high bit; here it is as long
#: as the field can say.
TTL_OVERFLOW = 2**31
VECTORS = [case for case in json.loads(_FILE.read_bytes()) if case["ttl"] < TTL_OVERFLOW]
NODE = b"0123456789" * 4


def number_of(characters: bytes) -> int:
    """A number in base64 without padding."""
    bits = b64decode(b"AAA" + characters)
    return int.from_bytes(bits, "big")


class JobIdTests(SynchronousTestCase):
    """IDs must be valid on every node of a mixed cluster."""

    def test_form(self) -> None:
        """IDs have the form of the original's, so that its nodes and clients accept them."""
        for case in VECTORS:
            theirs = case["job_id"].encode()
            source = JobIdSource(case["seed"].encode())
            ours = source.next_id(case["node_id"].encode(), case["ttl"], case["retry"])
            self.assertRegex(ours[11:35], rb"\A[A-Za-z0-9+/]{24}\Z", case["name"])
            self.assertEqual(theirs[:11] + theirs[35:], ours[:11] + ours[35:], case["name"])
            self.assertTrue(valid_id(ours))

    def test_seed(self) -> None:
        """Two nodes that start with the same node ID make different IDs; one seed gives the same
        IDs again, which the simulator relies on."""
        one, same, other = (JobIdSource(seed * 40) for seed in (b"1", b"1", b"2"))
        made = [source.next_id(NODE, 60, 1) for source in (one, same, other) for _ in range(100)]
        self.assertEqual(made[:100], made[100:200])
        self.assertEqual(200, len(set(made)))

    def test_ttl_field(self) -> None:
        """The field holds minutes, at most 65535; it is odd if the job may be delivered again,
        which ACKJOB relies on for unknown IDs."""
        self.assertEqual(b"-0001", ttl_field(1, 1))
        self.assertEqual(b"-0000", ttl_field(119, 0))
        self.assertEqual(b"-05a1", ttl_field(86400, 300))
        self.assertEqual(b"-ffff", ttl_field(4_294_967_295, 1))
        self.assertEqual(b"-fffe", ttl_field(4_294_967_295, 0))

    def test_never_twice(self) -> None:
        """No ID repeats, even with more different times than there are cached suffixes."""
        source = JobIdSource(b"s" * 40)
        ids = {source.next_id(NODE, ttl_s, ttl_s % 2) for ttl_s in range(60, 3000)}
        self.assertEqual(2940, len(ids))
        self.assertEqual({40}, {len(job_id) for job_id in ids})

    def test_counting(self) -> None:
        """IDs count upwards in their first characters, from any number on, so that jobs made one
        after the other are neighbours in tables; the other 114 bits are random."""
        starts = set()
        for seed in range(20):
            source = JobIdSource(b"%040d" % seed)
            ids = [source.next_id(NODE, 60, 1) for _ in range(200)]
            counts = [number_of(job_id[11:16]) for job_id in ids]
            steps = [(after - before) % 2**30 for before, after in pairwise(counts)]
            self.assertEqual([1] * 199, steps)
            for at in range(16, 35):
                self.assertGreater(len({job_id[at] for job_id in ids}), 40)
            starts.add(counts[0] >> 26)
        self.assertGreater(len(starts), 7)

    def test_new_node_id(self) -> None:
        """After a hard reset new jobs contain the new node ID."""
        source = JobIdSource(b"s" * 40)
        source.next_id(NODE, 60, 1)
        self.assertEqual(b"D-ffffffff-", source.next_id(b"f" * 40, 60, 1)[:11])

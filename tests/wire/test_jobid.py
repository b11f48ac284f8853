"""Job IDs, identical to those that the original makes."""

from __future__ import annotations

import json
from hashlib import sha1
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.wire.jobid import JobIdSource, ttl_field, unique_parts

_FILE = Path(__file__).parent.parent / "vectors" / "jobids.json"
#: A TTL of 2^32 - 1 s is one minute to the original, which loses its high bit; here it is as long
#: as the field can say.
TTL_OVERFLOW = 2**31
VECTORS = [case for case in json.loads(_FILE.read_bytes()) if case["ttl"] < TTL_OVERFLOW]
NODE = b"0123456789" * 4


class JobIdTests(SynchronousTestCase):
    """IDs must be valid on every node of a mixed cluster."""

    def test_vectors(self) -> None:
        """The same seed, counter, node and times give the same ID as in the original."""
        for case in VECTORS:
            digest = sha1(case["seed"].encode() + case["counter"].to_bytes(8, "little")).digest()
            self.assertEqual(case["sha1_hex"], digest.hex(), case["name"])
            made = b"D-%s-%s" % (case["node_id"][:8].encode(), unique_parts([digest])[0])
            made += ttl_field(case["ttl"], case["retry"])
            self.assertEqual(case["job_id"].encode(), made, case["name"])

    def test_source_counts(self) -> None:
        """A source generates the IDs of its seed in order, whatever the jobs are."""
        by_seed: dict[str, list[dict[str, object]]] = {}
        for case in VECTORS:
            by_seed.setdefault(case["seed"], []).append(case)
        for seed, cases in by_seed.items():
            source = JobIdSource(seed.encode())
            made = 0
            for case in sorted(cases, key=lambda case: int(str(case["counter"]))):
                while made < int(str(case["counter"])):
                    made += 1
                    job_id = source.next_id(
                        str(case["node_id"]).encode(),
                        int(str(case["ttl"])),
                        int(str(case["retry"])),
                    )
                self.assertEqual(str(case["job_id"]).encode(), job_id)

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

    def test_new_node_id(self) -> None:
        """After a hard reset new jobs contain the new node ID."""
        source = JobIdSource(b"s" * 40)
        source.next_id(NODE, 60, 1)
        self.assertEqual(b"D-ffffffff-", source.next_id(b"f" * 40, 60, 1)[:11])

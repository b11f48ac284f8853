"""The files with the IDs of batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.addresses import Address
from disque_tx.spark.errors import JobsLost
from disque_tx.spark.source.batchlog import BatchLog
from disque_tx.spark.source.offsets import Offset

_START: dict[str, Any] = {"seq": 0}
_ids = st.integers(0, 1 << 60).map(lambda number: f"D-60776864-{number:024d}-05a1")
_nodes = st.builds(Address, st.sampled_from(("a", "127.0.0.1", "::1")), st.integers(1, 65535))
_offsets = st.builds(
    Offset, st.integers(1, 1 << 40), st.dictionaries(_nodes, st.lists(_ids, min_size=1).map(tuple))
)


def batch(seq: int, count: int = 1) -> Offset:
    """A batch of so many jobs."""
    ids = tuple(f"D-60776864-{number:024d}-05a1" for number in range(count))
    return Offset(seq, {Address("a", 1): ids})


class BatchLogTests(SynchronousTestCase):
    """One folder of a checkpoint."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp()).resolve()
        self.log = BatchLog(str(self.root))

    def files(self) -> int:
        """How many files there are."""
        return sum(path.is_file() for path in (self.root / "disque").rglob("*"))

    @given(_offsets)
    def test_round_trip(self, offset: Offset) -> None:
        """A batch is found again, after a restart as well, by what Spark stores as JSON."""
        root = self.mktemp()
        kept = json.loads(json.dumps(BatchLog(root).write(offset, _START)))
        self.assertEqual(offset, BatchLog(root).read(kept))

    def test_small(self) -> None:
        """An offset does not grow with its batch: Spark shows three of them in each progress."""
        kept = self.log.write(batch(7, 20_000), _START)
        self.assertLess(len(json.dumps(kept)), 300)
        self.assertEqual(20_000, kept["jobs"])

    def test_removed(self) -> None:
        """There are files of two batches only, however long a query runs; other queries of the
        same checkpoint keep theirs."""
        self.log.write(batch(1), _START)
        kept = _START
        for seq in range(1, 6):
            kept = self.log.write(batch(seq, seq), kept)
        self.assertEqual(3, self.files())
        self.assertEqual(batch(5, 5), BatchLog(str(self.root)).read(kept))

    def test_earlier_version(self) -> None:
        """A query that an earlier version began goes on: its offsets contain the IDs."""
        kept = {"seq": 3, "jobs": {"a:1": list(batch(3).jobs[Address("a", 1)])}}
        self.assertEqual(batch(3), self.log.read(kept))
        self.assertEqual(Offset(), self.log.read({"seq": 0, "jobs": {}}))

    def test_foreign(self) -> None:
        """A checkpoint of another source is refused, whatever it contains, and no file elsewhere is
        read for it."""
        foreign: list[Any] = [None, [], {}, {"seq": "1", "jobs": {}}, {"seq": -1, "jobs": {}}]
        foreign += [{"seq": 1, "jobs": {"a:1": ["x"]}}, {"seq": 1, "jobs": {"a:1": [1]}}]
        foreign += [{"seq": 1, "jobs": {"a:x": []}}, {"seq": True, "jobs": {}}]
        foreign += [{"seq": 1, "file": name, "sha256": ""} for name in (7, "a/b/c", "disque/../x")]
        for kept in foreign:
            with self.assertRaises(JobsLost) as raised:
                self.log.read(kept)
            self.assertIn("checkpointLocation", str(raised.exception))

    def test_lost_or_damaged(self) -> None:
        """Without its IDs a batch is not taken for an empty one."""
        kept = self.log.write(batch(1), _START)
        (self.root / kept["file"]).write_bytes(b"{}")
        with self.assertRaises(JobsLost) as raised:
            BatchLog(str(self.root)).read(kept)
        self.assertIn("damaged", str(raised.exception))
        with self.assertRaises(JobsLost) as raised:
            BatchLog(self.mktemp()).read(kept)
        self.assertIn("checkpointLocation", str(raised.exception))

    def test_committed(self) -> None:
        """A batch is committed when the last commit of the checkpoint is that of its offset."""
        kept = self.log.write(batch(1), _START)
        self.assertFalse(self.log.is_committed(kept))
        (self.root / "commits").mkdir()
        (self.root / "offsets").mkdir()
        (self.root / "offsets" / "10").write_text(f"v1\n{{}}\n{json.dumps(kept)}")
        (self.root / "commits" / "9").write_text("v1")
        (self.root / "offsets" / "9").write_text("v1")
        self.assertFalse(self.log.is_committed(kept))
        (self.root / "commits" / "10").write_text("v1")
        (self.root / "commits" / ".10.crc").write_text("")
        self.assertTrue(self.log.is_committed(kept))
        self.assertFalse(self.log.is_committed(_START))

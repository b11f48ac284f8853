"""Offsets: stored by Spark, parsed, and divided into tasks."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.addresses import Address
from disque_tx.spark.errors import JobsLost
from disque_tx.spark.source.offsets import Offset, from_json, shares

_ids = st.integers(0, 1 << 60).map(lambda number: f"D-60776864-{number:024d}-05a1")
_nodes = st.builds(Address, st.sampled_from(("a", "127.0.0.1", "::1")), st.integers(1, 65535))
_offsets = st.builds(
    Offset, st.integers(0, 1 << 40), st.dictionaries(_nodes, st.lists(_ids, min_size=1).map(tuple))
)


class OffsetTests(SynchronousTestCase):
    """The content of the checkpoint."""

    @given(_offsets)
    def test_round_trip(self, offset: Offset) -> None:
        """An offset that Spark stores as JSON is restored as the same batch."""
        self.assertEqual(offset, from_json(json.loads(json.dumps(offset.as_json()))))

    @given(_offsets, st.none() | st.integers(1, 50))
    def test_shares(self, offset: Offset, wanted: int | None) -> None:
        """Each job is in one task, with its node, and the number of tasks is the requested one, or
        slightly more."""
        cut = shares(offset, wanted)
        for node, ids in offset.jobs.items():
            found = [job_id for other, some in cut if other == node for job_id in some]
            self.assertEqual(list(ids), found)
        self.assertTrue(all(ids for _, ids in cut))
        least = min(wanted or 1, len(offset))
        self.assertTrue(least <= len(cut) <= least + len(offset.jobs), len(cut))

    def test_number_of_tasks(self) -> None:
        """Large batches are divided even without a requested number of tasks."""
        ids = tuple(f"D-60776864-{number:024d}-05a1" for number in range(9000))
        offset = Offset(1, {Address("a", 1): ids})
        self.assertEqual([2250] * 4, [len(some) for _, some in shares(offset, None)])
        self.assertEqual(9, len(shares(offset, 9)))

    def test_foreign(self) -> None:
        """A checkpoint of another source is refused, whatever it contains."""
        long_list = [f"D-60776864-{number:024d}-05a1" for number in range(10_001)]
        foreign: list[Any] = [None, [], {}, {"seq": 1}, {"seq": "1", "jobs": {}}]
        foreign += [{"seq": 1, "jobs": {"a:1": ["x"]}}, {"seq": 1, "jobs": {"a:1": [1]}}]
        foreign += [{"seq": 1, "jobs": {"a:x": []}}, {"seq": -1, "jobs": {}}]
        foreign += [{"seq": True, "jobs": {}}, {"seq": 1, "jobs": {"a:1": long_list}}]
        for kept in foreign:
            with self.assertRaises(JobsLost) as raised:
                from_json(kept)
            self.assertIn("checkpointLocation", str(raised.exception))

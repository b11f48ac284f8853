"""Offsets, divided into tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.addresses import Address
from disque_tx.spark.source.offsets import Offset, shares

_ids = st.integers(0, 1 << 60).map(lambda number: f"D-60776864-{number:024d}-05a1")
_nodes = st.builds(Address, st.sampled_from(("a", "127.0.0.1", "::1")), st.integers(1, 65535))
_offsets = st.builds(
    Offset, st.integers(0, 1 << 40), st.dictionaries(_nodes, st.lists(_ids, min_size=1).map(tuple))
)


class OffsetTests(SynchronousTestCase):
    """The tasks of a batch."""

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
        ids = tuple(f"D-60776864-{number:024d}-05a1" for number in range(90_000))
        offset = Offset(1, {Address("a", 1): ids})
        self.assertEqual([22_500] * 4, [len(some) for _, some in shares(offset, None)])
        self.assertEqual(9, len(shares(offset, 9)))

    def test_large_bodies(self) -> None:
        """A task gets no more bodies with its partition than fit into a message of Spark."""
        offset = Offset(1, {Address("a", 1): tuple(f"{number}" for number in range(100))})
        self.assertEqual(16, len(shares(offset, None, 128 << 20)))

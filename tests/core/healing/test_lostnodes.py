"""When a node counts as lost."""

from __future__ import annotations

from disque_tx.messages.nodes import FAIL
from tests.core.healing.healbench import AFTER_MS, HealCase


class LoadedTests(HealCase):
    """The nodes file says that a node fails, but not since when."""

    def test_from_the_start(self) -> None:
        """Its time begins when this node does: it may be about to return with its copies."""
        job_id = self.add_job(0)
        holder = self.other_holder(0, job_id)
        self.kill(holder)
        for here in set(range(self.nodes)) - {holder}:
            entry = self.flow.entry(here, holder)
            entry.flags |= FAIL
            entry.failed_ms = 0
        self.pass_ms(AFTER_MS - 3_000)
        self.assertEqual(([0], 0), (self.holders(job_id), sum(self.made())))
        self.pass_ms(8_000)
        self.assertEqual((2, 1), (len(self.holders(job_id)), sum(self.made())))

"""Nodes of which some leave, and give their jobs away before they stop."""

from __future__ import annotations

from tests.core.flowbench import Direction, Flow
from tests.core.healing.healbench import HealCase


class LeaveCase(HealCase):
    """Tests with nodes that evacuate."""

    nodes = 4
    originals: tuple[int, ...] = ()

    def setUp(self) -> None:
        super().setUp()
        if self.originals:
            self.flow = Flow(self.nodes, self.originals)

    def hold_back(self, sender: int, receiver: int, held: bool) -> None:
        """Lose what one node sends another from now on, or no more."""
        link = self.flow.entry(sender, receiver).link
        assert link is not None and isinstance(link.sink, Direction)
        link.sink.cut = held

    def evacuate(self, at: int) -> None:
        """CLUSTER LEAVING yes EVACUATE."""
        self.announce_leaving(at)
        self.flow.nodes[at].evacuation.begin()

    def left(self, at: int) -> int:
        """How many jobs a node still has to get rid of."""
        return int(self.flow.nodes[at].evacuation.left)

    def until_empty(self, at: int, limit_ms: int = 60_000) -> None:
        """Let time pass until a node is empty."""
        end_ms = self.flow.now_ms + limit_ms
        while self.left(at):
            self.assertLess(self.flow.now_ms, end_ms, self.flow.nodes[at].evacuation.obstacle)
            self.pass_ms(1_000)

    def fetch(self, at: int, queue: bytes = b"q") -> bytes:
        """GETJOB at one node; the ID of the job, which is in flight there."""
        client = self.client()
        self.flow.nodes[at].get_jobs(client, [queue], 1, 0, True, False)
        self.flow.settle()
        ((job,),) = self.replies(client)  # type: ignore[misc]
        return bytes(job[1])  # type: ignore[index, arg-type]

    def stopped_for_good(self, at: int) -> None:
        """A node that is empty is stopped, and all it has is deleted."""
        self.assertEqual(0, self.left(at))
        self.kill(at)

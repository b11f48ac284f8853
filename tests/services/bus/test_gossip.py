"""The heartbeat of the cluster."""

from __future__ import annotations

from typing import Any

from disque_tx.services.bus.gossip import GossipService
from tests.services.nodebench import NodeCase


class Beats:
    """A node whose cluster part notes when it is asked. ``fault``: raised by the next beat."""

    def __init__(self, node: Any) -> None:
        self._node = node
        self.cluster = self
        self.times_ms: list[int] = []
        self.fault: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    def tick(self, now_ms: int) -> None:
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        self.times_ms.append(now_ms)


class GossipTests(NodeCase):
    """When it beats."""

    def setUp(self) -> None:
        super().setUp()
        self.beats = Beats(self.node)
        self.runtime.node = self.beats  # type: ignore[assignment]
        self.service = GossipService(self.runtime, self.log, self.reactor)
        self.service.startService()
        self.start_ms = self.beats.times_ms[0]

    def test_pace(self) -> None:
        """Ten times a second, on the steady clock, from the start on until the end."""
        self.reactor.pump([0.1] * 3)
        self.service.stopService()
        self.reactor.pump([0.1] * 3)
        self.assertEqual(
            [0, 100, 200, 300], [now_ms - self.start_ms for now_ms in self.beats.times_ms]
        )
        self.assertEqual([], self.reactor.getDelayedCalls())

    def test_in_a_turn(self) -> None:
        """What a beat leads to leaves with its turn."""
        commits = self.commits.commits
        self.reactor.advance(0.1)
        self.assertEqual(commits + 1, self.commits.commits)
        self.assertFalse(self.runtime.turns.active)
        self.service.stopService()

    def test_fault(self) -> None:
        """A fault is told, and the next beat comes nevertheless."""
        self.beats.fault = ZeroDivisionError("beat")
        self.reactor.pump([0.1] * 2)
        self.assertIn("beat", self.logged())
        self.assertEqual(2, len(self.beats.times_ms))
        self.service.stopService()

"""Memory that is full."""

from __future__ import annotations

from disque_tx.messages.bus import QueueSignal
from disque_tx.messages.bustypes import NEEDJOBS, PAUSE
from disque_tx.sim.checkers.queues.memory import FullAsksForNothing, ReturnsTaken
from tests.sim.checkers.bench import CheckerCase


class MemoryTests(CheckerCase):
    """What a node above 95 % of maxmemory may do."""

    def test_asks(self) -> None:
        """A node that asks for jobs above 95 % breaks the promise, below it does not; nor does
        another message."""
        checker = FullAsksForNothing()
        checker.watch(self.run_)
        machine = self.run_.machines[0]
        machine.start()
        process = machine.process
        assert process is not None
        memory = process.node.memory
        memory.limit = 1_000_000
        for used, kind, breaches in (
            (940_000, NEEDJOBS, 0),
            (960_000, PAUSE, 0),
            (960_000, NEEDJOBS, 1),
        ):
            memory.used = used
            for look in machine.on_send:
                look(process, QueueSignal(kind, b"q", 1))
            self.assertEqual(breaches, self.found(checker), (used, kind))

    def test_refused(self) -> None:
        """A NACK that is refused for memory breaks the promise, one for another reason does not."""
        self.request(b"NACK", 1)
        self.history.job_requests[0].refused = "LOADING Disque is loading the dataset in memory"
        self.assertEqual(0, self.found(ReturnsTaken()))
        self.history.job_requests[0].refused = "OOM command not allowed"
        self.assertEqual(1, self.found(ReturnsTaken()))

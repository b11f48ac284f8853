"""What becomes of the processes of a worker between two jobs."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.worker.running.processes import _FunctionProcess


class FunctionProcessTests(SynchronousTestCase):
    """A process that does one job after the other."""

    def setUp(self) -> None:
        self.idle: list[_FunctionProcess] = []
        self.process = _FunctionProcess(None, self.idle.append)
        self.transport: Any = StringTransport()
        self.process.makeConnection(self.transport)

    def test_used_again(self) -> None:
        """After its answer the process is there for the next job: it is not started again for
        each."""
        answer = json.dumps({"error": None, "value": "aGk="}).encode() + b"\n"
        for number in (1, 2):
            done = self.process.ask(b"request")
            self.process.childDataReceived(1, answer[:5])
            self.assertNoResult(done)
            self.process.childDataReceived(1, answer[5:])
            self.assertEqual(b"hi", self.successResultOf(done))
            self.assertEqual(number * [self.process], self.idle)
        self.assertEqual(2 * b"request\n", self.transport.value())

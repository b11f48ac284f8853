"""Nodes with scripted replies for frameworks, and what these ask of them."""

from __future__ import annotations

from collections.abc import Callable

from disque_tx.client.blocking.servers import Servers
from disque_tx.integrations.leases import Leases
from tests.client.blocking.test_session import ADDED
from tests.client.scripted import JOB_ID, NO_ANSWER, ScriptedNode, ScriptedTestCase, array, job

ONE = b":1\r\n"
NOTHING = b"*-1\r\n"
#: Of threads of their own, in between.
_HEARTBEATS = b"WORKING"
__all__ = ["ADDED", "JOB_ID", "NOTHING", "NO_ANSWER", "ONE", "FrameworkCase", "array", "job"]


class RecordingLeases(Leases):
    """Leases that note what the node had been asked for when a job was withdrawn from them."""

    def __init__(self, connect: Callable[[], Servers], asked: Callable[[], list[str]]) -> None:
        super().__init__(connect)
        self.withdrawn: list[tuple[str, list[str]]] = []
        self._asked = asked

    def withdraw(self, job_id: str) -> None:
        """Withdraw it."""
        super().withdraw(job_id)
        self.withdrawn.append((job_id, self._asked()))


class FrameworkCase(ScriptedTestCase):
    """A node that does what it is asked, and has nothing to deliver unless a test says so."""

    def setUp(self) -> None:
        super().setUp()
        self.scripted: ScriptedNode = self.node(
            ADDJOB=ADDED,
            ACKJOB=ONE,
            NACK=ONE,
            WORKING=b":10\r\n",
            GETJOB=NOTHING,
            PING=b"+PONG\r\n",
        )

    def asked(self) -> list[list[str]]:
        """The words of the requests that change jobs, in the order in which the node got them."""
        return [
            [word.decode("utf-8", "backslashreplace") for word in words]
            for words in self.scripted.requests
            if words[0] not in (_HEARTBEATS, b"GETJOB", b"PING")
        ]

    def leases(self, connect: Callable[[], Servers]) -> RecordingLeases:
        """Leases that are stopped after the test."""
        leases = RecordingLeases(connect, self.commands)
        self.addCleanup(leases.stop)
        return leases

    def commands(self) -> list[str]:
        """The names of these requests."""
        return [words[0] for words in self.asked()]

    def deliver(self, *bodies: bytes) -> None:
        """Answer the next GETJOBs with these, one each."""
        self.scripted.answer("GETJOB", *(array(job(body=body)) for body in bodies), NOTHING)

    def counts(self) -> list[str]:
        """How many jobs each GETJOB asked for."""
        found = [words for words in self.scripted.requests if words[0] == b"GETJOB"]
        return [
            words[words.index(b"COUNT") + 1].decode() if b"COUNT" in words else "1"
            for words in found
        ]

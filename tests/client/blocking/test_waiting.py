"""Waiting for answers, and signals meanwhile."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from disque_tx.client.blocking.connection import NodeConnection
from disque_tx.client.blocking.servers import PipelinedConnection
from disque_tx.client.blocking.waiting import STEP_S, steps
from disque_tx.client.options import ConnectionOptions
from disque_tx.client.requests import replies
from disque_tx.client.requests.encoding import Request
from tests.client.scripted import NO_ANSWER, ScriptedNode, ScriptedTestCase
from tests.spark.nodes import address_of

_WAITING = Request(("GETJOB", "FROM", "q"), replies.integer, wait_s=None)
_GIVES_UP_S = 30
_CALLS_ASLEEP = 20


class _Signalled(Exception):
    """A signal has arrived."""


class WaitingTests(ScriptedTestCase):
    """The blocking clients' waits."""

    def test_steps(self) -> None:
        """The waits have the given length together."""
        self.assertEqual([0.0], list(steps(0.0)))
        self.assertEqual([STEP_S], list(steps(STEP_S)))
        self.assertEqual([STEP_S, STEP_S, 0.25], list(steps(2 * STEP_S + 0.25)))
        for_ever = steps(None)
        self.assertEqual([STEP_S] * 9, [next(for_ever) for _ in range(9)])

    def check_signal(self, node: ScriptedNode, wait: Callable[[], object]) -> None:
        """A signal that does not interrupt the wait, as another thread gets it, is handled before
        an answer comes."""
        handled, late = threading.Event(), threading.Event()
        waiter = Path(f"/proc/self/task/{threading.get_native_id()}/stat")

        def send() -> None:
            asleep = 0
            while asleep < _CALLS_ASLEEP:  # one that was about to fall asleep has run in between
                sleeps = waiter.read_text().rpartition(") ")[2].startswith("S")
                asleep = asleep + 1 if node.requests and sleeps else 0
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
            if not handled.wait(_GIVES_UP_S):
                late.set()
                node.hang_up()

        def arrived(number: int, frame: FrameType | None) -> None:
            handled.set()
            raise _Signalled

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, arrived))
        sender = threading.Thread(target=send)
        sender.start()
        self.addCleanup(sender.join)
        self.assertRaises(_Signalled, wait)
        self.assertFalse(late.is_set())

    def test_signal(self) -> None:
        """A signal ends the wait for jobs of the blocking client."""
        node = self.node(GETJOB=NO_ANSWER)
        connection = NodeConnection(address_of(node), ConnectionOptions())
        self.addCleanup(connection.close)
        self.check_signal(node, lambda: connection.call(_WAITING))

    def test_signal_pipelined(self) -> None:
        """A signal ends the wait for jobs of a pipelined connection."""
        node = self.node(GETJOB=NO_ANSWER)
        connection = PipelinedConnection(address_of(node), ConnectionOptions())
        self.addCleanup(connection.close)
        self.check_signal(node, lambda: connection.call(_WAITING))

"""``disque move``: which jobs may be added again, and its rate."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx import Disque
from disque_tx.cli.programs.client import main
from disque_tx.cli.verbs.jobs.batches import BatchFetcher
from disque_tx.cli.verbs.jobs.move import Move, Pace
from disque_tx.client import ClientError, OutcomeUnknown, Paused
from tests.cli.livenode import VerbCase
from tests.client.blocking.test_session import ADDED
from tests.client.scripted import (
    HANG_UP,
    JOB_ID,
    NODE_IDS,
    ScriptedNode,
    ScriptedTestCase,
    array,
    bulk,
    job,
)


class AtMostOnceTests(ScriptedTestCase):
    """The move of a job with RETRY 0, when the target fails."""

    def moved(self, retry_s: int, *answers: bytes) -> tuple[Move, ScriptedNode, ScriptedNode, Any]:
        """Move one job, with these replies of the target to ADDJOB; the last element is the
        exception."""
        source = self.node(
            SHOW=_shown(retry_s),
            GETJOB=[array(job()), b"*-1\r\n"],
            ACKJOB=b":1\r\n",
            ENQUEUE=b":1\r\n",
        )
        target = self.node(NODE_IDS[1], ADDJOB=list(answers))
        clients = [
            Disque(node.address, patience_s=0, discover=False, environment=self.environment)
            for node in (source, target)
        ]
        for client in clients:
            self.addCleanup(client.close)
        move = Move(clients[0], clients[1], "q2", None, Pace(None))
        error = None
        try:
            move.run(BatchFetcher(clients[0], "q", 0, 1), 1, lambda steps: None)
        except ClientError as raised:
            error = raised
        return move, source, target, error

    def test_reply_lost(self) -> None:
        """When the reply is lost, the job may have been added: it is neither added again nor
        returned, and its ID is reported."""
        move, source, target, error = self.moved(0, HANG_UP)
        self.assertIsInstance(error, OutcomeUnknown)
        self.assertEqual([JOB_ID], move.unknown)
        self.assertNotIn("ENQUEUE", source.commands())
        self.assertEqual(1, target.commands().count("ADDJOB"))

    def test_refused(self) -> None:
        """A refused job was certainly not added: it is offered to its node."""
        move, source, _, error = self.moved(0, b"-PAUSED no\r\n")
        self.assertIsInstance(error, Paused)
        self.assertEqual([], move.unknown)
        self.assertIn("ENQUEUE", source.commands())

    def test_at_least_once(self) -> None:
        """A job that may be delivered twice is added again, or returned to its queue."""
        move, source, _, error = self.moved(5, HANG_UP)
        self.assertIsNotNone(error)
        self.assertEqual([], move.unknown)
        self.assertIn("ENQUEUE", source.commands())

    def test_moved(self) -> None:
        """Successfully moved jobs are acknowledged and counted."""
        for retry_s in (0, 5):
            move, source, target, error = self.moved(retry_s, ADDED)
            self.assertEqual((None, 1), (error, move.done))
            self.assertIn("ACKJOB", source.commands())
            words = target.requests[0]
            self.assertEqual(b"%d" % retry_s, words[words.index(b"RETRY") + 1])

    def test_done_meanwhile(self) -> None:
        """Jobs that were acknowledged while they were being moved are skipped, and said to be."""
        for shown in (b"*-1\r\n", _shown(5, "acked")):
            source = self.node(SHOW=[shown, _shown(5)], GETJOB=[array(job(), job()), b"*-1\r\n"])
            for command, answer in (("ACKJOB", b":1\r\n"), ("ADDJOB", ADDED), ("QLEN", b":2\r\n")):
                source.answer(command, answer)
            error = io.StringIO()
            with redirect_stderr(error):
                status = main(["-p", str(source.port), "move", "q", "q2", "--timeout", "0"])
            said = "1 job moved\n1 job done or lost meanwhile, and skipped\n"
            self.assertEqual((0, said), (status, error.getvalue()))
            self.assertEqual(1, source.commands().count("ADDJOB"))


class AddressTests(VerbCase):
    """Where jobs are moved to."""

    def test_empty(self) -> None:
        """A variable of a script that is not set is an error, and does not stand for the cluster
        that the jobs were to leave."""
        self.add("q", "a")
        for words in (
            ("move", "q", "q2", "--to-address", "", "--timeout", "0"),
            ("dead", "--addresses", "", "list"),
        ):
            status, _, error = self.disque(*words)
            self.assertNotEqual(0, status, words)
            self.assertIn("'' is not the address of a node", error)
        self.assertEqual((1, 0), (self.length("q"), self.length("q2")))


class RefusedTests(VerbCase):
    """A move to a queue that takes nothing."""

    def test_named(self) -> None:
        """Jobs that nodes never take back are named, for they are in neither queue; the others are
        in the old one."""
        self.add("q", "lost", retry=0, replicate=1)
        self.add("q", "kept")
        self.call("PAUSE", "q2", "in")
        status, _, error = self.disque("move", "q", "q2", "--timeout", "0.1")
        self.assertEqual((1, 1, 0), (status, self.length("q"), self.length("q2")))
        (named,) = [line for line in error.splitlines() if "RETRY 0" in line]
        shown = self.client.show(named.split()[0])
        assert shown is not None
        self.assertEqual(b"lost", shown.body)


def _shown(retry_s: int, state: str = "active") -> bytes:
    """A reply to SHOW."""
    texts = {"id": JOB_ID, "queue": "q", "state": state, "body": "b"}
    numbers = {"repl": 1, "ttl": 9, "ctime": 1, "delay": 0, "retry": retry_s, "nacks": 0}
    numbers |= {"additional-deliveries": 0, "next-requeue-within": 0, "next-awake-within": 0}
    values = {name: bulk(value) for name, value in texts.items()}
    values |= {name: b":%d\r\n" % value for name, value in numbers.items()}
    values |= dict.fromkeys(("nodes-delivered", "nodes-confirmed"), array())
    return array(*[part for name, value in values.items() for part in (bulk(name), value)])


class PaceTests(SynchronousTestCase):
    """``Pace``."""

    def test_rate(self) -> None:
        """The rate includes the time of the work itself."""
        clock = Clock()
        pace = Pace(4.0, clock.advance, clock.seconds)
        for work_s in (0.0, 0.1, 0.25):
            began_s = clock.seconds()
            clock.advance(work_s)
            pace.rest(began_s)
        self.assertAlmostEqual(0.75, clock.seconds())

    def test_behind(self) -> None:
        """Time lost by slow work is not made up for by a higher rate."""
        clock = Clock()
        clock.advance(10)
        Pace(4.0, clock.advance, clock.seconds).rest(0.0)
        self.assertEqual(10.0, clock.seconds())

    def test_no_limit(self) -> None:
        """Without a rate there is no pause."""
        clock = Clock()
        Pace(None, clock.advance, clock.seconds).rest(0.0)
        self.assertEqual(0.0, clock.seconds())

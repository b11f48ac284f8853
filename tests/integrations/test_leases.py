"""Heartbeats for held jobs: when they are sent, and what their answers change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import (
    AlreadyAcknowledged,
    CannotConnect,
    ClientError,
    ConnectionLost,
    TooLate,
    UnknownJob,
)
from disque_tx.client.options import ConnectionOptions
from disque_tx.client.requests.encoding import Request
from disque_tx.integrations.leases import Leases

_ONE = Address("one", 7711)
_OTHER = Address("other", 7711)


class RecordingServers(Servers):
    """Nodes that take their time to answer. ``asked``: when they were asked about which jobs, and
    which node. ``broken``: what asking fails with. ``answers``: by ID, 10 seconds by default.
    ``takes_s``: until the answers."""

    def __init__(self) -> None:
        super().__init__([_ONE, _OTHER], ConnectionOptions())
        self.now_s = 100.0
        self.takes_s = 0.0
        self.broken: ClientError | None = None
        self.asked: list[tuple[float, Address, list[str]]] = []
        self.answers: dict[str, int | ClientError] = {}
        self.sent = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.closed = threading.Event()

    def ask_holders(
        self,
        home: Address,
        ids: Sequence[str],
        request: Callable[[str], Request[Any]],
        is_missing: Callable[[Any], bool],
    ) -> list[Any]:
        """Answer after a while."""
        self.asked.append((self.now_s, home, list(ids)))
        self.sent.set()
        self.may_answer.wait()
        if self.broken is not None:
            raise self.broken
        self.now_s += self.takes_s
        for job_id in ids:
            assert request(job_id).words == ("WORKING", job_id)
        return [self.answers.get(job_id, 10) for job_id in ids]

    def close(self) -> None:
        """Remember that."""
        self.closed.set()


class LeaseCase(SynchronousTestCase):
    """Leases with nodes in memory."""

    def setUp(self) -> None:
        self.nodes = RecordingServers()
        self.leases = Leases(lambda: self.nodes, lambda: self.nodes.now_s)
        self.addCleanup(self.leases.stop)
        self.addCleanup(self.nodes.may_answer.set)


class AnswerTests(LeaseCase):
    """What follows from an answer; the thread is not needed for that."""

    def renewed(self, *ids: str, at: Address = _ONE) -> dict[str, float]:
        """Hold these jobs, send what is due, and return when each is due again."""
        idle = threading.Thread()
        self.leases._thread = idle  # as if it was busy
        self.leases.keep([(job_id, at) for job_id in ids])
        self.send_due()
        self.leases._thread = None
        return {held.id: due_s for due_s, _, held in self.leases._due}

    def send_due(self) -> None:
        """One round of the thread."""
        self.leases._renew(self.leases._take_due(), self.nodes)

    def test_late_answer(self) -> None:
        """RETRY begins when a node gets the heartbeat: of a slow answer the next one is not sent
        later, or leases would run out under load."""
        self.nodes.takes_s = 3
        self.assertEqual({"a": 108.0}, self.renewed("a"))
        self.nodes.now_s = 108
        self.send_due()
        self.assertEqual([(100.0, _ONE, ["a"]), (108.0, _ONE, ["a"])], self.nodes.asked)
        self.assertEqual(116.0, self.leases._due[0][0])

    def test_each_in_time(self) -> None:
        """A job with a short RETRY gets its heartbeat when it is due, whatever other jobs are held
        that have time."""
        self.nodes.answers = {"b": 100, "d": 1_000}
        due_s = {"a": 108.0, "b": 180.0, "c": 108.0, "d": 900.0}
        self.assertEqual(due_s, self.renewed("b", "a", "c", "d"))
        self.nodes.asked.clear()
        for now_s in (107.0, 108.0, 180.0):
            self.nodes.now_s = now_s
            self.send_due()
        self.assertEqual(
            [(108.0, ["a", "c"]), (180.0, ["a", "b", "c"])],
            [(at_s, sorted(ids)) for at_s, _, ids in self.nodes.asked if ids],
        )

    def test_no_answer(self) -> None:
        """A heartbeat without an answer is repeated soon, long before RETRY is over."""
        self.nodes.takes_s = 1
        self.assertEqual({"a": 108.0}, self.renewed("a"))
        self.nodes.now_s = 108
        self.nodes.answers["a"] = ConnectionLost("one:7711", "gone", sent=True)
        self.send_due()
        self.assertEqual(110.0, self.leases._due[0][0])
        self.assertTrue(self.leases.holds("a"))

    def test_first_without_answer(self) -> None:
        """One whose RETRY is not known yet is repeated at once."""
        self.nodes.answers["a"] = ConnectionLost("one:7711", "gone", sent=True)
        self.assertEqual({"a": 100.2}, self.renewed("a"))

    def test_no_node(self) -> None:
        """While no node can be asked at all, the heartbeats of all jobs are repeated."""
        self.nodes.broken = CannotConnect({"one:7711": "refused"})
        self.assertEqual({"a": 100.2, "b": 100.2}, self.renewed("a", "b"))
        self.assertTrue(self.leases.holds("a"))

    def test_ended(self) -> None:
        """No heartbeats are sent for jobs that are done, unknown or too old; the others go on."""
        self.nodes.answers = {
            "a": AlreadyAcknowledged("WORKING", "one:7711", "ERR", "done"),
            "b": UnknownJob("WORKING", "one:7711", "NOJOB", "unknown"),
            "c": TooLate("WORKING", "one:7711", "TOOLATE", "late"),
            "d": 0,
        }
        self.assertEqual({"e": 108.0}, self.renewed("a", "b", "c", "d", "e"))
        held = [job_id for job_id in "abcde" if self.leases.holds(job_id)]
        self.assertEqual(["d", "e"], held)

    def test_nodes(self) -> None:
        """Each job's heartbeat goes to the node that delivered it, those of one together."""
        self.leases._thread = threading.Thread()
        self.leases.keep([("a", _ONE), ("b", _OTHER), ("c", _ONE)])
        self.send_due()
        self.leases._thread = None
        self.assertEqual([(100.0, _ONE, ["a", "c"]), (100.0, _OTHER, ["b"])], self.nodes.asked)

    def test_released(self) -> None:
        """A job that is released while its heartbeat is under way gets no other, and neither does
        one that was released before it was due."""
        self.assertEqual({"a": 108.0, "b": 108.0}, self.renewed("a", "b"))
        self.leases.release("a")
        self.nodes.now_s = 108
        batch = self.leases._take_due()
        self.assertEqual(["b"], [held.id for held in batch])
        self.leases.release("b")
        self.leases._renew(batch, self.nodes)
        self.assertEqual([], self.leases._due)

    def test_many(self) -> None:
        """Nothing is kept of jobs that are done, however many there were."""
        for number in range(100):
            self.renewed(str(number))
            self.leases.release(str(number))
        self.nodes.now_s = 1e6
        self.assertEqual([], self.leases._take_due())
        self.assertEqual(([], {}), (self.leases._due, self.leases._held))


class ThreadTests(LeaseCase):
    """The thread that sends them."""

    def test_withdrawn(self) -> None:
        """A job is given back only after the answer to its heartbeat: one that came after the NACK
        would take the job out of its queue."""
        self.nodes.may_answer.clear()
        self.leases.keep([("a", _ONE)])
        self.nodes.sent.wait()
        order: list[str] = []

        def give_back() -> None:
            self.leases.withdraw("a")
            order.append("answered" if "a" not in self.leases._sending else "under way")

        giving_back = threading.Thread(target=give_back)
        giving_back.start()
        while self.leases.holds("a"):
            pass  # until the other thread has begun to withdraw it
        self.assertEqual([], order)
        self.nodes.may_answer.set()
        giving_back.join()
        self.assertEqual(["answered"], order)
        self.assertEqual([], self.leases._due)

    def test_closed(self) -> None:
        """The connections of the thread are closed with it, and new ones are made for the next."""
        self.leases.keep([("a", _ONE)])
        self.nodes.sent.wait()
        self.leases.stop()
        self.assertTrue(self.nodes.closed.is_set())
        self.assertIsNone(self.leases._thread)
        self.nodes.sent.clear()
        self.leases.keep([("b", _ONE)])
        self.nodes.sent.wait()
        self.assertEqual(["b"], self.nodes.asked[-1][2])

"""Several ADDJOBs that a client sends without waiting for answers (client protocol, section 20)."""

from __future__ import annotations

from disque_tx.commands.base.context import Server
from disque_tx.commands.base.values import Error, Status, Value, ValueReplies
from disque_tx.commands.dispatch import SHARE_NS, Dispatcher
from disque_tx.commands.server.memory import MemoryControl
from disque_tx.commands.table import standard_registry
from disque_tx.core.base.answerline import LINE_MAX
from disque_tx.core.base.client import BLOCKED_ADDJOB, NOT_BLOCKED
from disque_tx.core.jobs.job import Job
from disque_tx.core.queues.queues import PAUSE_IN
from disque_tx.errors import CommandError, PeerError
from disque_tx.messages.bustypes import DELJOB, GOTJOB
from tests.commands.test_dispatch import Waiting
from tests.core.peerbench import B, PeerCase

TIMEOUT = Error(b"NOREPL Timeout reached before replicating to the requested number of nodes")


class AheadCase(PeerCase):
    """A client whose jobs wait for a copy at B."""

    peers = (B,)

    def setUp(self) -> None:
        super().setUp()
        self.now_ns = 0
        control = MemoryControl({b"requirepass": b"", b"maxmemory": b"1073741824"})
        self.server = Server(self.node, control, standard_registry())
        self.server.slowlog.slower_than_us = -1
        self.dispatcher = Dispatcher(self.server, self.server.registry, self.clock_ns)
        self.client = self.connect()
        self.source = Waiting([])

    def clock_ns(self) -> int:
        return self.now_ns

    def send(self, *lines: str) -> None:
        """The client sends these requests, whose words are separated by blanks."""
        self.source.requests += [line.encode().split(b" ") for line in lines]
        self.drain()

    def drain(self) -> bool:
        """The node executes what it can; whether there may be more."""
        self.dispatcher.begin()
        return self.dispatcher.drain(self.client, self.source)

    def resume(self) -> None:
        """What a turn does in the end: those that waited go on."""
        outbox = self.node.outbox
        while outbox.resumed:
            resumed, outbox.resumed = outbox.resumed, []
            for client in resumed:
                if client is self.client:
                    self.drain()

    def jobs(self) -> list[Job]:
        """The jobs that wait for copies, in the order in which they were added."""
        return [wait.job for wait in self.node.waiters.copies.values()]

    def confirm(self, *jobs: Job) -> None:
        """B has copies of these jobs."""
        for job in jobs:
            self.receive_signal(B, GOTJOB, job.id)
        self.resume()

    def answers(self) -> list[Value]:
        """What the client received since the last look."""
        assert isinstance(self.client.replies, ValueReplies)
        return self.replies(self.client)


class AheadTests(AheadCase):
    """The answers, and their order."""

    def test_at_once(self) -> None:
        """Jobs that were sent at once are sent to other nodes at once, so that a producer with one
        connection does not wait for each of them in turn."""
        self.send(*[f"ADDJOB q {number} 0 REPLICATE 2" for number in range(5)])
        jobs = self.jobs()
        self.assertEqual([b"0", b"1", b"2", b"3", b"4"], [job.body for job in jobs])
        self.assertEqual(BLOCKED_ADDJOB, self.client.blocked)
        self.confirm(*jobs)
        self.assertEqual([Status(job.id) for job in jobs], self.answers())
        self.assertEqual((NOT_BLOCKED, None), (self.client.blocked, self.client.line))

    def test_order(self) -> None:
        """Copies that are made in another order change nothing in the order of the answers: a
        client knows only from it which job an ID belongs to."""
        self.send(*[f"ADDJOB q {number} 0 REPLICATE 2" for number in range(3)])
        first, second, third = self.jobs()
        self.confirm(third, second)
        self.assertEqual([], self.answers())
        self.confirm(first)
        self.assertEqual([Status(job.id) for job in (first, second, third)], self.answers())

    def test_known_at_once(self) -> None:
        """Errors, and IDs of jobs without copies, wait for the answers before them."""
        self.send(
            "ADDJOB q a 0 REPLICATE 2",
            "ADDJOB q b 0 REPLICATE 9",
            "ADDJOB q c 0 REPLICATE 1",
            "ADDJOB q",
            "ADDJOB q d 0 REPLICATE 2",
            "ADDJOB q e 0 RETRY x",
        )
        first, second = self.jobs()
        self.assertEqual([], self.answers())
        self.confirm(second)
        self.assertEqual([], self.answers())
        self.confirm(first)
        answers = self.answers()
        self.assertEqual(
            [Status, Error, Status, Error, Status, Error], [type(answer) for answer in answers]
        )
        self.assertEqual((Status(first.id), Status(second.id)), (answers[0], answers[4]))
        self.assertEqual(NOT_BLOCKED, self.client.blocked)

    def test_others_wait(self) -> None:
        """Anything else that was sent is executed after all jobs have their answers, and what was
        sent after it then, too: a job that was added is found by the GETJOB behind it."""
        self.send(
            "addjob q a 0 REPLICATE 2",
            "AddJob q b 0 REPLICATE 2",
            "GETJOB NOHANG COUNT 5 FROM q",
            "ADDJOB q c 0 REPLICATE 2",
        )
        self.send("PING")
        first, second = self.jobs()
        self.confirm(first)
        self.assertEqual([Status(first.id)], self.answers())
        self.confirm(second)
        answer, found = self.answers()
        self.assertEqual(Status(second.id), answer)
        assert isinstance(found, list)
        self.assertEqual(2, len(found))
        (third,) = self.jobs()
        self.confirm(third)
        self.assertEqual([Status(third.id), Status(b"PONG")], self.answers())

    def test_malformed(self) -> None:
        """What is no request is refused after the answers to those before it."""
        self.source.error = "Protocol error: invalid multibulk length"
        self.send("ADDJOB q a 0 REPLICATE 2", "ADDJOB q b 0 REPLICATE 2")
        self.assertEqual([], self.answers())
        self.assertRaises(PeerError, self.confirm, *self.jobs())
        self.assertEqual(2, len(self.answers()))

    def test_full(self) -> None:
        """There is a bound to the jobs that wait for one client; it goes on when an answer was
        given."""
        self.send(*[f"ADDJOB q {number} 0 REPLICATE 2" for number in range(LINE_MAX + 2)])
        jobs = self.jobs()
        self.assertEqual(LINE_MAX, len(jobs))
        self.confirm(jobs[1])
        self.assertEqual(LINE_MAX - 1, len(self.jobs()))
        self.confirm(jobs[0])
        self.assertEqual(LINE_MAX, len(self.jobs()))
        self.confirm(*self.jobs())
        self.assertEqual(LINE_MAX + 2, len(self.answers()))

    def test_late(self) -> None:
        """Nothing is added ahead while a job of the client waits for long: nodes that are late
        would get ever more copies to make. It goes on when all are answered."""
        self.send("ADDJOB q a 0 REPLICATE 2", "ADDJOB q b 0 REPLICATE 2")
        self.pass_ms(10)
        self.send("ADDJOB q c 0 REPLICATE 2")
        jobs = self.jobs()
        self.assertEqual(2, len(jobs))
        self.confirm(jobs[0])
        self.assertEqual(1, len(self.jobs()))
        self.confirm(jobs[1])
        (third,) = self.jobs()
        self.assertEqual(b"c", third.body)

    def test_share(self) -> None:
        """A client's share of a turn ends with its time, whatever its requests wait for."""
        self.source.requests = [b"ADDJOB q b 0 REPLICATE 2".split(b" ") for _ in range(10)]
        clock = iter(range(0, 100 * SHARE_NS, SHARE_NS // 2))
        self.clock_ns = clock.__next__  # type: ignore[method-assign]
        self.dispatcher = Dispatcher(self.server, self.server.registry, self.clock_ns)
        self.assertTrue(self.drain())
        self.assertEqual(2, len(self.jobs()))

    def test_replies_off(self) -> None:
        """A client that wants no answers is served as before, one request at a time."""
        self.send("CLIENT REPLY OFF", "ADDJOB q a 0 REPLICATE 2", "ADDJOB q b 0 REPLICATE 2")
        (first,) = self.jobs()
        self.confirm(first)
        (second,) = self.jobs()
        self.confirm(second)
        self.assertEqual([], self.answers())


class EndingTests(AheadCase):
    """Jobs whose copies are not made."""

    def test_time_over(self) -> None:
        """Each job has its own time; the answers keep their order."""
        self.send(
            "ADDJOB q a 3000 REPLICATE 2",
            "ADDJOB q b 1000 REPLICATE 2",
            "ADDJOB q c 0 REPLICATE 2",
            "ADDJOB q d 2000 REPLICATE 2",
        )
        first, _, third, fourth = self.jobs()
        self.pass_slowly(1_100)
        self.assertEqual([first, third, fourth], self.jobs())
        self.confirm(fourth)
        self.pass_slowly(1_000)
        self.assertEqual(([first, third], []), (self.jobs(), self.answers()))
        self.pass_slowly(1_000)
        self.assertEqual([TIMEOUT, TIMEOUT], self.answers())
        self.confirm(third)
        self.assertEqual([Status(third.id), Status(fourth.id)], self.answers())
        self.assertEqual(NOT_BLOCKED, self.client.blocked)

    def test_earlier_time(self) -> None:
        """A short time counts, too, if those before it have none."""
        self.send("ADDJOB q a 0 REPLICATE 2", "ADDJOB q b 500 REPLICATE 2")
        first, _ = self.jobs()
        self.pass_slowly(600)
        self.assertEqual([first], self.jobs())
        self.confirm(first)
        self.assertEqual([Status(first.id), TIMEOUT], self.answers())

    def test_client_gone(self) -> None:
        """All jobs that the client was not told of are withdrawn, here and at the nodes that may
        have a copy; one that has its copies is in its queue, though its ID was not sent."""
        self.send(*[f"ADDJOB q {number} 0 REPLICATE 2" for number in range(3)])
        first, second, third = self.jobs()
        self.confirm(second)
        self.clear_sent()
        self.node.client_gone(self.client)
        withdrawn = [message for message in self.sent_to(B) if message.type == DELJOB]
        self.assertEqual(2, len(withdrawn))
        self.assertEqual({}, self.node.waiters.copies)
        self.assertIsNone(self.node.jobs.get(first.id))
        self.assertIsNone(self.node.jobs.get(third.id))
        self.assertEqual(0, self.node.blocked_clients)
        self.assertEqual([second.id], self.get(b"q"))

    def test_watcher_gone(self) -> None:
        """A client that waits for the end of a job, and leaves, takes nothing back: another one
        adds the job."""
        self.send("ADDJOB q a 0 REPLICATE 2")
        (job,) = self.jobs()
        other = self.connect()
        self.node.waiters.wait_for_ending(other, job.id, 0)
        self.node.client_gone(other)
        self.assertEqual([job], self.jobs())

    def test_removed(self) -> None:
        """A job that somebody deletes has an error in its place."""
        self.send("ADDJOB q a 0 REPLICATE 2", "ADDJOB q b 0 REPLICATE 2")
        first, second = self.jobs()
        self.node.delivery.remove(second)
        self.confirm(first)
        answer, error = self.answers()
        self.assertEqual((Status(first.id), Error), (answer, type(error)))

    def test_paused(self) -> None:
        """A queue that is paused meanwhile refuses the next job, in its place."""
        self.send("ADDJOB q a 0 REPLICATE 2")
        (first,) = self.jobs()
        self.node.pause(b"q", PAUSE_IN)
        self.send("ADDJOB q b 0 REPLICATE 2")
        self.assertEqual([first], self.jobs())
        self.confirm(first)
        answer, error = self.answers()
        assert isinstance(error, Error)
        self.assertEqual((Status(first.id), b"PAUSED"), (answer, error.line[:6]))

    def test_all_released(self) -> None:
        """A node that stops, and one whose jobs are all removed, gives every request its error."""
        for release in (self.stop, self.node.flush_all):
            self.send(*[f"ADDJOB q {number} 0 REPLICATE 2" for number in range(3)])
            release()
            answers = self.answers()
            self.assertEqual([Error] * 3, [type(answer) for answer in answers])
            self.assertEqual((NOT_BLOCKED, {}), (self.client.blocked, self.node.waiters.copies))

    def stop(self) -> None:
        """All clients are released."""
        self.node.dismiss(CommandError("ERR", "The server is shutting down"))

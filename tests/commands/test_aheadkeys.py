"""Several ADDJOBs with UNIQUE that a client sends without waiting for answers."""

from __future__ import annotations

from disque_tx.commands.base.context import Server
from disque_tx.commands.base.values import Error, Status, Value, ValueReplies
from disque_tx.commands.dispatch import Dispatcher
from disque_tx.commands.server.memory import MemoryControl
from disque_tx.commands.table import standard_registry
from disque_tx.core.base.client import NOT_BLOCKED, Client
from disque_tx.errors import CommandError
from disque_tx.messages.bustypes import GOTJOB, KEY_ANSWER, KEY_RESERVE
from tests.commands.test_dispatch import Waiting
from tests.core.unique.keybench import A, B, C, KeyCase


class KeysAheadCase(KeyCase):
    """Three nodes. The client is connected to A; ``asked`` are keys that A asks others about."""

    def setUp(self) -> None:
        super().setUp()
        self.node = self.cluster.up[A]
        control = MemoryControl({b"requirepass": b"", b"maxmemory": b"1073741824"})
        server = Server(self.node, control, standard_registry())
        self.dispatcher = Dispatcher(server, server.registry, lambda: 0)
        self.client = Client(1, ValueReplies(), b"10.0.0.9:1", self.cluster.now_ms)
        self.source = Waiting([])
        self.asked = [k for k in map(str, range(200)) if A not in self.keepers(k.encode())]

    def send(self, *lines: str) -> None:
        """The client sends these requests, whose words are separated by blanks."""
        self.source.requests += [line.encode().split(b" ") for line in lines]
        self.drain()

    def drain(self) -> None:
        """The node executes what it can."""
        self.dispatcher.begin()
        self.dispatcher.drain(self.client, self.source)

    def finish(self) -> list[Value]:
        """What the client receives once everything it sent is executed."""
        for _ in range(100):
            self.cluster.run(20)
            self.drain()
        self.assertEqual((NOT_BLOCKED, None), (self.client.blocked, self.client.line))
        return self.answers()

    def answers(self) -> list[Value]:
        """What the client received since the last look."""
        replies = self.client.replies
        assert isinstance(replies, ValueReplies)
        values = replies.values
        replies.clear()
        return [value.text if isinstance(value, Status) else value for value in values]

    def bodies(self, answers: list[Value]) -> list[bytes]:
        """The bodies of the jobs with these IDs."""
        bodies = []
        for answer in answers:
            assert isinstance(answer, bytes)
            job = self.node.jobs.get(answer)
            assert job is not None
            bodies.append(job.body)
        return bodies


class OrderTests(KeysAheadCase):
    """Jobs that are added."""

    def test_at_once(self) -> None:
        """Keys that were sent at once are asked about at once, by one message to each node, so that
        a producer with one connection does not wait for each of them in turn; the answers keep
        their order."""
        keys = self.asked[:5]
        self.send(*[f"ADDJOB q {key} 0 REPLICATE 2 UNIQUE {key}" for key in keys])
        self.cluster.finish()
        nodes = {self.node.keys.view.keepers(key.encode())[0] for key in keys}
        self.assertEqual(sorted(nodes), sorted(way.to for way, _ in self.cluster.waiting))
        self.assertEqual([key.encode() for key in keys], self.bodies(self.finish()))
        self.assertEqual(0, len(self.node.waiters.blocked))

    def test_among_others(self) -> None:
        """Jobs without a key, and what waits for no node, are answered in their places."""
        first, second = self.asked[:2]
        self.send(
            f"ADDJOB q a 0 REPLICATE 1 UNIQUE {first}",
            "ADDJOB q b 0 REPLICATE 1",
            "ADDJOB q c 0 REPLICATE 2",
            f"ADDJOB q d 0 REPLICATE 3 UNIQUE {second}",
            "ADDJOB q",
            "PING",
        )
        self.assertEqual([], self.answers())
        *ids, error, pong = self.finish()
        self.assertEqual([b"a", b"b", b"c", b"d"], self.bodies(ids))
        self.assertEqual((Error, b"PONG"), (type(error), pong))

    def test_behind_copies(self) -> None:
        """A job with a key is added while one before it waits for its copies."""
        self.send(
            "ADDJOB q a 0 REPLICATE 2", f"ADDJOB q b 0 REPLICATE 2 UNIQUE {self.asked[0]} WITHNEW"
        )
        self.cluster.finish()
        self.assertEqual(3, len(self.cluster.waiting))  # REPLJOB, and a question to both keepers
        first, answer = self.finish()
        assert isinstance(answer, list)
        self.assertEqual(1, answer[1])
        self.assertEqual([b"a", b"b"], self.bodies([first, answer[0]]))

    def test_same_key(self) -> None:
        """The first of several with one key is added, and all others get its ID as soon as they
        can: whoever sends one job twice does not wait for longer than for two."""
        for key in (self.asked[0], self.own_key()):
            self.send(*[f"ADDJOB q {n} 0 REPLICATE 2 UNIQUE {key} WITHNEW" for n in range(4)])
            self.cluster.settle()
            self.node.run_due()
            self.cluster.settle()
            self.node.run_due()
            answers = self.answers()
            self.assertEqual([1, 0, 0, 0], [a[1] for a in answers if isinstance(a, list)])
            ids = [a[0] for a in answers if isinstance(a, list)]
            self.assertEqual([b"0"] * 4, self.bodies(ids))

    def own_key(self) -> str:
        """A key that A keeps with another node."""
        return next(k for k in map(str, range(200)) if self.keepers(k.encode())[0] == A)

    def test_lost_answers(self) -> None:
        """One keeper that is late holds up answers, not jobs."""
        (late,) = [k for k in self.asked if self.keepers(k.encode())[0] == B][:1]
        (soon,) = [k for k in self.asked if self.keepers(k.encode())[0] == C][:1]
        self.cluster.silent = {B}
        self.cluster.lost = {KEY_RESERVE}
        self.send(f"ADDJOB q late 0 REPLICATE 1 UNIQUE {late}")
        self.cluster.settle()
        self.cluster.lost = set()
        self.cluster.silent = set()
        self.send(f"ADDJOB q soon 0 REPLICATE 1 UNIQUE {soon}")
        self.cluster.settle()
        self.assertEqual(([], 1), (self.answers(), len(self.node.jobs)))
        self.assertEqual([b"late", b"soon"], self.bodies(self.finish()))


class EndingTests(KeysAheadCase):
    """Jobs that are not added."""

    def setUp(self) -> None:
        super().setUp()
        self.cluster.lost = {KEY_ANSWER}

    def test_time_over(self) -> None:
        """Each job has its own time; the answers keep their order."""
        one, two, three = self.asked[:3]
        self.send(
            f"ADDJOB q a 600 REPLICATE 1 UNIQUE {one}",
            f"ADDJOB q b 300 REPLICATE 1 UNIQUE {two}",
            f"ADDJOB q c 0 REPLICATE 1 UNIQUE {three}",
        )
        self.cluster.run(400)
        self.assertEqual([], self.answers())
        self.cluster.run(300)
        errors = self.answers()
        self.assertEqual([Error, Error], [type(answer) for answer in errors])
        self.cluster.lost = set()
        self.assertEqual([b"c"], self.bodies(self.finish()))

    def test_time_over_for_copies(self) -> None:
        """A job that has its key, and not its copies, is withdrawn, and the key is free again."""
        self.cluster.lost = {GOTJOB}
        key = self.asked[0]
        self.send(f"ADDJOB q a 300 REPLICATE 3 UNIQUE {key}", "ADDJOB q b 300 REPLICATE 3")
        self.cluster.run(200)
        self.assertEqual((2, []), (len(self.node.jobs), self.answers()))
        self.cluster.run(200)
        self.assertEqual([Error, Error], [type(answer) for answer in self.answers()])
        self.assertEqual((0, {}), (len(self.node.jobs), self.node.waiters.copies))
        self.cluster.lost = set()
        self.assertEqual(1, self.add(B, key.encode())[1])

    def test_client_gone(self) -> None:
        """Nothing is added for a client that is gone, and its keys are free."""
        one, two = self.asked[:2]
        self.send(*[f"ADDJOB q {key} 0 REPLICATE 2 UNIQUE {key}" for key in (one, two)])
        self.cluster.settle()
        self.node.client_gone(self.client)
        self.cluster.lost = set()
        self.cluster.run(5_000)
        self.assertEqual((0, []), (len(self.node.jobs), self.answers()))
        self.assertEqual([1, 1], [self.add(C, key.encode())[1] for key in (one, two)])

    def test_all_released(self) -> None:
        """A node that stops, and one whose jobs are all removed, gives every request its error, in
        its place."""
        one, two = self.asked[:2]
        for release in (self.stop, self.node.flush_all):
            self.send(
                f"ADDJOB q a 0 REPLICATE 2 UNIQUE {one}",
                "ADDJOB q b 0 REPLICATE 2",
                f"ADDJOB q c 0 REPLICATE 2 UNIQUE {two}",
            )
            release()
            self.assertEqual([True] * 3, [isinstance(a, Error) for a in self.answers()])
            self.assertEqual(NOT_BLOCKED, self.client.blocked)
            self.assertEqual({}, self.node.waiters.copies)

    def stop(self) -> None:
        """The node stops."""
        self.node.dismiss(CommandError("ERR", "The server is shutting down"))

    def test_answered_once(self) -> None:
        """A node that stops when a job was just acknowledged, before its copies were confirmed,
        answers with its ID and nothing else."""
        for release in (self.stop, self.node.flush_all):
            self.cluster.lost = {GOTJOB}
            self.send(f"ADDJOB q a 0 REPLICATE 2 UNIQUE {self.asked[0]}")
            self.cluster.settle()
            (wait,) = self.node.waiters.copies.values()
            self.node.acknowledge([wait.job.id])
            release()
            self.assertEqual([wait.job.id], self.answers())
            self.assertEqual(NOT_BLOCKED, self.client.blocked)

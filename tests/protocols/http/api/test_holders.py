"""Jobs of several nodes: who is asked for each, and bodies of many, as their nodes send them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, cast

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.protocols.http.api.base.holders import act, at_one, known_by
from disque_tx.protocols.http.server.asking import PROCESSES
from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.protocols.http.server.problems import Problem
from disque_tx.protocols.http.server.slices import SLICE_BYTES
from tests.protocols.http.api.queues.test_queues import SlicedCase
from tests.protocols.http.httpbench import parsed, request

#: Two processes, in the order of their numbers.
_A: Final = b"f" * 40
_B: Final = b"a" * 40


class BodiesTests(SlicedCase):
    """``bodies``."""

    def turns(self, path: str) -> tuple[int, int]:
        """How many turns an answer takes, and how many bytes of bodies are in it."""
        channel, transport = self.connect()
        channel.dataReceived(request("GET", path))
        turns = 0
        while not transport.value().endswith(b"0\r\n\r\n"):
            self.reactor.advance(0.001)
            turns += 1
        jobs = parsed(transport.value())[0].json["jobs"]
        self.hang_up(channel)
        return turns, sum(len(job["body"]) for job in jobs)

    def test_turns(self) -> None:
        """Other clients never wait until more bodies have been read than a slice holds."""
        for _ in range(40):
            self.call(b"ADDJOB", b"q", b"x" * 100_000, b"0")
        for path in ("peek?count=1000", "jobs?count=1000"):
            turns, size = self.turns(f"/api/v1/queues/q/{path}")
            self.assertEqual(4_000_000, size)
            self.assertGreaterEqual(turns, size // SLICE_BYTES)


class Nodes:
    """Two processes of a daemon. ``ranks``: what each of them says of a job. ``silent``: those that
    do not answer. ``asked``: how many jobs each question was about. ``done``: what was executed,
    and where."""

    def __init__(self, ranks: dict[bytes, tuple[int, int]]) -> None:
        self.ranks = ranks
        self.silent: set[bytes] = set()
        self.asked: list[int] = []
        self.done: list[tuple[bytes, ...]] = []

    def exchange(self) -> Exchange:
        """A request to them."""
        processes = SimpleNamespace(numbers=lambda: {_A: 0, _B: 1})
        host = SimpleNamespace(processes=processes)
        return cast(Exchange, SimpleNamespace(call=self.call, host=host, parameters=()))

    async def call(self, *words: bytes) -> Any:
        """A command of the process that got the request."""
        if words[0] != b"ASK":
            return self.execute(b"here", *words)
        _, scope, *question = words
        asked = [_B, _A] if scope == PROCESSES else [scope]
        rows = [(node, self.answer(node, question)) for node in asked if node not in self.silent]
        return {b"answers": rows, b"nodes-missing": [one for one in asked if one in self.silent]}

    def answer(self, node: bytes, question: list[bytes]) -> Any:
        """What one of them answers."""
        name, *rest = question
        if name != b"HOLDS":
            return self.execute(node, *question)
        self.asked.append(len(rest))
        return [self.ranks[job_id][node == _B] for job_id in rest]

    def execute(self, node: bytes, *words: bytes) -> int:
        """A command on jobs: it answers how many."""
        self.done.append((node, *words))
        return sum(word in self.ranks for word in words)


class HoldersTests(SynchronousTestCase):
    """Which of several nodes is asked for a job."""

    def setUp(self) -> None:
        self.nodes = Nodes({b"1": (1, 2), b"2": (3, 0), b"3": (0, 0), b"4": (2, 2)})

    def acted(self, command: bytes, *ids: bytes) -> int:
        """The reply to a command."""
        acting = act(self.nodes.exchange(), command, [b"OPTION"], list(ids), [b"END"])
        count: int = self.successResultOf(Deferred.fromCoroutine(acting))
        return count

    def test_acted(self) -> None:
        """Each job is acted on once, at the node that has most to do with it, of equal ones at the
        first; one that nobody knows is left to the process with the request. The reply counts all
        of them."""
        self.assertEqual(4, self.acted(b"NACK", b"1", b"2", b"3", b"4"))
        self.assertEqual([4], self.nodes.asked[::2])
        self.assertEqual(
            [
                (_B, b"NACK", b"OPTION", b"1", b"END"),
                (_A, b"NACK", b"OPTION", b"2", b"4", b"END"),
                (b"here", b"NACK", b"OPTION", b"3", b"END"),
            ],
            self.nodes.done,
        )

    def test_deleted(self) -> None:
        """A job is deleted wherever it is known, and counts once for that; one that nobody knows
        does not count."""
        self.assertEqual(2, self.acted(b"DELJOB", b"1", b"3", b"2", b"1"))
        self.assertEqual(
            [
                (_B, b"DELJOB", b"OPTION", b"1", b"1", b"END"),
                (_A, b"DELJOB", b"OPTION", b"1", b"2", b"1", b"END"),
                (b"here", b"DELJOB", b"OPTION", b"3", b"END"),
            ],
            self.nodes.done,
        )

    def test_no_jobs(self) -> None:
        """A request about no jobs is one for the process that got it."""
        self.assertEqual(0, self.acted(b"NACK"))
        self.assertEqual([(b"here", b"NACK", b"OPTION", b"END")], self.nodes.done)

    def test_silent(self) -> None:
        """A node that does not answer in time is no success: the client learns that it may try
        again, and that something may have been done."""
        asking = at_one(self.nodes.exchange(), _A, b"NACK", b"1")
        self.assertEqual(1, self.successResultOf(Deferred.fromCoroutine(asking)))
        self.nodes.silent.add(_A)
        asking = at_one(self.nodes.exchange(), _A, b"NACK", b"1")
        problem = self.failureResultOf(Deferred.fromCoroutine(asking), Problem).value
        self.assertEqual((503, "TRYLATER"), (problem.status, problem.code))
        self.assertEqual(
            "The node that has the job did not answer within a second; what was asked of it may"
            " have been done.",
            problem.detail,
        )

    def test_many(self) -> None:
        """However many jobs a request names, a question is about 500 at most, and the answers are
        in their order; a node that missed one of the questions is missing."""
        ids = [b"%d" % number for number in range(1_001)]
        self.nodes.ranks = {job_id: (int(job_id) % 2, 1) for job_id in ids}
        self.nodes.silent.add(_A)
        finding = known_by(self.nodes.exchange(), PROCESSES, ids)
        found, asked = self.successResultOf(Deferred.fromCoroutine(finding))
        self.assertEqual([500, 500, 1], self.nodes.asked)
        self.assertEqual([[_B]] * 1_001, found)
        self.assertEqual({"nodes": 1, "nodes_missing": [_A.decode()]}, asked.sources())
        self.nodes.silent.clear()
        finding = known_by(self.nodes.exchange(), PROCESSES, ids)
        found, asked = self.successResultOf(Deferred.fromCoroutine(finding))
        self.assertEqual([[_B], [_A, _B], [_B]], found[:3])
        self.assertEqual({"nodes": 2, "nodes_missing": []}, asked.sources())

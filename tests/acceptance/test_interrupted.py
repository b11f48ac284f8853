"""Verbs and modes that run for long, each interrupted by SIGINT and by SIGTERM."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from typing import Final

from tests.acceptance.daemon import START_S, environment, wait_for
from tests.acceptance.disque import PROGRAM
from tests.acceptance.redisserver import RedisServer
from tests.acceptance.resp import Connection
from tests.acceptance.test_cli import VerbTestCase

_STATUS: Final = {signal.SIGINT: 130, signal.SIGTERM: 143}


def _add_items(redis: RedisServer, prefix: str, count: int) -> None:
    """Add items to a work queue."""
    connection = Connection(("127.0.0.1", redis.port))
    ids = [str(number) for number in range(count)]
    for item_id in ids:
        connection.call("SET", f"{prefix}:item:{item_id}", "data")
    connection.call("LPUSH", f"{prefix}:queue", *ids)
    connection.close()


class InterruptedTests(VerbTestCase):
    """An interrupted program reports what was done, without a traceback, and its exit status shows
    which signal it received."""

    def interrupt(
        self,
        number: int,
        words: tuple[str | int, ...],
        begun: Callable[[], object],
        given: bytes = b"",
    ) -> tuple[int, str, str]:
        """Start the program, and send a signal when it has begun its work; returns status, output
        and error output."""
        process = subprocess.Popen(
            [*PROGRAM, "-p", str(self.node.port), *map(str, words)],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(process.kill)
        assert process.stdin is not None
        process.stdin.write(given)
        process.stdin.flush()
        wait_for(begun, f"{words[0]} has begun")
        process.send_signal(number)
        # Its standard input stays open until then.
        process.wait(START_S)
        output, error = process.communicate()
        self.assertNotIn(b"Traceback", error, words)
        self.assertNotIn(b"Exception ignored", error, words)
        self.assertEqual(_STATUS[signal.Signals(number)], process.returncode, (words, error))
        return process.returncode, output.decode(), error.decode()

    def commands(self, name: str) -> int:
        """How many times a command was run."""
        line = str(self.node.client().call("INFO", "commandstats"))
        found = line.partition(f"cmdstat_{name}:calls=")[2].partition(",")[0]
        return int(found or 0)

    def at_least(self, queue: str, length: int) -> Callable[[], bool]:
        """A condition: the queue has at least this length."""
        return lambda: self.length(queue) >= length

    def is_empty(self, queue: str) -> Callable[[], bool]:
        """A condition: the queue is empty."""
        return lambda: not self.length(queue)

    def more_clients(self) -> Callable[[], bool]:
        """A condition: one more client is connected than now."""
        before = int(self.node.info()["connected_clients"])
        return lambda: int(self.node.info()["connected_clients"]) > before

    def is_run(self, name: str) -> Callable[[], bool]:
        """A condition: a command was run since now."""
        before = self.commands(name)
        return lambda: self.commands(name) > before

    def test_readers(self) -> None:
        """Programs that only read end at once."""
        for words, command in (
            (("tail", "q", "-f", "-i", "0.05"), "qpeek"),
            (("watch", "q", "-i", "0.05"), "qstat"),
            (("--bigqueues", "-i", "30"), "qlist"),
            (("--latency",), "ping"),
        ):
            for number in _STATUS:
                self.interrupt(number, words, self.is_run(command))

    def test_stat(self) -> None:
        """An interrupted line of figures leaves no traceback."""
        for number in _STATUS:
            self.interrupt(number, ("--stat", "-i", "0.05"), self.more_clients())

    def test_drain(self) -> None:
        """The number of drained jobs is printed; all others stay with the node, in the queue or
        fetched and not acknowledged."""
        for number in _STATUS:
            queue = f"d{number}"
            self.add(queue, "a", "b")
            _, output, error = self.interrupt(
                number, ("drain", queue, "--timeout", 60), self.is_empty(queue)
            )
            drained, written = int(error.split()[0]), len(output.splitlines())
            # Jobs that were written but not yet acknowledged when the signal arrived are in both.
            self.assertLessEqual(drained, written)
            _, jobs = self.node.client().call("JSCAN", "QUEUE", queue, "BUSYLOOP")
            self.assertGreaterEqual(written + len(jobs), 2)

    def test_fill(self) -> None:
        """The error says which lines are added, and at which line to continue."""
        line = json.dumps({"queue": "f", "id": "", "body": "x"}).encode() + b"\n"
        for number in _STATUS:
            begun = self.at_least("f", self.length("f") + 3)
            _, _, error = self.interrupt(number, ("fill",), begun, line * 3)
            # The reply for the last one may be on its way when the signal arrives.
            self.assertRegex(
                error,
                "3 jobs added\nAll before line 4 is added: --from-line 4 continues"
                "|2 jobs added\nAll before line 3 is added; line 3 may be added or not",
            )

    def test_move(self) -> None:
        """The number of moved jobs is printed; all others stay in the old queue."""
        for number in _STATUS:
            queue = f"m{number}"
            self.add(queue, *map(str, range(40)))
            _, _, error = self.interrupt(
                number,
                ("move", queue, f"{queue}b", "--rate", 50),
                self.at_least(f"{queue}b", 1),
            )
            moved = int(error.split()[0])
            # One job may be on its way when the signal arrives: it is not counted, and may be in
            # both queues.
            there, here = self.length(f"{queue}b"), self.length(queue)
            self.assertIn(there, (moved, moved + 1))
            self.assertIn(there + here, (40, 41))

    def test_pipe(self) -> None:
        """The replies received so far are counted."""
        for number in _STATUS:
            begun = self.at_least("p", self.length("p") + 5)
            _, output, _ = self.interrupt(number, ("--pipe",), begun, b"ADDJOB p body 0\r\n" * 5)
            self.assertRegex(output, "errors: 0, replies: [0-5]\n")

    def test_work(self) -> None:
        """A worker runs until it is stopped: the first signal is an orderly stop, with status 0."""
        words = ("-p", str(self.node.port), "work", "tests.worker.handlers:handlers")
        for number in _STATUS:
            process = subprocess.Popen(
                [*PROGRAM, *words], env=environment(), stderr=subprocess.PIPE
            )
            wait_for(lambda: int(self.node.info()["blocked_clients"]), "the worker waits for jobs")
            process.send_signal(number)
            _, error = process.communicate(timeout=START_S)
            self.assertEqual(0, process.returncode, error)
            self.assertNotIn(b"Traceback", error)

    def test_dead(self) -> None:
        """A program that waits for a confirmation can be interrupted."""
        self.add("dead:q", "no letter")
        for number in _STATUS:
            begun = self.is_run("qpeek")
            self.interrupt(number, ("dead", "drop", "--all"), begun)
            self.assertEqual(1, self.length("dead:q"))

    def test_workqueue_move(self) -> None:
        """Items on their way are moved, no other one is begun, and the number of moved items is
        printed; run again, the program moves the rest."""
        redis = RedisServer(self.folder()).start()
        self.addCleanup(redis.stop)
        for number in _STATUS:
            prefix, queue = f"P{number}", f"w{number}"
            _add_items(redis, prefix, 3000)
            words = ("workqueue", "move", "--prefix", prefix, "--queue", queue, redis.url)
            target = f"disque://127.0.0.1:{self.node.port}"
            _, output, _ = self.interrupt(number, (*words, target), self.at_least(queue, 1))
            moved = int(output.split()[0])
            self.assertEqual(moved, self.length(queue))
            self.assertIn("start it again", output)
            status, output, error = self.run_here(*words, target)
            self.assertEqual((0, 3000 - moved), (status, int(output.split()[0])), error)
            self.assertEqual(3000, self.length(queue))

"""The output of the demonstration, and what its clients do."""

from __future__ import annotations

import io
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.programs import demo
from disque_tx.cli.programs.demo import DemoCounts, introduction, progress_line
from disque_tx.core.nodes.addresses import BUS_PORT_OFFSET
from tests.cli.livenode import VerbCase

#: A program that runs until its standard input ends.
_WAITS: Final = "import sys; sys.stdin.read()"


class IntroductionTests(SynchronousTestCase):
    """What is said before anything starts."""

    def test_how_long(self) -> None:
        """Whoever has typed ``make demo`` knows what happens to the machine, and for how long."""
        for stays in (False, True):
            self.assertIn("for 6 seconds", introduction(stays))
            self.assertIn("Nothing is left behind", introduction(stays))
        self.assertNotIn("Ctrl-C", introduction(False))
        self.assertIn("Ctrl-C", introduction(True))


class ProgressTests(SynchronousTestCase):
    """The progress line."""

    def test_rate(self) -> None:
        """The rate is the average since the start, and is not shown in the first moment."""
        counts = DemoCounts()
        counts.added = counts.done = 245
        self.assertNotIn("jobs/s", progress_line(counts, 0.002))
        counts.added, counts.done = 6100, 6000
        line = progress_line(counts, 2.0)
        self.assertTrue(line.endswith("6100 added      6000 done      3000 jobs/s"), line)
        self.assertIn(f"[{'#' * 10}{' ' * 20}]", line)


class EndTests(SynchronousTestCase):
    """What is said, and the exit status, when the daemon ends by itself, or does not start."""

    def setUp(self) -> None:
        for name in ("_show", "_print_next_steps"):
            self.patch(demo, name, lambda *words: None)

    def run_with(self, source: str, starts: bool = True) -> tuple[int, str, str]:
        """Status, output and error output of a demonstration whose daemon is this program, which
        has ended or waits."""

        @contextmanager
        def daemon(*_words: object) -> Iterator[subprocess.Popen[bytes]]:
            words = [sys.executable, "-c", source]
            with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
                if source != _WAITS:
                    process.wait()
                yield process

        self.patch(demo, "_daemon", daemon)
        self.patch(demo, "_answers", lambda port: starts)
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = demo._run("/", False)
        return status, out.getvalue(), err.getvalue()

    def test_well(self) -> None:
        """A daemon that runs to the end is a success, and its port was shown."""
        status, output, errors = self.run_with(_WAITS)
        self.assertEqual((0, ""), (status, errors))
        self.assertRegex(output, r"\AThe daemon serves on port \d+\n\Z")

    def test_ended(self) -> None:
        """A daemon that has ended is a failure, with its status."""
        status, _, errors = self.run_with("raise SystemExit(3)")
        self.assertEqual((1, "The daemon has ended, with status 3.\n"), (status, errors))

    def test_not_started(self) -> None:
        """A daemon that does not answer is a failure, and nothing else is tried."""
        status, output, errors = self.run_with(_WAITS, starts=False)
        self.assertEqual((1, ""), (status, output))
        self.assertRegex(errors, r"\AThe daemon did not start within \d+ seconds.\n\Z")

    def test_free_port(self) -> None:
        """The ports of the demonstration, that of the bus as well, are taken by nobody."""
        for number in (port := demo._free_port()), port + BUS_PORT_OFFSET:
            with socket.socket() as sock:
                sock.bind(("127.0.0.1", number))


class ClientTests(VerbCase):
    """The producer and the worker of the demonstration."""

    def setUp(self) -> None:
        super().setUp()
        self.counts = DemoCounts()

    def produced(self, count: int) -> None:
        """Let the producer add so many jobs, and end it."""
        producer = threading.Thread(target=demo._produce, args=(self.node.port, self.counts))
        producer.start()
        for _ in range(5_000):
            if self.counts.added >= count:
                break
            producer.join(0.005)
        self.counts.stop = True
        producer.join()

    def test_every_job(self) -> None:
        """At the end every job that was added is fetched and acknowledged, and the figures on the
        screen are those of the node."""
        self.produced(900)
        self.assertGreaterEqual(self.counts.added, 900)
        self.assertEqual((self.counts.added, 0), (self.length("demo"), self.counts.added % 50))
        demo._consume(self.node.port, self.counts)
        self.assertEqual((self.counts.added, 0), (self.counts.done, self.length("demo")))
        self.assertEqual("0", self.client.info("jobs")["registered_jobs"])

    def test_no_heap(self) -> None:
        """A producer whose worker is behind waits for it: a thousand jobs are no load for the
        machine on which somebody only looks."""
        self.produced(1_050)
        self.assertEqual(1_050, self.counts.added)

    def test_lost(self) -> None:
        """Clients of a daemon that has ended end as well, without a traceback."""
        self.node.stop()
        for work in (demo._produce, demo._consume):
            demo._until_lost(work, self.node.port, DemoCounts())
        self.assertFalse(self.node._thread.is_alive())

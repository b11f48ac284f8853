"""The command line of the benchmark beside other servers."""

from __future__ import annotations

import contextlib
import io

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.peers.__main__ import arguments
from benchmarks.peers.contests import CONTESTS
from benchmarks.peers.servers import missing


class ArgumentsTests(SynchronousTestCase):
    """What is measured, and what makes no sense."""

    def refused(self, *words: str) -> str:
        """What is said to a command line that ends the program."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as ended:
            arguments(words)
        self.assertEqual(2, ended.exception.code)
        return said.getvalue()

    def test_everything(self) -> None:
        """``make bench-peers`` without more measures every contest and the workers."""
        args = arguments(["--workers", "python"])
        self.assertEqual([*CONTESTS, "workers"], args.only)
        self.assertEqual(1_000_000, args.backlog)

    def test_some(self) -> None:
        """Who is interested in one server does not wait for the others, nor needs other workers."""
        args = arguments(["--only", "nats,streams", "--rounds", "9"])
        self.assertEqual((["nats", "streams"], 9), (args.only, args.rounds))

    def test_unknown(self) -> None:
        """A name that is no contest is not left out in silence."""
        self.assertIn("no such contest: kafka", self.refused("--only", "nats,kafka"))

    def test_workers_without_python(self) -> None:
        """Who lacks the environment of other workers is told how to make one before the run."""
        self.assertIn("make bench-peers-setup", self.refused())

    def test_no_rounds(self) -> None:
        """A run without rounds, time or jobs would end with a fault after its start."""
        for words in (["--rounds", "0"], ["--seconds", "0"], ["--backlog", "0"]):
            self.assertIn("above 0", self.refused("--only", "nats", *words))


class MissingTests(SynchronousTestCase):
    """What is not installed."""

    def test_packages(self) -> None:
        """Who lacks servers is told which packages to install, each once."""
        needed = {"no-such-broker": "broker", "no-such-tool": "broker", "sh": "dash"}
        self.assertEqual(["broker"], missing(needed))

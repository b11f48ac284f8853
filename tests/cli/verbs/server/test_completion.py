"""Completion in shells."""

from __future__ import annotations

import shutil
import subprocess

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from disque_tx import __version__
from disque_tx.cli.verbs.base.registry import VERBS
from disque_tx.cli.verbs.server.completion import below, options
from tests.cli.livenode import VerbCase
from tests.cli.program import run


class ScriptTests(VerbCase):
    """The scripts, tested with the shells that are installed."""

    def completed(self, line: str) -> set[str]:
        """The completions that bash offers for the last word of a line."""
        bash = shutil.which("bash")
        if bash is None:
            raise SkipTest("bash is not installed")
        script = self.disque("completion", "bash")[1]
        words = line.split(" ")
        ask = f"COMP_WORDS=({' '.join(word or chr(34) * 2 for word in words)})"
        ask += f'; COMP_CWORD={len(words) - 1}; _disque; echo "${{COMPREPLY[@]}}"'
        result = subprocess.run(
            [bash, "-eu", "-c", f"{script}\n{ask}"], capture_output=True, timeout=20, check=False
        )
        self.assertEqual(b"", result.stderr)
        return set(result.stdout.decode().split())

    def test_bash(self) -> None:
        """Verbs, subcommands, their options, commands of the server, and global options are
        completed."""
        self.assertEqual({"drain"}, self.completed("disque dr"))
        self.assertEqual({"ADDJOB"}, self.completed("disque -p 1 ADD"))
        self.assertEqual({"--from-line"}, self.completed("disque fill --fr"))
        self.assertEqual({"check", "create"}, self.completed("disque cluster c"))
        self.assertEqual({"--json"}, self.completed("disque -h a cluster check --js"))
        self.assertIn("--all-nodes", self.completed("disque --a"))

    def test_others(self) -> None:
        """Every verb is in the scripts of the other shells."""
        for shell in ("zsh", "fish"):
            status, output, errors = self.disque("completion", shell)
            self.assertEqual((0, ""), (status, errors))
            for word in (*VERBS, "ADDJOB", "all-nodes", "from-line", "evacuate"):
                self.assertIn(word, output)
            program = shutil.which(shell)
            if program is not None:
                check = [program, "-n"]
                subprocess.run(check, input=output.encode(), timeout=20, check=True)

    def test_words(self) -> None:
        """The completions include the options of the usage and those of the verbs."""
        self.assertTrue({"-h", "--tls", "--pipe-timeout", "-e", "--version"} <= set(options()))
        self.assertTrue({"", "list", "requeue"} <= set(below("dead")))


class VersionTests(SynchronousTestCase):
    """The versions of the other programs."""

    def test_check_aof(self) -> None:
        """The version is shown in the same form as by the client."""
        result = run("disque_tx.cli.programs.check_aof", "--version")
        expected = f"disque-check-aof {__version__}\n".encode()
        self.assertEqual((0, expected), (result.returncode, result.stdout))

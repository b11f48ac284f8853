"""``make demo``, as people run it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from tests.acceptance.daemon import DaemonTestCase, environment, wait_for


class PipeTests(DaemonTestCase):
    """The demonstration where nobody can press a key."""

    def run_until(self, text: str, *words: str) -> tuple[subprocess.Popen[str], str]:
        """Start it, and read until it shows this."""
        process = subprocess.Popen(
            [sys.executable, "-m", "disque_tx.cli.programs.demo", *words],
            env=environment(TMPDIR=str(self.short_folder())),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        shown = ""
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        while text not in shown and (line := process.stdout.readline()):
            shown += line
        return process, shown

    def test_ends(self) -> None:
        """No console is offered that is gone before anybody can look at it; how to have one is
        said."""
        process, shown = self.run_until("files are removed")
        self.assertNotIn("http://", shown)
        self.assertIn("make demo STAY=1", shown)
        self.assertEqual(0, process.wait())

    def test_stays(self) -> None:
        """On demand the daemon stays until it is told to end."""
        process, shown = self.run_until("Visit the console: ", "--stay")
        (console,) = re.findall(r"Visit the console: (\S+)", shown)
        with urlopen(console) as answer:
            self.assertEqual(200, answer.status)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait())


class TerminalTests(DaemonTestCase):
    """The demonstration in a terminal."""

    def setUp(self) -> None:
        """Start it on a terminal of its own."""
        self.temporary = self.short_folder()
        self.terminal, inner = os.openpty()
        self.addCleanup(os.close, self.terminal)
        os.set_blocking(self.terminal, False)
        self.shown = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "disque_tx.cli.programs.demo"],
            env=environment(TMPDIR=str(self.temporary)),
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
        )
        os.close(inner)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)

    def output(self) -> str:
        """Everything that is shown until now."""
        try:
            while data := os.read(self.terminal, 4096):
                self.shown += data.decode()
        except (BlockingIOError, OSError):
            pass  # nothing yet, or nobody writes any more
        return self.shown

    def end(self, number: int) -> None:
        """Send a signal, and wait until everything is gone."""
        daemon = self.daemons()
        self.assertEqual(1, len(daemon))
        self.process.send_signal(number)
        wait_for(lambda: self.output() and self.process.poll() is not None, "it has ended")
        self.assertEqual(0, self.process.returncode)
        self.assertIn("is stopped and its files are removed", self.output())
        self.assertEqual([], list(self.temporary.iterdir()))
        self.assertEqual([], [pid for pid in daemon if Path(f"/proc/{pid}").exists()])

    def daemons(self) -> list[str]:
        """The IDs of the processes that it has started."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        return Path(path).read_text().split()

    def test_console_can_be_visited(self) -> None:
        """After the figures the daemon stays, with jobs, until Ctrl-C; then nothing is left."""
        wait_for(lambda: "Press Ctrl-C to end" in self.output(), "it says how to end it")
        self.assertTrue(self.shown.startswith("This shows disque-tx at work for 6 seconds"))
        (console,) = re.findall(r"Visit the console: (\S+)", self.shown)
        with urlopen(console) as answer:
            self.assertIn("<!doctype html>", answer.read().decode().lower())
        self.end(signal.SIGINT)

    def test_closed_terminal(self) -> None:
        """A terminal that is closed early leaves no daemon behind."""
        wait_for(lambda: "with a console" in self.output(), "the daemon serves")
        self.end(signal.SIGHUP)

"""Workers of frameworks in processes of their own, and what their tasks report."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.acceptance.daemon import START_S, DaemonTestCase, environment, wait_for

#: What every program of these tests begins with: tasks report by appending a line to a file.
REPORT = """
import os, sys, time
def report(text):
    with open(os.environ["REPORT"], "a") as file:
        file.write(text + chr(10))
"""


class FrameworkTestCase(DaemonTestCase):
    """A folder with a program, and processes that run it. RETRY is so long that no job that waited
    is delivered again in the moment before its first heartbeat, unless a test shortens it."""

    def setUp(self) -> None:
        self.place = self.folder()
        self.report = self.place / "report"
        self.report.touch()
        self.variables: dict[str, str] = {"REPORT": str(self.report), "RETRY": "60"}

    def write(self, name: str, source: str) -> None:
        """A module of the program."""
        (self.place / f"{name}.py").write_text(REPORT + source)

    def spawn(self, *words: str) -> subprocess.Popen[bytes]:
        """A process of its own group, killed with all its children after the test. ``words``: what
        the interpreter is to run."""
        path = os.pathsep.join((str(self.place), environment()["PYTHONPATH"]))
        with open(self.place / f"{len(list(self.place.iterdir()))}.out", "wb") as output:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=self.place,
                env={**environment(**self.variables), "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.addCleanup(kill, process)
        return process

    def run_program(self, source: str) -> str:
        """The output of a short program in the folder, which must succeed."""
        path = os.pathsep.join((str(self.place), environment()["PYTHONPATH"]))
        done = subprocess.run(
            [sys.executable, "-c", source],
            cwd=self.place,
            env={**environment(**self.variables), "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * START_S,
        )
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def shorten_retry(self) -> None:
        """For tests in which RETRY runs out, or has to be renewed."""
        self.variables["RETRY"] = "2"

    def reported(self) -> Counter[str]:
        """The lines that tasks have reported, and how often."""
        return Counter(self.report.read_text().splitlines())

    def wait_reported(self, *lines: str, timeout_s: float = 2 * START_S) -> None:
        """Until each of these lines was reported."""
        try:
            wait_for(lambda: not set(lines) - set(self.reported()), f"{lines}", timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; reported: {self.reported()}; {self.output()}") from None

    def output(self) -> str:
        """What all processes have printed."""
        return "\n".join(
            f"{path.name}: {path.read_text(errors='replace')}"
            for path in sorted(Path(self.place).glob("*.out"))
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def stop(process: subprocess.Popen[bytes]) -> int:
    """Have a process finish its work; returns its exit status."""
    process.send_signal(signal.SIGTERM)
    return process.wait(START_S)

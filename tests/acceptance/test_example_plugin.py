"""The example of a plugin: built, installed into an environment of its own, and used there."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import venv
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from twisted.trial.unittest import SkipTest

from tests.acceptance.daemon import START_S, DaemonTestCase, free_port, import_paths

_EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "lines"
#: The first release that builds wheels by itself.
_SETUPTOOLS_LEAST = (70, 1)


def require_setuptools() -> None:
    """Skip the test where a package cannot be built without looking for one that builds it."""
    try:
        found = version("setuptools")
    except PackageNotFoundError:
        found = "0"
    if tuple(map(int, found.split(".")[:2])) < _SETUPTOOLS_LEAST:
        raise SkipTest("setuptools is missing, or older than 70.1; the extra 'test' has it.")


class LinesTests(DaemonTestCase):
    """``examples/lines``."""

    def run_program(self, *words: str) -> str:
        """Run a program to its end, which must be a good one."""
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=4 * START_S,
            check=False,
        )
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def installed(self) -> str:
        """The Python of a new environment with the example. What the example needs is that of the
        environment under test."""
        folder = self.folder()
        source = folder / "source"
        shutil.copytree(_EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__", "*.cache"))
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
        plain = ("--no-index", "--no-deps")
        wheels = str(folder / "wheels")
        self.run_program(*pip, "wheel", *plain, "--no-build-isolation", "-w", wheels, str(source))
        (wheel,) = Path(wheels).iterdir()
        venv.create(folder / "env", symlinks=True)
        python = str(folder / "env" / "bin" / "python")
        self.run_program(*pip, "--python", python, "install", *plain, str(wheel))
        (site,) = (folder / "env").glob("lib/python3*/site-packages")
        self.assertTrue((site / "twisted" / "plugins" / "disque_lines_plugin.py").exists())
        shared = [path for path in sys.path if path.endswith("site-packages")] + import_paths()
        (site / "under_test.pth").write_text("".join(f"{path}\n" for path in shared))
        return python

    def test_used(self) -> None:
        """Who follows the how-to gets a daemon that turns lines into jobs."""
        require_setuptools()
        python = self.installed()
        self.run_program(
            python,
            *("-m", "twisted.trial", "--temp-directory", str(self.folder() / "trial")),
            str(shutil.copy(_EXAMPLE / "test_disque_lines.py", self.folder())),
        )
        port = free_port()
        daemon = self.daemon(f"listen lines tcp:{port}:interface=127.0.0.1")
        daemon.program = (python, *daemon.program[1:])
        daemon.start()
        with socket.create_connection(("127.0.0.1", port), START_S) as sock:
            sock.settimeout(START_S)
            sock.sendall(b"mail Dear Alice\nnonsense\n")
            answers = sock.makefile("rb")
            job_id = answers.readline().strip()
            self.assertTrue(answers.readline().startswith(b"ERROR ERR A line is"))
            client = daemon.client()
            self.assertIn(b" name=lines ", client.call("CLIENT", "LIST"))
            self.assertEqual(
                [[b"mail", job_id, b"Dear Alice"]], client.call("GETJOB", "FROM", "mail")
            )
            self.assertIn(b"protocol_lines:connected=1,", client.call("INFO", "protocols"))

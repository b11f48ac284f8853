"""The program ``disque``, run as its users run it."""

from __future__ import annotations

import subprocess
import sys

from tests.acceptance.daemon import environment

PROGRAM = (sys.executable, "-m", "disque_tx.cli.programs.client")
_RUN_S = 120.0


def disque(*words: str | float, stdin: bytes = b"", **variables: str) -> tuple[int, str, str]:
    """Run the program to its end; returns exit status, output and error output."""
    result = subprocess.run(
        [*PROGRAM, *map(str, words)],
        input=stdin,
        capture_output=True,
        env=environment(**variables),
        timeout=_RUN_S,
        check=False,
    )
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def started(
    *words: str | int, stdout: int = subprocess.DEVNULL, stderr: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """Start the program with the given output and error output."""
    return subprocess.Popen(
        [*PROGRAM, *map(str, words)],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
    )

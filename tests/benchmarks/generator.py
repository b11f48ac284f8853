"""The load generator of the benchmark beside other servers, compiled once, and its runs."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SkipTest

_SOURCES = Path(__file__).resolve().parents[2] / "benchmarks" / "peers" / "generator"
_TIMEOUT_S = 120.0


class GeneratorError(Exception):
    """The generator gave up; the text says why."""


@functools.cache
def _program() -> Path:
    """The compiled generator, with all warnings as errors."""
    if shutil.which("cc") is None:
        raise SkipTest("There is no C compiler here, which the load generator needs.")
    program = Path(tempfile.mkdtemp(prefix="peerload-"), "peerload")
    command = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]
    subprocess.run([*command, program, *sorted(_SOURCES.glob("*.c"))], check=True)
    return program


def load(kind: str, port: int, *options: str) -> dict[str, Any]:
    """What a run reports. ``options``: of the generator, besides the kind of server and its port.
    Raises :class:`GeneratorError` if it gives up, and SkipTest without a C compiler."""
    command = [str(_program()), "-t", kind, "-p", str(port), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise GeneratorError(done.stderr.strip())
    result: dict[str, Any] = json.loads(done.stdout)
    return result

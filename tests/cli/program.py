"""Runs the programs as their users do, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import disque_tx


def run(
    module: str,
    *argv: str,
    stdin: bytes = b"",
    cwd: str | None = None,
    environ: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run ``python -m module argv...`` and return its exit status and output."""
    source = os.path.dirname(os.path.dirname(os.path.abspath(disque_tx.__file__)))
    return subprocess.run(
        [sys.executable, "-m", module, *argv],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={"PYTHONPATH": source, **(environ or {})},
        timeout=20,
        check=False,
    )

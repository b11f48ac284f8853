"""Nodes of their own for benchmarks of clients."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from disque_tx import Disque


@contextmanager
def running(port: int, folder: Path, compiled: str) -> Iterator[subprocess.Popen[bytes]]:
    """A node that serves at a port of 127.0.0.1, of the package in the folder ``compiled`` if that
    is there. ``folder``: its files; created."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ)
    if Path(compiled, "disque_tx").is_dir():
        environment["PYTHONPATH"] = str(Path(compiled).resolve())
    words = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    node = subprocess.Popen(
        [sys.executable, "-m", "disque_tx.cli.programs.server", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    try:
        with Disque(f"127.0.0.1:{port}", patience_s=20.0, discover=False) as client:
            client.ping()
        yield node
    finally:
        node.kill()
        node.wait()

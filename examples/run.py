"""Runs an example of a framework: ``python examples/run.py celery``; or ``django``,
``django_q2``, ``dramatiq``, ``taskiq``.

Starts a node, and a worker of the example; runs its ``send.py``, which sends tasks and prints their
results; then stops both. Needs the package with the extra of the same name, for example
``pip install 'disque-tx[celery]'`` or ``'disque-tx[django-q2]'``.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
#: The command of each worker, without the interpreter.
WORKERS: Final = {
    "celery": "-m celery -A shop worker --concurrency 2 --loglevel WARNING",
    "django": "manage.py disque_worker",
    "django_q2": "manage.py qcluster",
    "dramatiq": "-m dramatiq shop --processes 1 --threads 4",
    "taskiq": "-m taskiq worker shop:broker --workers 1",
}
#: What is run before the worker starts.
PREPARATIONS: Final = {"django_q2": "manage.py migrate --verbosity 0"}
_PORTS: Final = range(17_711, 27_711)
_START_S: Final = 60.0
_STOP_S: Final = 30.0


def main() -> int:
    """Run one; returns the exit status."""
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name not in WORKERS:
        print(f"Usage: python examples/run.py {'|'.join(WORKERS)}", file=sys.stderr)
        return 2
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="disque-example-") as folder:
        environ = {**os.environ, "DISQUE_NODES": f"127.0.0.1:{port}", "EXAMPLE_FOLDER": folder}
        node = ["-m", "disque_tx.cli.programs.server", "--port", str(port), "--dir", folder]
        log = ["--logfile", str(Path(folder) / "log")]
        with _running([*node, *log, "--bind", "127.0.0.1"], Path(folder), environ) as process:
            _wait_for(port, process)
            if name in PREPARATIONS:
                words = [sys.executable, *PREPARATIONS[name].split()]
                subprocess.run(words, cwd=HERE / name, env=environ, check=True)
            with _running(WORKERS[name].split(), HERE / name, environ):
                sending = [sys.executable, "send.py"]
                return subprocess.run(sending, cwd=HERE / name, env=environ, check=False).returncode


@contextmanager
def _running(
    words: list[str], folder: Path, environ: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process for as long as the block runs."""
    process = subprocess.Popen([sys.executable, *words], cwd=folder, env=environ)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    # Drawn, so that two examples that are started at once do not take the same one.
    for port in random.sample(_PORTS, 100):
        with socket.socket() as sock, socket.socket() as bus:
            try:
                sock.bind(("127.0.0.1", port))
                bus.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
        return port
    raise SystemExit("There is no free port.")


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline_s:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit("The node did not start.")


if __name__ == "__main__":
    sys.exit(main())

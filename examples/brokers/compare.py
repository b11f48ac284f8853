"""The same Celery application on Redis and on Disque, side by side for a minute.

Tasks that take longer than the time-out of the broker, tasks that are to begin later than that, and
short tasks whose worker is killed. In the end a table says how many were done once, how often
others were, and which were lost. ``make demo-celery`` runs it; it needs ``redis-server``.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
#: An hour of Redis' default passes in so many seconds.
TIMEOUT_S: Final = 8
#: The option after which a task whose worker is gone goes to another one.
TIMEOUTS: Final = {"redis": "visibility_timeout", "disque": "retry"}
LASTS_S: Final = 60
KILL_AFTER_S: Final = 6
_START_S: Final = 30
#: Kind → number of tasks, seconds that each takes, seconds after which it is to begin.
TASKS: Final = {
    "takes 2.5 x the time-out": (4, 20, 0),
    "begins after 3 x the time-out": (20, 0, 24),
    "short, its worker is killed": (20, 1, 0),
}


class Broker:
    """A server, and workers of the application on it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder / name
        self._folder.mkdir()
        self.done = self._folder / "done"
        self.done.touch()
        port = _free_port()
        if name == "redis":
            url = f"redis://127.0.0.1:{port}/0"
            words = ["redis-server", "--port", str(port), "--save", "", "--dir", str(self._folder)]
        else:
            url = f"disque://127.0.0.1:{port}"
            words = [sys.executable, "-m", "disque_tx.cli.programs.server", "--port", str(port)]
            words += ["--bind", "127.0.0.1", "--dir", str(self._folder)]
        self._environ = {
            **os.environ,
            "BROKER": url,
            "DONE": str(self.done),
            "OPTIONS": json.dumps({TIMEOUTS[name]: TIMEOUT_S}),
        }
        self._processes = [self._run(words)]
        _wait_for(port)

    def _run(self, words: list[str]) -> subprocess.Popen[bytes]:
        with open(self._folder / "output", "ab") as output:
            return subprocess.Popen(
                words,
                cwd=HERE,
                env=self._environ,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start one with four processes."""
        words = [sys.executable, "-m", "celery", "-A", "app", "worker", "--concurrency", "4"]
        worker = self._run([*words, "--hostname", f"{time.monotonic_ns()}@here"])
        self._processes.append(worker)
        return worker

    def send(self) -> None:
        """Add all tasks, by another process, as a program would."""
        lines = ["from app import work"]
        for kind, (count, takes_s, later_s) in TASKS.items():
            for number in range(count):
                arguments = (f"{kind}:{number}", takes_s)
                lines.append(f"work.apply_async({arguments!r}, countdown={later_s})")
        words = [sys.executable, "-c", "\n".join(lines)]
        subprocess.run(words, cwd=HERE, env=self._environ, check=True)

    def stop(self) -> None:
        """End everything at once: what matters is written down."""
        for process in reversed(self._processes):
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def rows(done: Path) -> list[tuple[str, int, int, int]]:
    """Kind of task, and how many were done once, more often, and never."""
    times = Counter(done.read_text().splitlines())
    found = []
    for kind, (count, _takes_s, _later_s) in TASKS.items():
        each = [times[f"{kind}:{number}"] for number in range(count)]
        found.append((kind, each.count(1), sum(n > 1 for n in each), each.count(0)))
    return found


def main() -> int:
    """Run both; returns the exit status."""
    if shutil.which("redis-server") is None:
        print("redis-server is missing: install it, for example by apt install redis-server.")
        return 1
    print(f"One Celery application on Redis and on Disque, for {LASTS_S} s. An hour, Redis'")
    print(f"visibility time-out, passes in {TIMEOUT_S} s here; one of two workers is killed.")
    with tempfile.TemporaryDirectory(prefix="disque-brokers-") as folder:
        brokers = [Broker(name, Path(folder)) for name in TIMEOUTS]
        try:
            first = [broker.start_worker() for broker in brokers]
            for broker in brokers:
                broker.start_worker()
                broker.send()
            time.sleep(KILL_AFTER_S)
            for worker in first:
                kill(worker)
            for broker in brokers:
                broker.start_worker()
            time.sleep(LASTS_S - KILL_AFTER_S)
        finally:
            for broker in brokers:
                broker.stop()
        print(f"\n{'':32}{'once':>8}{'more often':>12}{'not yet':>10}")
        for broker in brokers:
            for kind, once, more, never in rows(broker.done):
                print(f"{broker.name:8}{kind:32}"[:40] + f"{once:>4}{more:>10}{never:>10}")
    return 0


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port if port < 50_000 else _free_port()


def _wait_for(port: int) -> None:
    deadline_s = time.monotonic() + _START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > deadline_s:
                raise SystemExit(f"Nothing listens at port {port}.") from None
            time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())

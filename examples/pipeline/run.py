"""``make demo-pipeline``: a cluster at work for some seconds, and a report on what happened.

Three daemons with event logs, a producer, and two flaky workers, of which one is killed. Then the
logs become a table, the table is audited, and the report is left in a file.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from steps import step

from disque_tx import Disque
from disque_tx.client.errors import ClientError

HERE: Final = Path(__file__).resolve().parent
_PORTS: Final = range(17_711, 27_711)
_BUS_OFFSET: Final = 10_000
_START_S: Final = 60.0
_WORK_S: Final = 18.0
_KILL_AFTER_S: Final = 6.0
_DRAIN_S: Final = 10.0
_END_S: Final = 10.0


def main() -> int:
    """Run the demonstration; returns the exit status."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="disque-pipeline-") as name:
        folder = Path(name)
        try:
            _work(folder)
            _report(folder, arguments.html)
        except KeyboardInterrupt:
            print("\nInterrupted; all processes are ended and all files removed.", file=sys.stderr)
            return 130
    print(f"The report: {arguments.html.resolve()}")
    if arguments.open:
        webbrowser.open(arguments.html.resolve().as_uri())
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A cluster at work, and a report on it.")
    parser.add_argument("html", nargs="?", type=Path, default=Path("queues.html"))
    parser.add_argument("--open", action="store_true", help="show the report in a browser")
    return parser.parse_args()


# -- the cluster at work -------------------------------------------------------------------------


def _work(folder: Path) -> None:
    with contextlib.ExitStack() as processes:
        ports = list(_free_ports(3))
        with step(1, "Three daemons, in a cluster"):
            for port in ports:
                processes.enter_context(_daemon(folder, port))
            _join(ports)
        addresses = [f"127.0.0.1:{port}" for port in ports]
        # Jobs are added at one node and fetched at the others, so they move.
        processes.enter_context(_worker(folder, addresses[1]))
        victim = processes.enter_context(_worker(folder, addresses[2]))
        producer = _program(folder, "producer", str(HERE / "producer.py"), addresses[0], _WORK_S)
        made = processes.enter_context(producer)
        with step(2, "A producer and two workers, of which one is killed", f"{_WORK_S:.0f} s"):
            time.sleep(_KILL_AFTER_S)
            victim.kill()
            processes.enter_context(_worker(folder, addresses[2]))
            if made.wait():
                raise SystemExit(f"The producer failed:\n{(folder / 'producer.out').read_text()}")
        with step(3, "Workers alone, until the rest is done", f"{_DRAIN_S:.0f} s"):
            time.sleep(_DRAIN_S)


@contextlib.contextmanager
def _program(folder: Path, name: str, *words: object) -> Iterator[subprocess.Popen[bytes]]:
    """A Python program, ended with SIGTERM. Ctrl-C is for this process alone, which ends it."""
    with open(folder / f"{name}.out", "ab") as output:
        process = subprocess.Popen(
            [sys.executable, *map(str, words)],
            cwd=HERE,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _daemon(folder: Path, port: int) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    home = folder / f"node-{port}"
    home.mkdir()
    settings = {
        "port": port,
        "bind": "127.0.0.1",
        "dir": home,
        "eventlog": "yes",
        "eventlog-dir": folder / "events",
        "eventlog-body": "yes",
    }
    words = [word for name, value in settings.items() for word in (f"--{name}", value)]
    return _program(folder, f"node-{port}", "-m", "disque_tx.cli.programs.server", *words)


def _worker(
    folder: Path, address: str
) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    words = ("work", "worker:handlers", "--addresses", address, "--grace", 2)
    return _program(folder, "worker", "-m", "disque_tx.cli.programs.client", *words)


def _free_ports(count: int) -> Iterator[int]:
    """Ports that are free, and those of their buses; drawn, so that two that are started at once
    do not take the same ones."""
    for port in random.sample(_PORTS, 100):
        with contextlib.suppress(OSError):
            for number in (port, port + _BUS_OFFSET):
                with socket.socket() as sock:
                    sock.bind(("127.0.0.1", number))
            yield port
            count -= 1
        if not count:
            return


def _join(ports: list[int]) -> None:
    """Make the daemons one cluster, as soon as they answer."""
    _wait_for(lambda: all(_nodes(port) for port in ports), "the daemons answer")
    with Disque(f"127.0.0.1:{ports[0]}", discover=False) as first:
        for port in ports[1:]:
            first.cluster_meet("127.0.0.1", port)
    _wait_for(lambda: all(_nodes(port) == len(ports) for port in ports), "all know each other")


def _nodes(port: int) -> int:
    """How many nodes one of them can reach, with itself."""
    try:
        with Disque(f"127.0.0.1:{port}", discover=False) as client:
            return int(client.cluster_info()["cluster_reachable_nodes"]) + 1
    except ClientError:
        return 0


def _wait_for(condition: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + _START_S
    while not condition():
        if time.monotonic() > end_s:
            raise SystemExit(f"Waited {_START_S:.0f} s in vain until {what}.")
        time.sleep(0.1)


# -- what happened -------------------------------------------------------------------------------


def _report(folder: Path, html: Path) -> None:
    """Run the pipeline in a process group of its own: processes of Spark end with it."""
    words = (str(HERE / "report.py"), str(folder), str(html))
    process = subprocess.Popen([sys.executable, *words], start_new_session=True)
    try:
        if status := process.wait():
            raise SystemExit(status)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


if __name__ == "__main__":
    sys.exit(main())

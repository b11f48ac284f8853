"""``make demo``: runs a real daemon, a producer and a worker for some seconds, and cleans up.

In a terminal, and with ``--stay`` (``make demo STAY=1``) everywhere, the daemon then stays until it
is told to end, with few jobs, so that its console can be visited.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final, NoReturn

from disque_tx.cli.connection import (
    ServerAddress,
    ServerConnection,
    ServerConnectionLost,
    ServerUnreachable,
)
from disque_tx.core.nodes.addresses import BUS_PORT_OFFSET

_SECONDS: Final = 6.0
_STAY: Final = "--stay"
_BATCH: Final = 50
#: How long the daemon may take to start, even on a busy machine.
_START_WITHIN_S: Final = 60.0
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Between batches of jobs, while people look at the console.
_CALM_S: Final = 1.0
#: No rate is shown earlier, because it would be random.
_RATE_AFTER_S: Final = 0.5
#: These, and those of the cluster bus 10,000 above, are below the system's ports for outgoing
#: connections.
_PORTS: Final = range(12_000, 22_000)
_CONFIGURATION: Final = "bind 127.0.0.1\nappendonly yes\nloglevel warning\n"


class DemoCounts:
    """Jobs so far; written by one thread each. ``pause_s``: between two batches of jobs."""

    def __init__(self) -> None:
        self.added = 0
        self.done = 0
        self.pause_s = 0.0
        self.stop = False


def main(words: list[str] | None = None) -> int:
    """Run the demonstration; returns the exit status."""
    words = sys.argv[1:] if words is None else words
    stays = _STAY in words or (sys.stdin.isatty() and sys.stdout.isatty())
    print(introduction(stays), flush=True)
    for number in _SIGNALS:
        signal.signal(number, _interrupted)
    with tempfile.TemporaryDirectory(prefix="disque-demo-") as folder:
        try:
            result = _run(folder, stays)
        except KeyboardInterrupt:
            print()
            result = 0
    print("The daemon is stopped and its files are removed.", flush=True)
    return result


def introduction(stays: bool) -> str:
    """What will happen, and for how long. ``stays``: whether somebody can end it."""
    text = (
        f"This shows disque-tx at work for {_SECONDS:.0f} seconds: a daemon starts on free ports of"
        " this machine,\none program adds jobs, and another one fetches and acknowledges them."
    )
    if stays:
        text += " Then the daemon stays\nuntil you press Ctrl-C, for you to visit its console."
    else:
        text += " Then all ends;\nmake demo STAY=1 keeps the daemon, for you to visit its console."
    return f"{text} Nothing is left behind."


def _interrupted(_number: int, _frame: FrameType | None) -> NoReturn:
    """Ends the demonstration; from now on no signal disturbs the cleaning up."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _run(folder: str, stays: bool) -> int:
    port, http = _free_port(), _free_port()
    console = f"http://127.0.0.1:{http}/"
    with _daemon(folder, port, http) as daemon:
        if not _answers(port):
            print(
                f"The daemon did not start within {_START_WITHIN_S:.0f} seconds.",
                file=sys.stderr,
            )
            return 1
        where = f", with a console: {console}" if stays else ""
        print(f"The daemon serves on port {port}{where}", flush=True)
        with _working(port) as counts:
            _show(counts)
            _print_next_steps()
            if stays:
                counts.pause_s = _CALM_S
                print(f"Visit the console: {console}    Press Ctrl-C to end.", flush=True)
                daemon.wait()
        if daemon.poll() is not None:
            print(f"The daemon has ended, with status {daemon.returncode}.", file=sys.stderr)
            return 1
    return 0


def _free_port() -> int:
    """A port that is free, together with its port of the cluster bus."""
    for port in random.sample(_PORTS, 100):
        with contextlib.suppress(OSError):
            for number in (port, port + BUS_PORT_OFFSET):
                with socket.socket() as sock:
                    sock.bind(("127.0.0.1", number))
            return port
    return 7711


@contextlib.contextmanager
def _daemon(folder: str, port: int, http: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "disque_tx.cli.programs.server", "-"]
    listen = f"listen http tcp:{http}:interface=127.0.0.1"
    text = f"{_CONFIGURATION}port {port}\ndir {folder}\nlogfile {folder}/log\n{listen}\n"
    # Ctrl-C is for this program, which ends the daemon when its clients are done.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    process.stdin.write(text.encode())
    process.stdin.close()
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _answers(port: int) -> bool:
    deadline_s = time.monotonic() + _START_WITHIN_S
    while time.monotonic() < deadline_s:
        try:
            ServerConnection(ServerAddress("127.0.0.1", port)).call([b"PING"])
        except ServerUnreachable:
            time.sleep(0.02)
        else:
            return True
    return False


@contextlib.contextmanager
def _working(port: int) -> Iterator[DemoCounts]:
    """A producer and a worker, in threads."""
    counts = DemoCounts()
    threads = [
        threading.Thread(target=_until_lost, args=(work, port, counts), daemon=True)
        for work in (_produce, _consume)
    ]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        counts.stop = True
        for thread in threads:
            thread.join()


def _until_lost(work: Callable[[int, DemoCounts], None], port: int, counts: DemoCounts) -> None:
    # Whether the daemon has ended by itself is reported once, at the end.
    with contextlib.suppress(ServerUnreachable, ServerConnectionLost):
        work(port, counts)


def _show(counts: DemoCounts) -> None:
    """Show the progress."""
    start_s = time.monotonic()
    live = sys.stdout.isatty()
    passed_s = 0.0
    while passed_s < _SECONDS:
        time.sleep(0.1 if live else 1.0)
        # The rate is over the whole time in which these jobs were done.
        passed_s = time.monotonic() - start_s
        line = progress_line(counts, passed_s)
        print(f"\r{line}", end="" if live else "\n", flush=True)
    rate = counts.done / passed_s
    print(f"\n{rate:.0f} jobs per second were added, fetched and acknowledged.")


def progress_line(counts: DemoCounts, passed_s: float) -> str:
    """The progress after ``passed_s``; without a rate while that would be random."""
    bar = "#" * min(30, int(30 * passed_s / _SECONDS))
    rate = f"{counts.done / passed_s:8.0f} jobs/s" if passed_s >= _RATE_AFTER_S else ""
    return f"  [{bar:30}] {counts.added:8} added  {counts.done:8} done  {rate}"


def _produce(port: int, counts: DemoCounts) -> None:
    connection = ServerConnection(ServerAddress("127.0.0.1", port))
    request = [b"ADDJOB", b"demo", b"an image to resize", b"1000"]
    while not counts.stop:
        if counts.added - counts.done > 20 * _BATCH:
            time.sleep(0.001)  # the worker is behind: a real producer would have other work
            continue
        for _ in range(_BATCH):
            connection.send(request)
        for _ in range(_BATCH):
            connection.read()
        counts.added += _BATCH
        time.sleep(counts.pause_s)
    connection.close()


def _consume(port: int, counts: DemoCounts) -> None:
    connection = ServerConnection(ServerAddress("127.0.0.1", port))
    request = [b"GETJOB", b"TIMEOUT", b"200", b"COUNT", b"%d" % _BATCH, b"FROM", b"demo"]
    while not counts.stop or counts.done < counts.added:
        jobs = connection.call(request)
        if not isinstance(jobs, list):
            continue
        ids = [job[1] for job in jobs if isinstance(job, list)]
        connection.call([b"ACKJOB", *[job_id for job_id in ids if isinstance(job_id, bytes)]])
        counts.done += len(ids)
    connection.close()


def _print_next_steps() -> None:
    program = os.path.join(os.path.dirname(sys.executable), "")
    print(
        f"""
What to try next:
  {program}disque-server                      a daemon on port 7711
  {program}disque addjob mail 'hello' 0       add a job, in another terminal
  {program}disque getjob from mail            fetch it
  {program}disque ackjob D-...                acknowledge it: it is done
  {program}disque                             a prompt with completion and help
  {program}disque-server --listen http tcp:7780:interface=127.0.0.1
                                              the same daemon with a console, an API and metrics
"""
    )


if __name__ == "__main__":
    sys.exit(main())

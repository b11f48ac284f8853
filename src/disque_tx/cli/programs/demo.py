"""``make demo``: runs a real daemon, a producer and a worker for some seconds, and cleans up."""

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
from collections.abc import Iterator
from typing import Final

from disque_tx.cli.connection import ServerAddress, ServerConnection, ServerUnreachable
from disque_tx.core.nodes.addresses import BUS_PORT_OFFSET

_SECONDS: Final = 6.0
_BATCH: Final = 50
#: How long the daemon may take to start, even on a busy machine.
_START_WITHIN_S: Final = 60.0
#: No rate is shown earlier, because it would be random.
_RATE_AFTER_S: Final = 0.5
#: These, and those of the cluster bus 10,000 above, are below the system's ports for outgoing
#: connections.
_PORTS: Final = range(12_000, 22_000)
_CONFIGURATION: Final = "bind 127.0.0.1\nappendonly yes\nloglevel warning\n"


class DemoCounts:
    """Jobs so far; written by one thread each."""

    def __init__(self) -> None:
        self.added = 0
        self.done = 0
        self.stop = False


def main() -> int:
    """Run the demonstration; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="disque-demo-") as folder:
        port = _free_port()
        print(f"Starting a daemon on port {port}, its files in {folder} ...")
        http = _free_port()
        with _daemon(folder, port, http):
            if not _answers(port):
                print(
                    f"The daemon did not start within {_START_WITHIN_S:.0f} seconds.",
                    file=sys.stderr,
                )
                return 1
            counts = DemoCounts()
            print(f"Meanwhile, look at its console: http://127.0.0.1:{http}/")
            _work(port, counts)
            _print_next_steps(port, counts)
    print("The daemon is stopped and its files are removed.")
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
def _daemon(folder: str, port: int, http: int) -> Iterator[None]:
    command = [sys.executable, "-m", "disque_tx.cli.programs.server", "-"]
    listen = f"listen http tcp:{http}:interface=127.0.0.1"
    text = f"{_CONFIGURATION}port {port}\ndir {folder}\nlogfile {folder}/log\n{listen}\n"
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(text.encode())
    process.stdin.close()
    try:
        yield
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


def _work(port: int, counts: DemoCounts) -> None:
    """Run a producer and a worker, and show their progress."""
    threads = [
        threading.Thread(target=work, args=(port, counts), daemon=True)
        for work in (_produce, _consume)
    ]
    start_s = time.monotonic()
    for thread in threads:
        thread.start()
    live = sys.stdout.isatty()
    passed_s = 0.0
    while passed_s < _SECONDS:
        time.sleep(0.1 if live else 1.0)
        # The rate is over the whole time in which these jobs were done.
        passed_s = time.monotonic() - start_s
        line = progress_line(counts.added, counts.done, passed_s)
        print(f"\r{line}", end="" if live else "\n", flush=True)
    rate = counts.done / passed_s
    counts.stop = True
    for thread in threads:
        thread.join()
    print(f"\n{rate:.0f} jobs per second were added, fetched and acknowledged.")


def progress_line(added: int, done: int, passed_s: float) -> str:
    """The progress after ``passed_s``; without a rate while that would be random."""
    bar = "#" * min(30, int(30 * passed_s / _SECONDS))
    rate = f"{done / passed_s:8.0f} jobs/s" if passed_s >= _RATE_AFTER_S else ""
    return f"  [{bar:30}] {added:8} added  {done:8} done  {rate}"


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


def _print_next_steps(port: int, counts: DemoCounts) -> None:
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

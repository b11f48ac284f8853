"""Jobs that wait for another attempt, beside jobs that wait because of a DELAY."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader

from benchmarks.daemon.bench import Bench, progress
from benchmarks.daemon.report import at_most
from benchmarks.daemon.servers import Server

_BATCH = 500
_SAMPLES = 20
_DELAY_S = 1


class Session:
    """A connection, and the replies that come on it."""

    def __init__(self, sock: socket.socket, stream: BufferedReader) -> None:
        self._sock = sock
        self._stream = stream

    def send(self, data: bytes) -> None:
        """Requests."""
        self._sock.sendall(data)

    def line(self) -> bytes:
        """The next line; ends the program if it is an error."""
        line = self._stream.readline()
        if line.startswith(b"-") or not line:
            raise SystemExit(f"disque answered {line.decode()}")
        return line


def backoff(bench: Bench) -> None:
    """Their memory, and how late they are."""
    name = f"{bench.backlog:,} jobs in backoff"
    progress(name)
    delayed, held = bench.disque(), bench.disque()
    with _session(delayed) as replies:
        for count in _batches(bench.backlog):
            _add(replies, count, b" DELAY 36000")
    with _session(held) as replies:
        for count in _batches(bench.backlog):
            _add(replies, count, b"")
            _nack(replies, _get(replies, count), 36_000)
    ratio = held.resident() / delayed.resident()
    bench.report.add(name, "bytes ÷ delayed jobs", [ratio], at_most(1.15))
    delayed.stop()
    late_ms = []
    for number in range(bench.rounds):
        progress(f"{name}, round {number + 1} of {bench.rounds}")
        with _session(held) as replies:
            late_ms += [_latest_ms(replies)]
    bench.report.add(name, "ms after the time, the latest of 20", late_ms, at_most(50))
    held.stop()


def _latest_ms(replies: Session) -> float:
    """Put jobs back, one after the other, and see how long after its time each comes again."""
    worst_s = 0.0
    for _ in range(_SAMPLES // 5):
        _add(replies, 5, b"")
        ids = _get(replies, 5)
        due_s = []
        for job_id in ids:
            due_s.append(time.monotonic() + _DELAY_S)
            _nack(replies, [job_id], _DELAY_S)
        for due in due_s:
            (job_id,) = _get(replies, 1)
            worst_s = max(worst_s, time.monotonic() - due)
            replies.send(b"ACKJOB " + job_id + b"\r\n")
            replies.line()
    return worst_s * 1000


@contextmanager
def _session(server: Server) -> Iterator[Session]:
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        yield Session(sock, sock.makefile("rb"))


def _batches(jobs: int) -> Iterator[int]:
    for begun in range(0, jobs, _BATCH):
        yield min(_BATCH, jobs - begun)


def _add(replies: Session, count: int, options: bytes) -> None:
    replies.send(b"ADDJOB q xxxxxxxxxxxxxxxx 0%s\r\n" % options * count)
    for _ in range(count):
        replies.line()


def _get(replies: Session, count: int) -> list[bytes]:
    """Fetch jobs; returns their IDs."""
    ids: list[bytes] = []
    while len(ids) < count:
        replies.send(b"GETJOB COUNT %d FROM q\r\n" % (count - len(ids)))
        for _ in range(int(replies.line()[1:])):
            ids.append([replies.line() for _ in range(7)][4].strip())
    return ids


def _nack(replies: Session, ids: list[bytes], delay_s: int) -> None:
    replies.send(b"NACK DELAY %d %s\r\n" % (delay_s, b" ".join(ids)))
    replies.line()

"""Producers and consumers that pipeline, record the replies, and continue after a crash of the
daemon."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from tests.acceptance.resp import ClosedError, Connection, ReplyError, encode

#: Exceptions that a client sees when the daemon has ended.
GONE = (ClosedError, OSError, TimeoutError)
_PIPELINED = 20


class Load:
    """What the clients of one daemon have sent and received, over all its restarts. ``connect``:
    makes a connection.

    ``added``: IDs that ADDJOB returned, ``once``: those of them with RETRY 0. ``delivered``: ID →
    number of deliveries. ``ack_sent``: IDs whose ACKJOB was sent. ``acked``: IDs whose ACKJOB was
    answered. ``redelivered``: IDs delivered again by a later process than the one that answered
    their ACKJOB.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self.added: set[str] = set()
        self.once: set[str] = set()
        self.delivered: dict[str, int] = {}
        self.acked: set[str] = set()
        self.ack_sent: set[str] = set()
        self.redelivered: set[str] = set()
        self._settled: set[str] = set()

    def begin(self, producers: int, consumers: int) -> None:
        """Start clients on the daemon, which was just started."""
        self._settled = set(self.acked)
        self._stopping.clear()
        work = [self._produce] * producers + [self._consume] * consumers
        self._threads = [threading.Thread(target=self._until_gone, args=(w,)) for w in work]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop the clients, or wait for them after the daemon has ended."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _until_gone(self, work: Callable[[Connection], None]) -> None:
        try:
            connection = self._connect()
        except OSError:
            return
        try:
            while not self._stopping.is_set():
                work(connection)
        except GONE:
            pass
        finally:
            connection.close()

    def _produce(self, connection: Connection) -> None:
        retries = [random.choice((0, 1)) for _ in range(_PIPELINED)]
        body = random.randbytes(random.randrange(300))
        connection.send_raw(
            b"".join(encode("ADDJOB", "q", body, 0, "RETRY", retry) for retry in retries)
        )
        for retry in retries:
            job_id = str(connection.read())
            with self._lock:
                self.added.add(job_id)
                if retry == 0:
                    self.once.add(job_id)

    def note_answer(self, answer: object, once: bool) -> None:
        """Take in an answer to ADDJOB where it may be refused; ``once``: with RETRY 0."""
        if not isinstance(answer, ReplyError):
            with self._lock:
                self.added.add(str(answer))
                if once:
                    self.once.add(str(answer))

    def _consume(self, connection: Connection) -> None:
        jobs = self.fetch(connection)
        acks = [job_id for job_id in jobs if random.random() < 0.5]
        with self._lock:
            self.ack_sent.update(acks)
        connection.send_raw(b"".join(encode("ACKJOB", job_id) for job_id in acks))
        for job_id in acks:
            connection.read()
            with self._lock:
                self.acked.add(job_id)

    def fetch(self, connection: Connection, count: int = _PIPELINED) -> list[str]:
        """Fetch some jobs and record their deliveries."""
        jobs = connection.call("GETJOB", "TIMEOUT", 100, "COUNT", count, "FROM", "q") or []
        ids = [job_id.decode() for _queue, job_id, _body in jobs]
        with self._lock:
            for job_id in ids:
                self.delivered[job_id] = self.delivered.get(job_id, 0) + 1
            self.redelivered.update(self._settled.intersection(ids))
        return ids


def add_many(connection: Connection, count: int, queue: str = "q", *options: str) -> list[str]:
    """Add jobs in one pipeline; returns their IDs."""
    connection.send_raw(
        b"".join(encode("ADDJOB", queue, f"body {n}", 0, *options) for n in range(count))
    )
    return [str(connection.read()) for _ in range(count)]


def job_ids(connection: Connection) -> set[str]:
    """The IDs of all jobs that the daemon has."""
    return set(connection.call("JSCAN", 0, "BUSYLOOP")[1])


def shown(connection: Connection, job_id: str) -> dict[bytes, Any]:
    """The reply of SHOW as a mapping."""
    flat = connection.call("SHOW", job_id)
    return dict(zip(flat[::2], flat[1::2], strict=True))

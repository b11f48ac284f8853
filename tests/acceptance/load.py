"""Producers and consumers that pipeline, note what they were told, and survive the daemon's end."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from tests.acceptance.resp import ClosedError, Connection, encode

#: What ends a client: the daemon did.
GONE = (ClosedError, OSError, TimeoutError)
_PIPELINED = 20


class Load:
    """What the clients of one daemon know, over all its lives. ``connect``: makes a connection.

    ``added``: IDs that ADDJOB returned, ``once``: those of them with RETRY 0. ``delivered``: ID →
    how often. ``acked``: IDs whose ACKJOB was answered. ``asked``: IDs whose ACKJOB was sent.
    ``revived``: IDs delivered in a later life than the one that answered their ACKJOB.
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
        self.asked: set[str] = set()
        self.revived: set[str] = set()
        self._settled: set[str] = set()

    def begin(self, producers: int, consumers: int) -> None:
        """Let clients loose on the daemon, which was just started."""
        self._settled = set(self.acked)
        self._stopping.clear()
        work = [self._produce] * producers + [self._consume] * consumers
        self._threads = [threading.Thread(target=self._until_gone, args=(w,)) for w in work]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """The daemon is gone, or the clients are to go: wait for them."""
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

    def _consume(self, connection: Connection) -> None:
        jobs = self.fetch(connection)
        acks = [job_id for job_id in jobs if random.random() < 0.5]
        with self._lock:
            self.asked.update(acks)
        connection.send_raw(b"".join(encode("ACKJOB", job_id) for job_id in acks))
        for job_id in acks:
            connection.read()
            with self._lock:
                self.acked.add(job_id)

    def fetch(self, connection: Connection, count: int = _PIPELINED) -> list[str]:
        """Take some jobs and note them."""
        jobs = connection.call("GETJOB", "TIMEOUT", 100, "COUNT", count, "FROM", "q") or []
        ids = [job_id.decode() for _queue, job_id, _body in jobs]
        with self._lock:
            for job_id in ids:
                self.delivered[job_id] = self.delivered.get(job_id, 0) + 1
            self.revived.update(self._settled.intersection(ids))
        return ids


def add_many(connection: Connection, count: int, queue: str = "q", *options: str) -> list[str]:
    """Add jobs in one go; returns their IDs."""
    connection.send_raw(
        b"".join(encode("ADDJOB", queue, f"body {n}", 0, *options) for n in range(count))
    )
    return [str(connection.read()) for _ in range(count)]


def job_ids(connection: Connection) -> set[str]:
    """All jobs the daemon knows."""
    return set(connection.call("JSCAN", 0, "BUSYLOOP")[1])


def shown(connection: Connection, job_id: str) -> dict[bytes, Any]:
    """SHOW as a mapping."""
    flat = connection.call("SHOW", job_id)
    return dict(zip(flat[::2], flat[1::2], strict=True))

"""Leases of jobs that a framework holds: they live as long as its process.

The rules are those of :mod:`disque_tx.client.leases`. Each job gets its first heartbeat at once;
until it arrives, a few milliseconds, the job can be delivered to another worker, too. The task goes
on when its lease ends.

One thread sends the heartbeats of all jobs of a process, many in one round trip, whatever the
framework is busy with.
"""

from __future__ import annotations

import heapq
import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import ClientError, TooLate, UnknownJob
from disque_tx.client.leases import Lease
from disque_tx.client.requests import encoding as requests

#: How long a heartbeat may be under way before a job is given back nevertheless.
_ANSWER_S: Final = 10.0
_LOG: Final = logging.getLogger(__name__)


class _Held(Lease):
    """A job that is held. ``address``: of the node that delivered it."""

    __slots__ = ("address", "id")

    def __init__(self, job_id: str, address: Address, due_s: float) -> None:
        super().__init__(due_s)
        self.id = job_id
        self.address = address


class Leases:
    """Sends heartbeats for held jobs, from a thread that starts with the first one.

    ``connect``: makes the connections that the thread uses. ``now_s``: a steady clock. After a fork
    the child holds nothing.
    """

    def __init__(
        self, connect: Callable[[], Servers], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._connect = connect
        self._now_s = now_s
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._held: dict[str, _Held] = {}
        self._due: list[tuple[float, int, _Held]] = []
        self._sending: set[str] = set()
        self._count = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def keep(self, jobs: Iterable[tuple[str, Address]]) -> None:
        """Send heartbeats for these jobs, by ID with the node that delivered each, until they are
        released."""
        if os.getpid() != self._process:
            self._reset()
        due_s = self._now_s()
        with self._changed:
            for job_id, address in jobs:
                held = self._held[job_id] = _Held(job_id, address, due_s)
                self._schedule(held)
            if self._thread is None and self._held:
                self._stopping = False
                self._thread = threading.Thread(target=self._run, name="disque-leases", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def release(self, job_id: str) -> None:
        """Send no more heartbeats for a job that is done. One that was sent may still be
        unanswered."""
        if os.getpid() != self._process:
            self._reset()
        with self._changed:
            self._release(job_id)

    def withdraw(self, job_id: str) -> None:
        """Send no more heartbeats for a job that is to be given back; returns when none is under
        way, or its node does not answer."""
        if os.getpid() != self._process:
            self._reset()
        with self._changed:
            self._release(job_id)
            self._changed.wait_for(lambda: job_id not in self._sending, _ANSWER_S)

    def _release(self, job_id: str) -> None:
        held = self._held.pop(job_id, None)
        if held is not None:
            held.release()

    def holds(self, job_id: str) -> bool:
        """Whether heartbeats are sent for the job."""
        with self._changed:
            return job_id in self._held

    def stop(self) -> None:
        """Release all jobs, and end the thread."""
        if os.getpid() != self._process:
            self._reset()
        with self._changed:
            self._stopping = True
            for held in self._held.values():
                held.release()  # one whose heartbeat is under way is not renewed after it
            self._held.clear()
            self._due.clear()
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    # -- in the thread -----------------------------------------------------------------------

    def _run(self) -> None:
        servers = self._connect()
        try:
            while (batch := self._wait()) is not None:
                self._renew(batch, servers)
                with self._changed:
                    self._sending.clear()
                    self._changed.notify_all()
        finally:
            servers.close()

    def _wait(self) -> list[_Held] | None:
        """The jobs that are due, when some are; ``None`` at the end."""
        with self._changed:
            while not self._stopping:
                batch = self._take_due()
                if batch:
                    return batch
                wait_s = self._due[0][0] - self._now_s() if self._due else None
                self._changed.wait(wait_s)
        return None

    def _take_due(self) -> list[_Held]:
        now_s = self._now_s()
        batch = []
        while self._due and (self._due[0][0] <= now_s or self._due[0][2].over):
            held = heapq.heappop(self._due)[2]
            if not held.over:
                batch.append(held)
        self._sending.update(held.id for held in batch)
        return batch

    def _renew(self, batch: Iterable[_Held], servers: Servers) -> None:
        """Send a heartbeat for each, those of one node together."""
        groups: defaultdict[Address, list[_Held]] = defaultdict(list)
        for held in batch:
            groups[held.address].append(held)
        for address, group in groups.items():
            sent_s = self._now_s()
            ids = [held.id for held in group]
            answers: list[int | ClientError]
            try:
                answers = servers.ask_holders(address, ids, requests.working, _is_unknown)
            except ClientError as error:
                answers = [error] * len(group)
            with self._changed:
                for held, answer in zip(group, answers, strict=True):
                    self._answered(held, answer, sent_s)

    def _answered(self, held: _Held, answer: int | ClientError, sent_s: float) -> None:
        if held.heard(answer, sent_s, self._now_s()):
            level = logging.WARNING if isinstance(answer, TooLate) else logging.DEBUG
            _LOG.log(level, "The lease of job %s ends: %s", held.id, answer)
            del self._held[held.id]
        elif isinstance(answer, ClientError):
            _LOG.debug("The lease of job %s could not be renewed: %s", held.id, answer)
        self._schedule(held)

    def _schedule(self, held: _Held) -> None:
        if held.due_s is not None:
            self._count += 1
            heapq.heappush(self._due, (held.due_s, self._count, held))


def _is_unknown(answer: int | ClientError) -> bool:
    return isinstance(answer, UnknownJob)

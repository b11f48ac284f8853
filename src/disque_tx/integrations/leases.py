"""Leases of jobs that a framework holds: they live as long as its process.

1. RETRY starts when a job is queued, and GETJOB does not restart it: that of a job that waited may
   be over a moment after its delivery. So each job gets a heartbeat (WORKING) at once, which
   restarts RETRY and answers with it. Until it arrives, a few milliseconds, the job can be
   delivered to another worker, too.
2. From then on a heartbeat is sent when :func:`renewal_s` says, counted from the last one.
3. One that got no answer is repeated after a tenth of RETRY, 0.2 s at least.
4. After one that was refused no more are sent, and the task goes on. If half of its TTL is over, it
   may be delivered to another worker meanwhile, which is logged. If the job is acknowledged, or no
   node knows it any more, it is done.
5. A job with RETRY 0 is never delivered again, and gets no more heartbeats, either.
6. WORKING takes a job out of its queue. So a job is given back (NACK) only when no heartbeat for it
   is under way: it would arrive after the NACK, and the job be gone until its RETRY is over.

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

import attrs

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import AlreadyAcknowledged, ClientError, TooLate, UnknownJob
from disque_tx.client.heartbeats import renewal_s
from disque_tx.client.requests import encoding as requests

_AGAIN_S_MIN: Final = 0.2
_PART_AFTER_ERROR: Final = 0.1
#: How long a heartbeat may be under way before a job is given back nevertheless.
_ANSWER_S: Final = 10.0
_LOG: Final = logging.getLogger(__name__)


@attrs.define(eq=False)
class _Held:
    """A job that is held. ``retry_s``: ``None`` until a heartbeat was answered."""

    id: str
    address: Address
    retry_s: int | None = None
    released: bool = False


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
                held = self._held[job_id] = _Held(job_id, address)
                self._schedule(held, due_s)
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
            held.released = True

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
                held.released = True  # one whose heartbeat is under way is not renewed after it
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
        while self._due and (self._due[0][0] <= now_s or self._due[0][2].released):
            held = heapq.heappop(self._due)[2]
            if not held.released:
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
        if held.released:
            return
        if isinstance(answer, TooLate | UnknownJob | AlreadyAcknowledged):
            level = logging.WARNING if isinstance(answer, TooLate) else logging.DEBUG
            _LOG.log(level, "The lease of job %s ends: %s", held.id, answer)
            del self._held[held.id]
            held.released = True
        elif isinstance(answer, ClientError):
            _LOG.debug("The lease of job %s could not be renewed: %s", held.id, answer)
            pause_s = max(_AGAIN_S_MIN, (held.retry_s or 0) * _PART_AFTER_ERROR)
            self._schedule(held, self._now_s() + pause_s)
        elif answer:
            held.retry_s = answer
            self._schedule(held, sent_s + renewal_s(answer))

    def _schedule(self, held: _Held, due_s: float) -> None:
        self._count += 1
        heapq.heappush(self._due, (due_s, self._count, held))


def _is_unknown(answer: int | ClientError) -> bool:
    return isinstance(answer, UnknownJob)

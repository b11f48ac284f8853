"""Fetches messages for one channel, in a thread, so that an event loop never waits for a node."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from disque_tx.client import ClientError
from disque_tx.client.blocking import Disque, TakenJob

_LOG: Final = logging.getLogger(__name__)
#: A GETJOB waits that long, so that other queues, or the end, are noticed soon enough.
_WAIT_S: Final = 1.0


class MessageFetcher:
    """At most one GETJOB at a time. ``arrived``: called, in the thread, with jobs or the error that
    ended a fetch."""

    def __init__(
        self, client: Disque, arrived: Callable[[list[TakenJob] | ClientError], object]
    ) -> None:
        self._client = client
        self._arrived = arrived
        self._changed = threading.Condition()
        self._wish: tuple[tuple[str, ...], int] | None = None
        self._fetching = False
        self._closing = False
        self._thread: threading.Thread | None = None

    def want(self, queues: Sequence[str], count: int) -> None:
        """Fetch up to ``count`` jobs of these queues, the first one first. While a fetch is under
        way, this replaces what is fetched after it."""
        with self._changed:
            if self._closing:
                return
            self._wish = (tuple(queues), count) if queues and count > 0 else None
            if self._wish is None:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="disque-fetch", daemon=True)
                self._thread.start()
            self._changed.notify()

    @property
    def idle(self) -> bool:
        """Whether nothing is being fetched, or will be until :meth:`want`."""
        with self._changed:
            return not self._fetching and self._wish is None

    def abandon(self) -> None:
        """Fetch no more; jobs that are still on their way go back to their queue."""
        with self._changed:
            self._closing = True
            self._wish = None
            self._changed.notify()

    def close(self) -> None:
        """:meth:`abandon`, and wait until the last fetch is over."""
        self.abandon()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2 * _WAIT_S)

    def _run(self) -> None:
        while (wish := self._next()) is not None:
            found: list[TakenJob] | ClientError
            try:
                found = self._client.take_in_order(*wish[0], count=wish[1], timeout_s=_WAIT_S)
            except ClientError as error:
                found = error
            if self._ended(bool(found)):
                self._arrived(found)
            elif isinstance(found, list):
                give_back(self._client, found)

    def _next(self) -> tuple[tuple[str, ...], int] | None:
        with self._changed:
            while self._wish is None and not self._closing:
                self._changed.wait()
            self._fetching = True
            return self._wish

    def _ended(self, found: bool) -> bool:
        """A fetch is over; returns whether somebody wants what it found. If that is nothing, the
        same is fetched again."""
        with self._changed:
            if self._closing:
                return False
            if found:
                self._wish = None
                self._fetching = False
            return found


def give_back(client: Disque, jobs: Sequence[TakenJob]) -> None:
    """Jobs return to their queues; those that cannot, when their RETRY is over."""
    for job in jobs:
        try:
            job.nack()
        except ClientError as error:
            _LOG.info("Job %s comes back after its RETRY: %s", job.id, error)

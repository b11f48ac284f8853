"""Listings of queues and jobs of one node, which come in pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attrs

from disque_tx.client.requests import replies
from disque_tx.client.requests.encoding import Name, Request, Word, encoded
from disque_tx.client.values import JobDetails

_T = TypeVar("_T")


@attrs.frozen
class Scan(Generic[_T]):
    """A listing that comes in pages, each the answer to a request of its own."""

    command: str
    options: tuple[Word, ...]
    parse: Callable[[Any], tuple[int, list[_T]]]

    def page(self, cursor: int) -> Request[tuple[int, list[_T]]]:
        """The request for the page at this cursor, 0 for the first."""
        return Request((self.command, cursor, *self.options), self.parse, repeatable=True)


def queue_scan(
    count: int = 100,
    minlen: int | None = None,
    maxlen: int | None = None,
    importrate: int | None = None,
) -> Scan[str]:
    """QSCAN: the names of the queues of one node, some perhaps more than once.

    ``count``: how many to ask for at a time.

    :raises ScanInterrupted: the node was lost; start again.
    """
    words: list[Word] = ["COUNT", count]
    for word, value in (("MINLEN", minlen), ("MAXLEN", maxlen), ("IMPORTRATE", importrate)):
        if value is not None:
            words += (word, value)
    return Scan("QSCAN", tuple(words), replies.names)


def job_scan(
    queue: Name | None = None,
    states: tuple[str, ...] = (),
    count: int = 100,
    reason: Name | None = None,
) -> Scan[JobDetails]:
    """JSCAN: the jobs of one node, some perhaps more than once.

    ``states``: of wait-repl, active, queued, acked; all if none is named. ``reason``: a glob, for
    jobs that a consumer returned with a reason like this, and for dead letters; originals do not
    know it.

    :raises ScanInterrupted: the node was lost; start again.
    """
    words: list[Word] = ["REPLY", "all", "COUNT", count]
    if queue is not None:
        words += ("QUEUE", encoded(queue))
    for state in states:
        words += ("STATE", state)
    if reason is not None:
        words += ("REASON", encoded(reason))
    return Scan("JSCAN", tuple(words), replies.descriptions)

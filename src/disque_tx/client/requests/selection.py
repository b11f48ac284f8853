"""Which queues a client gets jobs from: names, and patterns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from disque_tx.client.requests import replies
from disque_tx.client.requests.encoding import Name, Request, Word, encoded
from disque_tx.client.values import Job

#: The word of a request between names and patterns.
_BETWEEN: Final = b"MATCH"


@attrs.frozen
class Selection:
    """``queues``: names, the first one first. ``match``: patterns (globs) of further queues, of
    which the one with the fewest jobs in flight is served first. ``except_``: patterns of queues
    that do not count as matching."""

    queues: tuple[bytes, ...]
    match: tuple[bytes, ...] = ()
    except_: tuple[bytes, ...] = ()

    @classmethod
    def of(
        cls,
        queues: Iterable[Name],
        match: Name | Iterable[Name] = (),
        except_: Name | Iterable[Name] = (),
    ) -> Selection:
        """From the arguments of a method; one pattern may stand for a list of them.

        :raises ValueError: there is nothing to get jobs from.
        """
        names = tuple(map(encoded, queues))
        selection = cls(names, _patterns(match), _patterns(except_))
        if selection.except_ and not selection.match:
            raise ValueError("'except_' needs 'match': it says which of the matching queues not.")
        if not names and not selection.match:
            raise ValueError("Name a queue, or a pattern in 'match'.")
        if _BETWEEN in (names[1:] if selection.match else names[1:-1]):
            raise ValueError(
                "Name the queue 'MATCH' first: behind others a node takes it for MATCH."
            )
        return selection

    def request(self, count: int, wait_ms: int | None = None) -> Request[list[Job]]:
        """GETJOB. ``wait_ms``: how long to wait for a job, ``None``: not at all."""
        words: list[Word] = ["GETJOB", "WITHCOUNTERS", "COUNT", count]
        words += ["NOHANG"] if wait_ms is None else ["TIMEOUT", wait_ms]
        for pattern in self.except_:
            words += ["EXCEPT", pattern]
        if self.queues:
            words += ["FROM", *self.queues]
        if self.match:
            words += ["MATCH", *self.match]
        return Request(tuple(words), replies.jobs, (wait_ms or 0) / 1000, True)


def _patterns(given: Name | Iterable[Name]) -> tuple[bytes, ...]:
    if isinstance(given, str | bytes):
        return (encoded(given),)
    return tuple(map(encoded, given))

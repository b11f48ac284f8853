"""The request that moves jobs from one queue to another."""

from __future__ import annotations

from collections.abc import Iterable

from disque_tx.client.requests import replies
from disque_tx.client.requests.encoding import Name, Request, Word, encoded

#: The target of dead letters that go back to where they came from.
BACK = "*"


def queue_move(
    source: Name,
    target: Name,
    *,
    count: int | None = None,
    job_ids: Iterable[Name] = (),
    dead: bool = False,
) -> Request[int]:
    """QMOVE: move jobs that the current node has from one queue to another; returns how many.

    ``count``: at the most. ``job_ids``: only these. ``dead``: the jobs are dead letters, and the
    jobs in them are added again; with ``"*"`` as ``target``, each to the queue it came from.

    :raises Refused: the node is an original, or the first job cannot be added.
    :raises OutcomeUnknown: the answer was lost; some jobs may have been moved.
    """
    words: list[Word] = ["QMOVE", encoded(source), encoded(target)]
    if dead:
        words.append("DEAD")
    if count is not None:
        words += ["COUNT", count]
    ids = list(job_ids)
    if ids:
        words += ["ID", *ids]
    return Request(tuple(words), replies.integer, None)

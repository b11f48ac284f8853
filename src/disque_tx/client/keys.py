"""Adding a job once, and getting to know whether that was now."""

from __future__ import annotations

from typing import Any

import attrs

from disque_tx.client import replies
from disque_tx.client.options import AddOptions
from disque_tx.client.requests import Name, Request, add_words
from disque_tx.client.values import AddedOnce


def add_once(
    queue: Name, body: Name, key: Name, options: AddOptions | None = None
) -> Request[AddedOnce]:
    """ADDJOB UNIQUE: add a job, unless one with this key is not done yet; which of both it was.

    It is repeated when the answer is lost. ``new`` is ``False`` then, if the first request did add
    the job: it says whether the job was added by the request that was answered.

    ``key``: 1 to 512 bytes. ``options``: of the job; see :meth:`add_job`.

    :raises OptionUnknown: the node is an original, which knows no keys.
    :raises NotEnoughReplicas, QueueFull, Paused, OutOfMemory: the job was not added.
    """
    options = attrs.evolve(options or AddOptions(), unique=key)
    words = (*add_words(queue, body, options), "WITHNEW")
    wait_s = options.timeout_ms / 1000 if options.timeout_ms else None
    return Request(words, _added, wait_s, True)


def _added(reply: Any) -> AddedOnce:
    pair = replies.array(reply)
    if len(pair) != 2:
        raise replies.MalformedReply("an ID, and whether it is new", reply)
    return AddedOnce(replies.job_id(pair[0]), replies.integer(pair[1]) == 1)

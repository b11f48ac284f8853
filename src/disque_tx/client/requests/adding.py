"""Requests that add jobs."""

from __future__ import annotations

from typing import Any

import attrs

from disque_tx.client.options import AddOptions
from disque_tx.client.requests import replies
from disque_tx.client.requests.encoding import Name, Request, Word, encoded
from disque_tx.client.values import AddedOnce


def add_job(
    queue: Name,
    body: Name,
    timeout_ms: int = 5000,
    *,
    replicate: int | None = None,
    delay_s: int | None = None,
    retry_s: int | None = None,
    ttl_s: int | None = None,
    maxlen: int | None = None,
    asynchronous: bool = False,
    retry_adds: bool = False,
    unique: Name | None = None,
    unique_for_s: int | None = None,
) -> Request[str]:
    """ADDJOB: add a job; returns its ID once there are as many copies as asked for. With
    ``unique``, the ID of the job that has this key, new or not; :meth:`add_once` says which.

    The options are those of :class:`AddOptions`, where they are described.

    :raises OutcomeUnknown: the answer was lost; the job may have been added.
    :raises NotEnoughReplicas: the job was not added.
    :raises QueueFull, Paused, OutOfMemory: the job was not added.
    :raises OptionUnknown: the node is an original, which knows no keys.
    """
    times = (timeout_ms, replicate, delay_s, retry_s, ttl_s)
    others = (maxlen, asynchronous, retry_adds, unique, unique_for_s)
    return add_job_with(queue, body, AddOptions(*times, *others))


def add_job_with(queue: Name, body: Name, options: AddOptions) -> Request[str]:
    """ADDJOB: like :meth:`add_job`, with the options as one object."""
    wait_s = options.timeout_ms / 1000 if options.timeout_ms else None
    repeatable = options.retry_adds or options.unique is not None
    return Request(add_words(queue, body, options), replies.job_id, wait_s, repeatable)


def add_words(queue: Name, body: Name, options: AddOptions) -> tuple[Word, ...]:
    """The words of ADDJOB."""
    words: list[Word] = ["ADDJOB", encoded(queue), encoded(body), options.timeout_ms]
    for word, value in (
        ("REPLICATE", options.replicate),
        ("DELAY", options.delay_s),
        ("RETRY", options.retry_s),
        ("TTL", options.ttl_s),
        ("MAXLEN", options.maxlen),
    ):
        if value is not None:
            words += (word, value)
    if options.asynchronous:
        words.append("ASYNC")
    if options.unique is not None:
        words += ("UNIQUE", encoded(options.unique))
        if options.unique_for_s is not None:
            words += ("FOR", options.unique_for_s)
    elif options.unique_for_s is not None:
        raise ValueError("unique_for_s needs unique, the key that is to be kept")
    return tuple(words)


def enqueue(
    queue: Name,
    data: Name,
    delay: int | None = None,
    retry: int | None = None,
    ttl: int | None = None,
) -> Request[str]:
    """Add a job; returns its ID. Times are in seconds; see :meth:`add_job`."""
    return add_job(queue, data, delay_s=delay, retry_s=retry, ttl_s=ttl)


def add_once(
    queue: Name, body: Name, key: Name, options: AddOptions | None = None
) -> Request[AddedOnce]:
    """ADDJOB UNIQUE: add a job, unless one with this key is not done yet; which of both it was.

    The request is repeated when the answer is lost. ``new`` is ``False`` then, if the first request
    did add the job: it says whether the job was added by the request that was answered.

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

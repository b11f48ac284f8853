"""Channels: a message to every queue that is subscribed, with the commands of Disque only.

Disque knows no channels; subscriptions are jobs. The channel ``news`` is the queue
``disque:channel:news``, which nobody fetches from; each job in it is one subscription, its body
the name of the subscribed queue. A subscription is copied to several nodes as any job is; it is
queued, and so seen by QPEEK, at one of them. Therefore publishing looks at that queue on every
node. When a node dies, another one that holds a copy queues the subscription once its RETRY is
over: until then, :data:`RETRY_S` at most, a message misses it.

Here is what the clients have in common: the steps of each operation, as a generator. It yields
what to ask the session for, gets the answer or its exception, and returns the result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, TypeAlias, TypeVar

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.client.errors import (
    BrokenReply,
    ClientError,
    ConnectionLost,
    PublicationIncomplete,
    Refused,
)
from disque_tx.client.options import AddOptions
from disque_tx.client.requests import Name, Request, encoded
from disque_tx.client.values import Job, Publication

_T = TypeVar("_T")
#: A step takes a session and makes one request of it; both clients' sessions have the same.
Steps: TypeAlias = Generator[Callable[[Any], Any], Any, _T]

#: How long a subscription may be out of sight after the death of its node.
RETRY_S: Final = 10
#: As good as for ever.
TTL_S: Final = 10 * 365 * 86400
#: So many subscriptions of one channel are seen at each node.
SUBSCRIPTIONS_MAX: Final = 10_000


def subscribe(channel: str, queue: Name, replicate: int | None = None) -> Steps[None]:
    """From now on, what is published on the channel is added to the queue.

    Does nothing if the queue is subscribed already. ``replicate``: how many nodes are to hold the
    subscription.

    :raises NotEnoughReplicas, OutcomeUnknown: see :meth:`add_job`; safe to repeat.
    """
    found, _ = yield from _subscriptions(channel)
    if not _of_queue(found, queue):
        options = AddOptions(replicate=replicate, retry_s=RETRY_S, ttl_s=TTL_S)
        yield _anywhere(requests.add_job_with(_holder(channel), queue, options))


def unsubscribe(channel: str, queue: Name) -> Steps[bool]:
    """From now on, not any more. Returns whether it was subscribed, as far as the nodes that
    could be asked know."""
    found, _ = yield from _subscriptions(channel)
    ids = _of_queue(found, queue)
    if ids:
        yield _anywhere(requests.ack_jobs(*ids))
    return bool(ids)


def publish(channel: str, data: Name, replicate: int | None = None) -> Steps[Publication]:
    """Add a job with this body to every queue subscribed to the channel.

    The queues get it one after the other, each once, however often it was subscribed.
    ``replicate``: how many nodes are to hold each of the jobs.

    :raises PublicationIncomplete: a queue did not take it; those before it have it.
    """
    found, unseen = yield from _subscriptions(channel)
    options = AddOptions(replicate=replicate)
    queues = sorted({job.body for job in found})
    jobs: dict[str, str] = {}
    for place, queue in enumerate(queues):
        try:
            job_id = yield _anywhere(requests.add_job_with(queue, data, options))
        except ClientError as error:
            missing = [_text(name) for name in queues[place:]]
            raise PublicationIncomplete(channel, jobs, missing, error) from error
        jobs[_text(queue)] = job_id
    return Publication(jobs, unseen)


def _subscriptions(channel: str) -> Steps[tuple[list[Job], tuple[str, ...]]]:
    """The jobs that are subscriptions, and the nodes that could not be asked."""
    look = requests.queue_peek(_holder(channel), SUBSCRIPTIONS_MAX)
    found: list[Job] = []
    unseen: list[str] = []
    for address in (yield lambda session: session.addresses()):
        try:
            found += yield _at(address, look)
        except (ConnectionLost, BrokenReply, Refused):
            unseen.append(str(address))
    return found, tuple(unseen)


def _anywhere(request: Request[Any]) -> Callable[[Any], Any]:
    return lambda session: session.request(request)


def _at(address: Address, request: Request[Any]) -> Callable[[Any], Any]:
    return lambda session: session.request_at(address, request)


def _of_queue(subscriptions: list[Job], queue: Name) -> list[str]:
    """The IDs of those of a queue."""
    return [job.id for job in subscriptions if job.body == encoded(queue)]


def _text(name: bytes) -> str:
    """The name of a queue as values have it."""
    return name.decode("utf-8", "surrogateescape")


def _holder(channel: str) -> bytes:
    """The queue whose jobs are the subscriptions."""
    return b"disque:channel:" + encoded(channel)

"""Channels: a message to every queue that is subscribed.

Disque knows no channels; subscriptions are jobs. The channel ``news`` is the queue
``disque:channel:news``, which nobody fetches from; each job in it is one subscription, its body
the name of the subscribed queue. A subscription is copied to several nodes as any job is; it is
queued, and so seen by QPEEK, at one of them. Therefore publishing looks at that queue on every
node. When a node dies, another one that holds a copy queues the subscription once its RETRY is
over: until then, :data:`RETRY_S` at most, a message misses it.
"""

from __future__ import annotations

from typing import Final

from disque_tx.client import requests
from disque_tx.client.requests import Name, Request, encoded
from disque_tx.client.values import Job

#: How long a subscription may be out of sight after the death of its node.
RETRY_S: Final = 10
#: As good as for ever.
TTL_S: Final = 10 * 365 * 86400
#: So many subscriptions of one channel are seen at each node.
SUBSCRIPTIONS_MAX: Final = 10_000


def look(channel: str) -> Request[list[Job]]:
    """The request for the subscriptions that a node has queued."""
    return requests.queue_peek(_holder(channel), SUBSCRIPTIONS_MAX)


def subscription(channel: str, queue: Name, replicate: int | None) -> Request[str]:
    """The request that adds one."""
    return requests.add_job(
        _holder(channel), queue, replicate=replicate, retry_s=RETRY_S, ttl_s=TTL_S
    )


def of_queue(subscriptions: list[Job], queue: Name) -> list[str]:
    """The IDs of those of a queue."""
    return [job.id for job in subscriptions if job.body == encoded(queue)]


def queues(subscriptions: list[Job]) -> list[bytes]:
    """The queues that are subscribed, each once."""
    return sorted({job.body for job in subscriptions})


def text(name: bytes) -> str:
    """The name of a queue as values have it."""
    return name.decode("utf-8", "surrogateescape")


def _holder(channel: str) -> bytes:
    """The queue whose jobs are the subscriptions."""
    return b"disque:channel:" + encoded(channel)

"""Channels: publish a message to every subscribed queue, with Disque's own commands only.

Disque knows no channels; subscriptions are jobs. The channel ``news`` is the queue
``disque:channel:news``, which nobody fetches from; each job in it is one subscription, its body
the name of the subscribed queue. A subscription is copied to several nodes as any job is; it is
queued, and so seen by QPEEK, at one of them. Therefore publishing looks at that queue on every
node. When a node dies, another one that holds a copy queues the subscription once its RETRY is
over: until then, :data:`RETRY_S` at most, published messages miss it.
"""

from __future__ import annotations

from typing import Final

from disque_tx.client.errors import (
    BrokenReply,
    ClientError,
    ConnectionLost,
    PublicationIncomplete,
    Refused,
)
from disque_tx.client.options import AddOptions
from disque_tx.client.requests import adding
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Name, encoded
from disque_tx.client.steps.methods import Methods, operation
from disque_tx.client.steps.single import Steps, anywhere, at
from disque_tx.client.values import Job, Publication

#: How long a subscription may be missing after its node has died.
RETRY_S: Final = 10
#: Ten years: a subscription practically never expires.
TTL_S: Final = 10 * 365 * 86400
#: How many subscriptions of one channel are read from each node.
SUBSCRIPTIONS_MAX: Final = 10_000


class Channels(Methods):
    """The methods of clients for channels."""

    @operation
    def subscribe(self, channel: str, queue: Name, replicate: int | None = None) -> Steps[None]:
        """Subscribe the queue: from now on, messages published on the channel are added to it.

        Does nothing if the queue is already subscribed. ``replicate``: how many nodes hold a copy
        of the subscription.

        :raises NotEnoughReplicas, OutcomeUnknown: see :meth:`add_job`; safe to repeat.
        """
        found, _ = yield from _subscriptions(channel)
        if not _of_queue(found, queue):
            options = AddOptions(replicate=replicate, retry_s=RETRY_S, ttl_s=TTL_S)
            yield from anywhere(adding.add_job_with(_holder(channel), queue, options))

    @operation
    def unsubscribe(self, channel: str, queue: Name) -> Steps[bool]:
        """Unsubscribe the queue. Returns whether it was subscribed, as far as the nodes that could
        be asked know."""
        found, _ = yield from _subscriptions(channel)
        ids = _of_queue(found, queue)
        if ids:
            yield from anywhere(requests.ack_jobs(*ids))
        return bool(ids)

    @operation
    def publish(self, channel: str, data: Name, replicate: int | None = None) -> Steps[Publication]:
        """Add a job with this body to every queue subscribed to the channel.

        The queues get it one after the other, each once, however often it was subscribed.
        ``replicate``: how many nodes hold a copy of each job.

        :raises PublicationIncomplete: one of the queues refused the message; those before it have
            it.
        """
        found, unseen = yield from _subscriptions(channel)
        options = AddOptions(replicate=replicate)
        queues = sorted({job.body for job in found})
        jobs: dict[str, str] = {}
        for place, queue in enumerate(queues):
            try:
                job_id = yield from anywhere(adding.add_job_with(queue, data, options))
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
            found += yield from at(address, look)
        except (ConnectionLost, BrokenReply, Refused):
            unseen.append(str(address))
    return found, tuple(unseen)


def _of_queue(subscriptions: list[Job], queue: Name) -> list[str]:
    """The IDs of the subscriptions of a queue."""
    return [job.id for job in subscriptions if job.body == encoded(queue)]


def _text(name: bytes) -> str:
    """The name of a queue as text, with surrogate escapes if it is not UTF-8."""
    return name.decode("utf-8", "surrogateescape")


def _holder(channel: str) -> bytes:
    """The queue whose jobs are the subscriptions."""
    return b"disque:channel:" + encoded(channel)

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

from disque_tx.client import replies
from disque_tx.client.commands import Commands, Name, encoded
from disque_tx.client.errors import (
    BrokenReply,
    ClientError,
    ConnectionLost,
    PublicationIncomplete,
    Refused,
)
from disque_tx.client.values import Job, Publication

#: How long a subscription may be out of sight after the death of its node.
RETRY_S: Final = 10
#: As good as for ever.
TTL_S: Final = 10 * 365 * 86400
#: So many subscriptions of one channel are seen at each node.
SUBSCRIPTIONS_MAX: Final = 10_000


class Channels(Commands):
    """Publishing and subscribing, with the commands of Disque only."""

    def subscribe(self, channel: str, queue: Name, replicate: int | None = None) -> None:
        """From now on, what is published on the channel is added to the queue.

        Does nothing if the queue is subscribed already. ``replicate``: how many nodes are to
        hold the subscription.

        :raises NotEnoughReplicas, OutcomeUnknown: see :meth:`add_job`; safe to repeat.
        """
        subscriptions, _ = self._subscriptions(channel)
        wanted = encoded(queue)
        if not any(job.body == wanted for job in subscriptions):
            holder = _holder(channel)
            self.add_job(holder, wanted, replicate=replicate, retry_s=RETRY_S, ttl_s=TTL_S)

    def unsubscribe(self, channel: str, queue: Name) -> bool:
        """From now on, not any more. Returns whether it was subscribed, as far as the nodes that
        could be asked know."""
        subscriptions, _ = self._subscriptions(channel)
        ids = [job.id for job in subscriptions if job.body == encoded(queue)]
        if ids:
            self.ack_jobs(*ids)
        return bool(ids)

    def publish(self, channel: str, data: Name, replicate: int | None = None) -> Publication:
        """Add a job with this body to every queue subscribed to the channel.

        The queues get it one after the other, each once, however often it was subscribed.
        ``replicate``: how many nodes are to hold each of the jobs.

        :raises PublicationIncomplete: a queue did not take it; those before it have it.
        """
        subscriptions, unseen = self._subscriptions(channel)
        queues = sorted({job.body for job in subscriptions})
        jobs: dict[str, str] = {}
        for place, queue in enumerate(queues):
            try:
                jobs[_text(queue)] = self.add_job(queue, data, replicate=replicate)
            except ClientError as error:
                missing = [_text(name) for name in queues[place:]]
                raise PublicationIncomplete(channel, jobs, missing, error) from error
        return Publication(jobs, unseen)

    def _subscriptions(self, channel: str) -> tuple[list[Job], tuple[str, ...]]:
        """The jobs that are subscriptions, and the nodes that could not be asked."""
        found: list[Job] = []
        unseen: list[str] = []
        words = ("QPEEK", _holder(channel), SUBSCRIPTIONS_MAX)
        for address in self._session.addresses():
            try:
                found += self._session.call_at(address, *words, shape=replies.jobs)
            except (ConnectionLost, BrokenReply, Refused):
                unseen.append(str(address))
        return found, tuple(unseen)


def _holder(channel: str) -> bytes:
    """The queue whose jobs are the subscriptions."""
    return b"disque:channel:" + encoded(channel)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")

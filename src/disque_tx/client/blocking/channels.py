"""Channels: a message to every queue that is subscribed.

How the subscriptions are kept is told in :mod:`disque_tx.client.subscriptions`.
"""

from __future__ import annotations

from disque_tx.client import subscriptions
from disque_tx.client.blocking.commands import Commands
from disque_tx.client.errors import (
    BrokenReply,
    ClientError,
    ConnectionLost,
    PublicationIncomplete,
    Refused,
)
from disque_tx.client.requests import Name
from disque_tx.client.values import Job, Publication


class Channels(Commands):
    """Publishing and subscribing, with the commands of Disque only."""

    def subscribe(self, channel: str, queue: Name, replicate: int | None = None) -> None:
        """From now on, what is published on the channel is added to the queue.

        Does nothing if the queue is subscribed already. ``replicate``: how many nodes are to
        hold the subscription.

        :raises NotEnoughReplicas, OutcomeUnknown: see :meth:`add_job`; safe to repeat.
        """
        found, _ = self._subscriptions(channel)
        if not subscriptions.of_queue(found, queue):
            self._session.call(subscriptions.subscription(channel, queue, replicate))

    def unsubscribe(self, channel: str, queue: Name) -> bool:
        """From now on, not any more. Returns whether it was subscribed, as far as the nodes that
        could be asked know."""
        found, _ = self._subscriptions(channel)
        ids = subscriptions.of_queue(found, queue)
        if ids:
            self.ack_jobs(*ids)
        return bool(ids)

    def publish(self, channel: str, data: Name, replicate: int | None = None) -> Publication:
        """Add a job with this body to every queue subscribed to the channel.

        The queues get it one after the other, each once, however often it was subscribed.
        ``replicate``: how many nodes are to hold each of the jobs.

        :raises PublicationIncomplete: a queue did not take it; those before it have it.
        """
        found, unseen = self._subscriptions(channel)
        queues = subscriptions.queues(found)
        jobs: dict[str, str] = {}
        for place, queue in enumerate(queues):
            try:
                jobs[subscriptions.text(queue)] = self.add_job(queue, data, replicate=replicate)
            except ClientError as error:
                missing = [subscriptions.text(name) for name in queues[place:]]
                raise PublicationIncomplete(channel, jobs, missing, error) from error
        return Publication(jobs, unseen)

    def _subscriptions(self, channel: str) -> tuple[list[Job], tuple[str, ...]]:
        """The jobs that are subscriptions, and the nodes that could not be asked."""
        found: list[Job] = []
        unseen: list[str] = []
        for address in self._session.addresses():
            try:
                jobs = self._session.call_at(address, subscriptions.look(channel))
                found += jobs
            except (ConnectionLost, BrokenReply, Refused):
                unseen.append(str(address))
        return found, tuple(unseen)

"""Channels for the Twisted client; see :mod:`disque_tx.client.subscriptions`."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from disque_tx.client import subscriptions
from disque_tx.client.errors import (
    BrokenReply,
    ClientError,
    ConnectionLost,
    PublicationIncomplete,
    Refused,
)
from disque_tx.client.requests import Name
from disque_tx.client.tx.commands import Commands
from disque_tx.client.values import Job, Publication


class Channels(Commands):
    """Publishing and subscribing, with the commands of Disque only; parameters, results and
    exceptions are those of :class:`disque_tx.client.blocking.channels.Channels`."""

    def subscribe(self, channel: str, queue: Name, replicate: int | None = None) -> Deferred[None]:
        """From now on, what is published on the channel is added to the queue."""
        return Deferred.fromCoroutine(self._subscribe(channel, queue, replicate))

    async def _subscribe(self, channel: str, queue: Name, replicate: int | None) -> None:
        found, _ = await self._subscriptions(channel)
        if not subscriptions.of_queue(found, queue):
            await self._session.request(subscriptions.subscription(channel, queue, replicate))

    def unsubscribe(self, channel: str, queue: Name) -> Deferred[bool]:
        """From now on, not any more. Fires with whether it was subscribed."""
        return Deferred.fromCoroutine(self._unsubscribe(channel, queue))

    async def _unsubscribe(self, channel: str, queue: Name) -> bool:
        found, _ = await self._subscriptions(channel)
        ids = subscriptions.of_queue(found, queue)
        if ids:
            await self.ack_jobs(*ids)
        return bool(ids)

    def publish(
        self, channel: str, data: Name, replicate: int | None = None
    ) -> Deferred[Publication]:
        """Add a job with this body to every queue subscribed to the channel, one after the other.

        Fails with :class:`PublicationIncomplete` when a queue did not take it.
        """
        return Deferred.fromCoroutine(self._publish(channel, data, replicate))

    async def _publish(self, channel: str, data: Name, replicate: int | None) -> Publication:
        found, unseen = await self._subscriptions(channel)
        queues = subscriptions.queues(found)
        jobs: dict[str, str] = {}
        for place, queue in enumerate(queues):
            try:
                job_id = await self.add_job(queue, data, replicate=replicate)
            except ClientError as error:
                missing = [subscriptions.text(name) for name in queues[place:]]
                raise PublicationIncomplete(channel, jobs, missing, error) from error
            jobs[subscriptions.text(queue)] = job_id
        return Publication(jobs, unseen)

    async def _subscriptions(self, channel: str) -> tuple[list[Job], tuple[str, ...]]:
        """The jobs that are subscriptions, and the nodes that could not be asked."""
        found: list[Job] = []
        unseen: list[str] = []
        for address in await self._session.addresses():
            try:
                jobs = await self._session.request_at(address, subscriptions.look(channel))
                found += jobs
            except (ConnectionLost, BrokenReply, Refused):
                unseen.append(str(address))
        return found, tuple(unseen)

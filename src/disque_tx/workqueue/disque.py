"""The work queue on a queue of Disque."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Final, NoReturn

import attrs

from disque_tx.client.errors import AlreadyAcknowledged, OptionUnknown, TooLate, UnknownJob
from disque_tx.client.options import AddOptions
from disque_tx.workqueue.deferreds import deferred
from disque_tx.workqueue.errors import NotOnDisque
from disque_tx.workqueue.items import Item, job_body, parse_job_body

if TYPE_CHECKING:
    from disque_tx.client import DisqueClient, TakenJob


_KEY_BYTES_MAX: Final = 512


def _key(queue: str, item_id: str) -> bytes:
    """The key of an item: readable, unless that would be too long."""
    name = queue.encode("utf-8", "surrogateescape")
    key = b"workqueue-item %d %s %s" % (len(name), name, item_id.encode())
    if len(key) > _KEY_BYTES_MAX:
        return b"workqueue-item-hash " + hashlib.sha256(key).hexdigest().encode()
    return key


@attrs.frozen
class DisqueItem(Item):
    """An item that was leased from Disque. ``job``: the delivered job."""

    job: TakenJob = attrs.field(repr=False, eq=False)


class DisqueWorkQueue:
    """The operations of :class:`WorkQueue` on the queue ``name``, as far as Disque has them.

    ``retry_s``: how long a lease lasts. Disque fixes this when an item is added, so it is the
    same for all leases of an item. With 0 an item is delivered at most once, and is lost if its
    worker dies. No cleaning is needed to return items.

    Errors are those of the client, :class:`disque_tx.client.ClientError`.
    """

    def __init__(self, client: DisqueClient, name: str, retry_s: int = 300) -> None:
        self._client = client
        self.name = name
        self.retry_s = retry_s

    def __repr__(self) -> str:
        return f"<DisqueWorkQueue {self.name!r}>"

    @deferred
    async def add_unique_item(self, item: Item) -> None:
        """Add an item. When another one has its ID, both are worked on.

        After :class:`OutcomeUnknown` the item may have been added: repeating it may add it twice.
        """
        await self._client.add_job(self.name, job_body(item), retry_s=self.retry_s)

    @deferred
    async def add_item(self, item: Item) -> bool:
        """Add an item, unless one with its ID is waiting or being worked on; returns whether it was
        added. The request is repeated when the answer is lost, and there is one item then; the
        result is ``False``, if the first request added it.

        Of items added by :meth:`add_unique_item` this knows nothing.

        :raises NotOnDisque: the node is an original, which has no keys.
        """
        key = _key(self.name, item.id)
        options = AddOptions(retry_s=self.retry_s)
        try:
            added = await self._client.add_once(self.name, job_body(item), key, options)
        except OptionUnknown as error:
            raise NotOnDisque(
                "An original Disque cannot add an item on the condition that its ID is new. Use"
                " add_unique_item(), and work that may be done twice; or nodes of disque-tx."
            ) from error
        return added.new

    @deferred
    async def lease(
        self, expiry_s: float | None = None, block: bool = True, timeout_s: float = 0.0
    ) -> DisqueItem | None:
        """Get an item to work on (GETJOB). Nobody else gets it before its RETRY is over.

        ``expiry_s``: the expected length of the lease; what counts is the RETRY with which the item
        was added. ``block``: wait for one, forever with ``timeout_s`` 0. Returns ``None`` when
        none came. When the Deferred is cancelled, an item that arrives later is given back.

        :raises NotOnDisque: when ``expiry_s`` is longer than the RETRY of this queue.
        :raises ValueError: when a time is negative or not finite.
        """
        if expiry_s is not None and not 0 < expiry_s < math.inf:
            raise ValueError(f"expiry_s is {expiry_s}. Give seconds, or leave it out.")
        if not 0 <= timeout_s < math.inf:
            raise ValueError(f"timeout_s is {timeout_s}. Give seconds, or 0 to wait forever.")
        if expiry_s is not None and 0 < self.retry_s < expiry_s:
            raise NotOnDisque(
                f"A lease of {expiry_s:g} s is longer than the RETRY of {self.retry_s} s with which"
                " items are added. Give the work queue a longer retry_s, or call extend_lease()."
            )
        wait_s = timeout_s or None
        for job in await self._client.take(self.name, timeout_s=wait_s, no_hang=not block):
            item_id, data = parse_job_body(job.data) or (job.id, job.data)
            return DisqueItem(item_id, data, job)
        return None

    @deferred
    async def complete(self, item: Item) -> bool:
        """The work is done: acknowledge the job at the node that delivered it (ACKJOB). Returns
        whether that node had not acknowledged it before.

        Of workers that got the item from the same node, one gets ``True``. Two that got it from
        different nodes both get ``True`` when the second completes before the nodes have exchanged
        the acknowledgement: within a round trip, or while a partition lasts. When the node is gone,
        another one is asked: ``True`` if it holds a copy that is not acknowledged. ``False`` may
        then mean that it does not know the job. Work that must be done at most once needs a
        queue with ``retry_s=0``, not this answer.

        :raises NotOnDisque: when the item was not leased from Disque.
        """
        return bool(await self._job(item).ack())

    @deferred
    async def extend_lease(self, item: Item, expiry_s: float | None = None) -> bool:
        """The work takes longer: the lease lasts for another RETRY (WORKING). Returns ``False``
        when the item was completed, is not known any more, or half of its TTL is over.

        :raises NotOnDisque: when the item was not leased from Disque, or more than the RETRY of
            this queue is asked for.
        """
        if expiry_s is not None and expiry_s > self.retry_s:
            raise NotOnDisque(f"A lease is extended by the RETRY, which is {self.retry_s} s.")
        try:
            await self._job(item).working()
        except (AlreadyAcknowledged, UnknownJob, TooLate):
            return False
        return True

    @deferred
    async def give_back(self, item: Item) -> bool:
        """Release the item for other workers now (NACK). Returns whether it was queued.

        :raises NotOnDisque: when the item was not leased from Disque.
        """
        return bool(await self._job(item).nack())

    @deferred
    async def queue_len(self) -> int:
        """How many items wait at the current node; it does not count those of other nodes."""
        return await self._client.queue_length(self.name)

    @deferred
    async def processing(self) -> NoReturn:
        """Not possible on Disque.

        :raises NotOnDisque: always. Nodes do not count the jobs of a queue that are worked on.
        """
        await self.counts()

    @deferred
    async def counts(self) -> NoReturn:
        """Not possible on Disque.

        :raises NotOnDisque: always, as :meth:`processing`.
        """
        raise NotOnDisque(
            "Disque does not count the items of a queue that are being worked on. Use queue_len()."
        )

    @deferred
    async def light_clean(self) -> int:
        """Does nothing: nodes return items by themselves. Returns 0."""
        return 0

    @deferred
    async def deep_clean(self) -> int:
        """Does nothing: nodes lose no items. Returns 0."""
        return 0

    def _job(self, item: Item) -> TakenJob:
        if isinstance(item, DisqueItem):
            return item.job
        raise NotOnDisque(
            "Only an item that was leased from Disque can be completed, extended or given back:"
            " this item has no job."
        )

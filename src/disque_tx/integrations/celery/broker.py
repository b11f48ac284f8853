"""What the channels of one connection share: the cluster, the leases, the bindings."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from disque_tx.client import ClientError
from disque_tx.client.blocking import TakenJob
from disque_tx.client.options import AddOptions
from disque_tx.client.requests import encoding as requests
from disque_tx.integrations.celery.bindings import Bindings
from disque_tx.integrations.celery.messages import add_options, encoded, home, queue_names
from disque_tx.integrations.celery.options import BrokerOptions
from disque_tx.integrations.cluster import ask_all
from disque_tx.integrations.leases import Leases

_LOG: Final = logging.getLogger(__name__)
_PURGED_AT_ONCE: Final = 500
#: How long a dead letter is kept.
_DEAD_TTL_S: Final = 30 * 86_400


class Broker:
    """Requests of kombu as requests of Disque. May be used by several threads."""

    def __init__(self, options: BrokerOptions) -> None:
        self.options = options
        self.client = options.client()
        self.leases = Leases(self.client.servers)
        self.bindings = Bindings(self.client, options.prefix, options.replicate)
        self._ttls_s: dict[str, int] = {}

    def declare(self, queue: str, arguments: Mapping[str, Any] | None) -> None:
        """Keep in mind what a queue's declaration says about its messages."""
        ttl_ms = (arguments or {}).get("x-message-ttl")
        if isinstance(ttl_ms, int) and ttl_ms >= 0:
            self._ttls_s[queue] = max(1, -(-ttl_ms // 1000))

    def put(self, queue: str, message: Mapping[str, Any]) -> None:
        """Add a message to a queue."""
        options = add_options(message, self.options, self._ttls_s.get(queue))
        self.client.add_job_with(home(queue, message, self.options), encoded(message), options)

    def names(self, queue: str) -> list[str]:
        """The queues of Disque for a queue of kombu, the most urgent first."""
        return queue_names(queue, self.options)

    def take(self, queue: str) -> TakenJob | None:
        """A job of the queue, if there is one now."""
        jobs = self.client.take(*self.names(queue), no_hang=True)
        return jobs[0] if jobs else None

    def size(self, queue: str) -> int:
        """How many messages wait in the queue, on all nodes."""
        lengths = [requests.queue_length(name) for name in self.names(queue)]
        return sum(sum(ask_all(self.client, length)) for length in lengths)

    def purge(self, queue: str) -> int:
        """Remove the messages that wait in the queue; returns how many."""
        count = 0
        while jobs := self.client.take(*self.names(queue), count=_PURGED_AT_ONCE, no_hang=True):
            count += len(jobs)
            self.acknowledge(jobs)
        return count

    def acknowledge(self, jobs: Sequence[TakenJob]) -> None:
        """Acknowledge jobs that are done. A job that cannot be acknowledged now is delivered
        again."""
        try:
            self.client.ack_jobs(*[job.id for job in jobs])
        except ClientError as error:
            _LOG.warning("Messages that may be delivered again: %d. %s", len(jobs), error)

    def bury(self, job: TakenJob, reason: str) -> None:
        """Make a dead letter of a job that is not a message: another delivery would not help."""
        # The worker's package brings Twisted, which a program with Celery does not need otherwise.
        from disque_tx.worker.settling.deadletters import Letter

        letter = Letter(
            queue=job.queue,
            id=job.id,
            body=job.data,
            reason=reason,
            traceback="",
            worker="celery",
            nacks=job.job.nacks,
            additional_deliveries=job.job.additional_deliveries,
            failed_at_s=time.time(),
        )
        dead = AddOptions(replicate=self.options.replicate, ttl_s=_DEAD_TTL_S, retry_s=60)
        self.client.add_job_with(f"dead:{job.queue}", letter.encoded(), dead)
        job.ack()
        _LOG.error("Job %s of queue %r became a dead letter: %s", job.id, job.queue, reason)

    def close(self) -> None:
        """End the threads and close the connections."""
        self.leases.stop()
        self.bindings.close()
        self.client.close()

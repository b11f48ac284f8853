"""What nodes do by themselves with failed jobs: backoff and dead letters, by the policy of a queue.

A node is asked once per queue and minute, when a job of the queue failed. Originals, and nodes
without a policy for the queue, leave both to the worker.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
from twisted.internet.interfaces import IReactorTime

from disque_tx.client import ClientError, Refused
from disque_tx.worker.base.context import WorkerClient

_KEPT_S: Final = 60.0
_QUEUES_MAX: Final = 10_000
_NONE: Final = (b"0", b"0.0")


@attrs.frozen
class QueueRules:
    """``backoff``: nodes delay the next delivery of a failed job. ``letters``: they make a dead
    letter of a job that was delivered too often."""

    backoff: bool = False
    letters: bool = False

    @classmethod
    def read(cls, reply: Any) -> QueueRules:
        """From the reply to QPOLICY GET: setting, value and pattern of each."""
        values = {row[0]: row[1] for row in reply or () if len(row) > 1}
        return cls(
            values.get(b"retry-delay", b"0") not in _NONE,
            values.get(b"max-deliveries", b"0") not in _NONE,
        )


class NodePolicies:
    """The rules of queues, as the nodes report them."""

    def __init__(self, client: WorkerClient, clock: IReactorTime) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[str, tuple[float, QueueRules]] = {}

    def known(self, queue: str) -> QueueRules:
        """What was found last; nothing is asked."""
        return self._known[queue][1] if queue in self._known else QueueRules()

    async def of(self, queue: str) -> QueueRules:
        """The rules of a queue. A node that does not answer leaves everything to the worker."""
        now_s = self._clock.seconds()
        until_s, rules = self._known.get(queue, (0.0, QueueRules()))
        if queue in self._known and now_s < until_s:
            return rules
        try:
            rules = QueueRules.read(await self._client.execute("QPOLICY", "GET", queue))
        except Refused:
            rules = QueueRules()
        except (ClientError, TypeError, LookupError):
            return rules
        if len(self._known) >= _QUEUES_MAX:
            self._known.clear()
        self._known[queue] = now_s + _KEPT_S, rules
        return rules

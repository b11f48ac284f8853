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
    """``backoff``: nodes delay the next delivery of a failed job. ``letters``: after how many
    deliveries they make a dead letter of a job, 0 for never. ``own``: the dead letters of the queue
    go to the queue itself, whose jobs nodes do not give up."""

    backoff: bool = False
    letters: int = 0
    own: bool = False

    @classmethod
    def read(cls, reply: Any, queue: str) -> QueueRules:
        """From the reply to QPOLICY GET for this queue: setting, value and pattern of each."""
        values = {row[0]: row[1] for row in reply or () if len(row) > 1}
        name = queue.encode("utf-8", "surrogateescape")
        return cls(
            values.get(b"retry-delay", b"0") not in _NONE,
            int(values.get(b"max-deliveries", b"0")),
            values.get(b"dead-queue", b"").replace(b"{queue}", name) == name,
        )

    def are_over(self, attempt: int) -> bool:
        """Whether nodes make a dead letter of a job that is given back after this attempt, the
        first being 1."""
        return 0 < self.letters <= attempt and not self.own


class NodePolicies:
    """The rules of queues, as the nodes report them."""

    def __init__(self, client: WorkerClient, clock: IReactorTime) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[str, tuple[float, QueueRules]] = {}

    def known(self, queue: str) -> QueueRules:
        """What was found last; nothing is asked."""
        return self._known[queue][1] if queue in self._known else QueueRules()

    async def of(self, queue: str, now: bool = False) -> QueueRules:
        """The rules of a queue; ``now``: those of this moment. A node that does not answer leaves
        everything to the worker."""
        now_s = self._clock.seconds()
        until_s, rules = self._known.get(queue, (0.0, QueueRules()))
        if queue in self._known and now_s < until_s and not now:
            return rules
        try:
            rules = QueueRules.read(await self._client.execute("QPOLICY", "GET", queue), queue)
        except Refused:
            rules = QueueRules()
        except (ClientError, TypeError, LookupError, ValueError):
            return rules
        if len(self._known) >= _QUEUES_MAX:
            self._known.clear()
        self._known[queue] = now_s + _KEPT_S, rules
        return rules

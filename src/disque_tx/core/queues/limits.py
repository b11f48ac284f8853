"""How many jobs of a queue may be delivered here: its policy's ``concurrency`` and ``rate``.

1. ``concurrency`` is about the jobs in flight at this node. When one is not in flight any more (it
   is done, or queued again because its RETRY is over), the limit of its queue is checked again.
2. ``rate`` is a bucket of tokens per queue, of which each delivery to a client takes one. When
   there is none, the queue is looked at again as soon as there will be one.
3. Both are about deliveries to clients of this node: jobs go to other nodes without them, and are
   delivered there within the limits of that node. But no node asks for jobs of a queue from which
   it may deliver none.
4. Buckets are kept apart from queues, because an idle queue is forgotten. A full one means nothing,
   and is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heappop, heappush
from typing import Final

from mypy_extensions import i64

from disque_tx.core.jobs.tallies import Tallies
from disque_tx.core.policies.policies import Policies
from disque_tx.core.policies.settings import QueuePolicy
from disque_tx.core.queues.queues import PAUSE_OUT, Queue

#: A token in the unit of a bucket: with it, a rate in thousandths per second is a gain per
#: millisecond.
_TOKEN: Final = 1_000_000
_UNLIMITED: Final = 1 << 31
#: Buckets that are kept without looking whether they are full.
_BUCKETS_FEW: Final = 1_000


class Bucket:
    """``level``: millionths of a token at ``at_ms``."""

    __slots__ = ("at_ms", "level")

    def __init__(self, level: i64, now_ms: i64) -> None:
        self.level: i64 = level
        self.at_ms: i64 = now_ms

    def fill(self, rate_milli: i64, tokens_max: i64, now_ms: i64) -> None:
        """Add what has come since; a bucket holds no more than ``tokens_max`` tokens."""
        most = tokens_max * _TOKEN
        passed_ms = now_ms - self.at_ms
        if self.level >= most or passed_ms > (most - self.level) // rate_milli:
            self.level = most
        else:
            self.level += passed_ms * rate_milli
        self.at_ms = now_ms


def tokens_max(policy: QueuePolicy) -> i64:
    """How many tokens a bucket holds: one second's worth, if nothing is set, but at least one."""
    if policy.rate_burst > 0:
        return policy.rate_burst
    return max(1, (policy.rate_milli + 999) // 1000)


class Limits:
    """Asked before each delivery while any policy sets one (``Policies.limited``). The length
    is the number of buckets that are not full, as far as was looked."""

    def __init__(self, policies: Policies, tallies: Tallies) -> None:
        self._policies = policies
        self._tallies = tallies
        self._buckets: OrderedDict[bytes, Bucket] = OrderedDict()
        # When queues without a token are to be looked at again, and which are listed there.
        self._due: list[tuple[int, bytes]] = []
        self._listed: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._buckets)

    def may_deliver(self, queue: Queue, now_ms: i64) -> bool:
        """Whether the queue has a job, and a client may get it now."""
        if queue.jobs.size == 0 or queue.paused & PAUSE_OUT:
            return False
        return not self._policies.limited or self.allows(queue.name, now_ms)

    def hold_back(self, name: bytes, now_ms: i64) -> bool:
        """Whether no client may get a job of this queue now."""
        return self._policies.limited and not self.allows(name, now_ms)

    def allows(self, name: bytes, now_ms: i64) -> bool:
        """Whether the policy of a queue allows one more delivery now."""
        policy = self._policies.of(name)
        if policy is None:
            return True
        if policy.concurrency > 0:
            tally = self._tallies.get(name)
            if tally is not None and tally.in_flight >= policy.concurrency:
                return False
        return policy.rate_milli == 0 or self._has_token(name, policy, now_ms)

    def room(self, name: bytes, now_ms: i64) -> i64:
        """How many jobs of a queue clients may get now."""
        policy = self._policies.of(name) if self._policies.limited else None
        if policy is None:
            return _UNLIMITED
        if not self.allows(name, now_ms):
            return 0
        room: i64 = _UNLIMITED
        if policy.concurrency > 0:
            tally = self._tallies.get(name)
            room = policy.concurrency - (tally.in_flight if tally is not None else 0)
        if policy.rate_milli > 0:
            bucket = self._buckets.get(name)
            level = bucket.level // _TOKEN if bucket is not None else tokens_max(policy)
            room = min(room, level)
        return room

    def _has_token(self, name: bytes, policy: QueuePolicy, now_ms: i64) -> bool:
        bucket = self._buckets.get(name)
        if bucket is None:
            return True
        bucket.fill(policy.rate_milli, tokens_max(policy), now_ms)
        if bucket.level >= _TOKEN:
            return True
        if name not in self._listed:
            missing = _TOKEN - bucket.level
            due_ms = now_ms + (missing + policy.rate_milli - 1) // policy.rate_milli
            self._listed.add(name)
            heappush(self._due, (int(due_ms), name))
        return False

    def delivered(self, name: bytes, now_ms: i64) -> None:
        """A client got a job of this queue."""
        policy = self._policies.of(name)
        if policy is None or policy.rate_milli == 0:
            return
        bucket = self._buckets.get(name)
        if bucket is None:
            if len(self._buckets) >= _BUCKETS_FEW:
                self._forget_full(now_ms)
            bucket = self._buckets[name] = Bucket(tokens_max(policy) * _TOKEN, now_ms)
        bucket.fill(policy.rate_milli, tokens_max(policy), now_ms)
        bucket.level -= _TOKEN

    def _forget_full(self, now_ms: i64) -> None:
        """Look at the two buckets that were not looked at for longest."""
        for _ in range(2):
            name, bucket = self._buckets.popitem(last=False)
            policy = self._policies.of(name)
            if policy is not None and policy.rate_milli > 0:
                bucket.fill(policy.rate_milli, tokens_max(policy), now_ms)
                if bucket.level < tokens_max(policy) * _TOKEN:
                    self._buckets[name] = bucket

    def next_due_ms(self) -> i64:
        """When :meth:`due` has something to do next, -1 for never."""
        return self._due[0][0] if self._due else -1

    def due(self, now_ms: i64, limit: i64) -> list[bytes]:
        """The names of up to ``limit`` queues to look at again."""
        names: list[bytes] = []
        while self._due and len(names) < limit and self._due[0][0] <= now_ms:
            name = heappop(self._due)[1]
            self._listed.discard(name)
            names.append(name)
        return names

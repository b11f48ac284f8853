"""What ADDJOB asks for, and what it means where the request leaves it open.

1. What the request says counts; then what the policy of the queue says (``ttl``, ``retry``,
   ``delay``, ``replicate``); then the defaults of the client protocol, section 14.1.
2. What comes of that is checked as if all of it stood in the request: values that do not go
   together are refused, and the error names those that are the policy's.
3. MAXLEN of the request and ``max-length`` with ``overflow reject`` both hold.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.jobs.job import PRIORITY
from disque_tx.core.jobs.notes import Note
from disque_tx.core.policies.settings import REJECT, QueuePolicy

#: A day, for jobs without a TTL of their own.
_TTL_S: Final = 86_400


class Unique:
    """UNIQUE: add the job once. ``key``: 1 to 512 bytes, of which one job at a time may have it.
    ``for_s``: for so long from now no other one, even if the job is done; 0 for no longer than the
    job. ``with_new``: the reply says whether the job is new. ``job_id``: the ID for which the key
    is reserved, once there is one."""

    __slots__ = ("for_s", "job_id", "key", "with_new")

    def __init__(self, key: bytes, for_s: i64 = 0, with_new: bool = False) -> None:
        self.key: bytes = key
        self.for_s: i64 = for_s
        self.with_new: bool = with_new
        self.job_id: bytes = b""


class AddRequest:
    """What ADDJOB asks for (client protocol, section 14.1), -1 for an option that was not given.

    ``timeout_ms``: how long the client waits for the copies, 0 for as long as it takes. ``maxlen``:
    how many jobs the queue may hold before this one. ``asynchronous``: the client waits for none.
    ``unique``: the job has a key, see there. ``priority``: at this node only, 0 to 2³² - 1, smaller
    ones first. ``note``: a note about the job, begins with it.
    """

    __slots__ = (
        "asynchronous",
        "body",
        "delay_s",
        "maxlen",
        "note",
        "priority",
        "queue",
        "replicate",
        "retry_s",
        "timeout_ms",
        "ttl_s",
        "unique",
    )

    def __init__(self, queue: bytes, body: bytes) -> None:
        self.queue: bytes = queue
        self.body: bytes = body
        self.timeout_ms: i64 = 0
        self.replicate: i64 = -1
        self.ttl_s: i64 = -1
        self.retry_s: i64 = -1
        self.delay_s: i64 = -1
        self.maxlen: i64 = -1
        self.asynchronous: bool = False
        self.unique: Unique | None = None
        self.priority: i64 = PRIORITY
        self.note: Note | None = None

    def life(self, policy: QueuePolicy | None) -> tuple[i64, i64]:
        """TTL and RETRY that the job will have, in seconds."""
        ttl_s, retry_s = self.ttl_s, self.retry_s
        if policy is not None:
            if ttl_s < 0:
                ttl_s = policy.ttl_s
            if retry_s < 0:
                retry_s = policy.retry_s
        if ttl_s < 0:
            ttl_s = _TTL_S
        return ttl_s, retry_s if retry_s >= 0 else usual_retry_s(ttl_s)

    def to_queue(self, queue: bytes) -> AddRequest:
        """A copy of the request for another queue, whose length MAXLEN does not concern."""
        other = AddRequest(queue, self.body)
        other.timeout_ms = self.timeout_ms
        other.replicate = self.replicate
        other.ttl_s = self.ttl_s
        other.retry_s = self.retry_s
        other.delay_s = self.delay_s
        other.asynchronous = self.asynchronous
        return other

    def complete(self, policy: QueuePolicy | None) -> str:
        """Fill in what was not given, but for what depends on the cluster (REPLICATE) or on other
        values (RETRY); returns what of it is the policy's, for an error text."""
        taken = self._by_policy(policy) if policy is not None else ""
        if self.ttl_s < 0:
            self.ttl_s = _TTL_S
        if self.delay_s < 0:
            self.delay_s = 0
        return taken

    def _by_policy(self, policy: QueuePolicy) -> str:
        taken: list[str] = []
        if self.ttl_s < 0 and policy.ttl_s >= 0:
            self.ttl_s = policy.ttl_s
            taken.append(f"ttl {policy.ttl_s}")
        if self.retry_s < 0 and policy.retry_s >= 0:
            self.retry_s = policy.retry_s
            taken.append(f"retry {policy.retry_s}")
        if self.delay_s < 0 and policy.delay_s >= 0:
            self.delay_s = policy.delay_s
            taken.append(f"delay {policy.delay_s}")
        if self.replicate < 0 and policy.replicate >= 0:
            self.replicate = policy.replicate
            taken.append(f"replicate {policy.replicate}")
        if policy.max_length > 0 and policy.overflow == REJECT:
            limit = policy.max_length
            self.maxlen = limit if self.maxlen <= 0 else min(self.maxlen, limit)
        return f" (policy of the queue: {', '.join(taken)})" if taken else ""


def usual_retry_s(ttl_s: i64) -> i64:
    """RETRY, where neither the request nor a policy says anything."""
    return max(1, min(ttl_s // 10, 300))

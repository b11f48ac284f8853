"""What commands answer with, as values (client protocol, sections 11 to 19).

IDs and names of queues are text; a name that is not UTF-8 comes with surrogate escapes and may be
given back as it is. Bodies are bytes.
"""

from __future__ import annotations

import attrs

from disque_tx.client.addresses import Address


@attrs.frozen
class Job:
    """A delivered job, or one looked at with QPEEK (then the counters are 0).

    ``nacks``: how often workers gave it back. ``additional_deliveries``: how often it was queued
    again for other reasons. Both are estimates of the node that delivers (section 17).
    """

    queue: str
    id: str
    body: bytes
    nacks: int = 0
    additional_deliveries: int = 0


@attrs.frozen
class JobDetails:
    """All that one node knows of a job, by SHOW (section 18).

    ``state``: wait-repl, active, queued or acked. ``ctime``: when it was created: ms since the
    epoch, times 10^6, plus a number. ``queue`` and ``body`` are ``None`` for a mere
    acknowledgement. ``next_requeue_ms``, ``next_awake_ms``: in how many ms, ``None`` for never.
    """

    id: str
    queue: str | None
    state: str
    replicate: int
    ttl_s: int
    ctime: int
    delay_s: int
    retry_s: int
    nacks: int
    additional_deliveries: int
    nodes_delivered: tuple[str, ...]
    nodes_confirmed: tuple[str, ...]
    next_requeue_ms: int | None
    next_awake_ms: int | None
    body: bytes | None


@attrs.frozen
class QueueStat:
    """A queue as one node sees it, by QSTAT (section 19). ``pause``: none, in, out or all."""

    name: str
    length: int
    age_s: int
    idle_s: int
    blocked: int
    import_from: tuple[str, ...]
    import_rate: int
    jobs_in: int
    jobs_out: int
    pause: str


@attrs.frozen
class NodeInfo:
    """A node as HELLO names it (section 11). ``priority``: 1 is best, from 100 on not to be used.

    ``ip`` is empty and ``port`` 0 where unknown.
    """

    id: str
    ip: str
    port: int
    priority: int


@attrs.frozen
class Hello:
    """Who answered, and all nodes it knows, itself included."""

    id: str
    nodes: tuple[NodeInfo, ...]


@attrs.frozen
class ClusterNode:
    """A line of CLUSTER NODES (section 12.1). Times are ms since the epoch, 0 for none."""

    id: str
    address: str
    flags: frozenset[str]
    ping_sent_ms: int
    pong_received_ms: int
    connected: bool


@attrs.frozen
class Publication:
    """Where a message went. ``jobs``: queue → job ID. ``unseen``: addresses of nodes that could
    not be asked for subscriptions, so that queues subscribed there may be missing."""

    jobs: dict[str, str]
    unseen: tuple[str, ...]


class Delivered:
    """A job that this program is to do. It is delivered again, here or elsewhere, when its RETRY
    is over and it was not acknowledged.

    ``address``: of the node that delivered it. Requests about it go there, or to another node if
    that is gone.
    """

    __slots__ = ("address", "job")

    def __init__(self, address: Address, job: Job) -> None:
        self.address = address
        self.job = job

    def __repr__(self) -> str:
        return f"<TakenJob {self.id} of queue {self.queue!r}>"

    @property
    def data(self) -> bytes:
        """What was given to ``enqueue``; text as UTF-8."""
        return self.job.body

    @property
    def id(self) -> str:
        """The job's ID."""
        return self.job.id

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self.job.queue

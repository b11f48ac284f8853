"""The values that commands return (client protocol, sections 11 to 19).

IDs and names of queues are text; a name that is not UTF-8 has surrogate escapes, and can be passed
to other commands unchanged. Bodies are bytes.
"""

from __future__ import annotations

import attrs


@attrs.frozen
class Job:
    """A delivered job, or one returned by QPEEK (then the counters are 0).

    ``nacks``: how often workers gave it back. ``additional_deliveries``: how often it was queued
    again for other reasons. Both are estimates of the node that delivers (section 17).
    """

    queue: str
    id: str
    body: bytes
    nacks: int = 0
    additional_deliveries: int = 0


@attrs.frozen
class AddedOnce:
    """The job that has a key. ``new``: it was added by the request that was answered."""

    id: str
    new: bool


@attrs.frozen
class JobProgress:
    """How far a job is, as its consumer reported it: ``fraction`` of the work, from 0 to 1, a
    ``note``, and ``age_ms``, how long ago."""

    fraction: float
    note: str
    age_ms: int


@attrs.frozen
class JobDetails:
    """All that one node knows about a job, by SHOW (section 18).

    ``state``: wait-repl, active, queued or acked. ``ctime``: when it was created: ms since the
    epoch, times 10^6, plus a number. ``queue`` and ``body`` are ``None`` if the node knows only
    that the job is acknowledged. ``next_requeue_ms``, ``next_awake_ms``: in how many ms, ``None``
    for never. ``progress``: if a consumer reported one to this node.
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
    progress: JobProgress | None = None


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
class PolicySetting:
    """The value of a setting that is in force for a queue, and the pattern it comes from."""

    value: str
    pattern: str


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
    """The answer to HELLO: the ID of the node, and all nodes it knows, itself included."""

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
    """The queues that a message was added to. ``jobs``: queue → job ID. ``unseen``: addresses of
    nodes that could not be asked for subscriptions, so queues subscribed there may be missing."""

    jobs: dict[str, str]
    unseen: tuple[str, ...]

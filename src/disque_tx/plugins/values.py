"""What a node is asked for by its plugins, as values; they import them from ``interfaces``."""

from __future__ import annotations

from enum import IntEnum

import attrs


class Role(IntEnum):
    """What a client may do. ``READER``: read everything and change nothing."""

    NONE = 0
    READER = 1
    FULL = 2


@attrs.frozen
class Health:
    """Whether a node can serve. ``started``: its start is complete. ``leaving``: it is to be taken
    out of the cluster. ``memory_full``: 95 % of ``maxmemory`` is used. ``write_error``: why its log
    cannot be written; empty when it can."""

    started: bool
    loading: bool
    leaving: bool
    memory_full: bool
    write_error: str


@attrs.define  # and not frozen, which takes three times as long: there may be 100,000
class QueueFigures:
    """A queue on one node. ``queued``: jobs in it. ``oldest_s``: seconds that the job at its front
    has waited, 0 for an empty queue. ``age_s``: since the queue exists. ``idle_s``: since it was
    used. ``blocked``: clients that wait for a job. ``jobs_in``, ``jobs_out``: jobs queued and
    fetched since it exists. ``import_rate``: jobs per second that come from other nodes.
    ``pause``: none, in, out or all. ``delayed``, ``backoff``, ``in_flight``, ``loaded``: its jobs
    that are not in it, as in QCOUNT."""

    name: bytes
    queued: int
    oldest_s: float
    age_s: int
    idle_s: int
    blocked: int
    jobs_in: int
    jobs_out: int
    import_rate: int
    pause: str
    delayed: int
    backoff: int
    in_flight: int
    loaded: int


@attrs.frozen
class QueueCounts:
    """Where jobs of a queue are, besides those in it, as in QCOUNT. ``delayed``: whose DELAY this
    node waits for. ``backoff``: waiting for another attempt. ``in_flight``: fetched and not
    acknowledged. ``dead``: dead letters. ``in_per_s``, ``out_per_s``: jobs that entered and left
    the queue, the mean of ten seconds. ``loaded``: from the log, and not queued again yet."""

    delayed: int
    backoff: int
    in_flight: int
    dead: int
    in_per_s: float
    out_per_s: float
    loaded: int


@attrs.frozen
class JobEvent:
    """Something that happened to a job, as in the event log (``disque_tx.messages.events``).

    ``kind``, ``reason``: numbers for ``KIND_NAMES`` and ``REASON_NAMES``. ``elapsed_ms``: since it
    was queued, of a delivery; since it was delivered, of its end; -1 where that is not known.
    """

    kind: int
    wall_us: int
    queue: bytes
    job_id: bytes
    reason: int
    elapsed_ms: int


@attrs.frozen
class Durations:
    """How long something took, as a histogram. ``bounds_s``: upper bounds. ``counts``: of durations
    up to each bound and above the one before, and of those above all. ``sum_s``: of all."""

    bounds_s: tuple[float, ...]
    counts: tuple[int, ...]
    sum_s: float


@attrs.frozen
class ProtocolFigures:
    """What the clients of a protocol did. ``connected``: connections that are open;
    ``connections``: since the counters began. ``commands``: executed; ``errors``: requests that
    were refused at once. Bytes are those that the protocol reports."""

    name: str
    connected: int
    connections: int
    commands: int
    errors: int
    input_bytes: int
    output_bytes: int

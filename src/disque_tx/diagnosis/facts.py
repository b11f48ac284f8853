"""What is known of a cluster: of its nodes, by their own answers, and of its queues."""

from __future__ import annotations

from typing import Final

import attrs

from disque_tx.client.values import ClusterNode

#: How many queues of a node are checked for being paused.
QUEUES_MAX: Final = 1000
#: How many of the queues that wait longest are looked at.
LONGEST_MAX: Final = 50


@attrs.frozen
class QueueFacts:
    """A queue over all nodes that answer. ``oldest_s``: for how long its first job has waited.
    ``blocked``: clients that wait for a job. ``out_per_s``: jobs that left, the mean of ten
    seconds. ``pause``: none, in, out or all. ``alert_wait_s``: how long its first job may wait by
    its policy, 0 for any time. ``usual_s``: for how long 99 % of its jobs wait usually, ``None`` if
    that is not known. ``grown``: how many more jobs are queued than an hour ago, of queues for dead
    letters."""

    name: str
    queued: int
    oldest_s: float = 0.0
    blocked: int = 0
    in_flight: int = 0
    backoff: int = 0
    out_per_s: float = 0.0
    pause: str = "none"
    alert_wait_s: int = 0
    usual_s: float | None = None
    grown: int = 0


@attrs.frozen
class FailureFacts:
    """Failures in a queue in the last minute, over all nodes that answer. ``failed``: deliveries;
    ``timed_out``: those of them whose RETRY passed without a word of the worker. ``error``: the
    latest reason. ``job_id``, ``attempts``: of the job that failed most often. ``worker``: who gave
    a job back last; ``version``: of its program, if it says so."""

    name: str
    failed: int
    timed_out: int
    since_s: float
    error: str = ""
    job_id: str = ""
    attempts: int = 0
    worker: str = ""
    version: str = ""

    def with_others(self, other: FailureFacts) -> FailureFacts:
        """The same with what another node says of the queue."""
        most = max(self, other, key=lambda one: one.attempts)
        return FailureFacts(
            self.name,
            self.failed + other.failed,
            self.timed_out + other.timed_out,
            min(self.since_s, other.since_s),
            self.error or other.error,
            most.job_id,
            most.attempts,
            self.worker or other.worker,
        )


@attrs.frozen
class SurveyedNode:
    """The state of a node. ``address``: where it was asked. ``table``: ID → the line of each node
    in its CLUSTER NODES. ``info``: INFO, with its sections Eventlog, Listening and Cluster where
    these exist. ``maxmemory``: in bytes, 0 for no limit. ``paused``: how many of its first queues
    are paused. ``clock_s``: how far its clock is ahead of this machine's."""

    address: str
    id: str
    table: dict[str, ClusterNode]
    info: dict[str, str]
    maxmemory: int
    paused: int
    clock_s: float

    def number(self, name: str) -> int:
        """A figure of INFO; 0 where it is missing."""
        value = self.info.get(name, "")
        return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else 0

    def seconds(self, name: str) -> float:
        """A time in INFO, in seconds; 0 where it is missing."""
        value = self.info.get(name, "")
        return float(value) if value.replace(".", "", 1).isdecimal() and len(value) < 20 else 0.0

    def listening(self, whom: str) -> list[str]:
        """Addresses on which it listens for ``clients`` or for the ``bus``; none if it does not
        report them."""
        return [each for each in self.info.get(f"listening_{whom}", "").split(",") if each]

    @property
    def others(self) -> list[ClusterNode]:
        """All other nodes in its table."""
        return [node for node in self.table.values() if node.id != self.id]

    @property
    def flags(self) -> frozenset[str]:
        """The node's flags in its own node table."""
        own = self.table.get(self.id)
        return frozenset() if own is None else own.flags - {"myself"}

    @property
    def met(self) -> set[str]:
        """IDs of the nodes it knows, itself included, but not those in handshake."""
        return {node.id for node in self.table.values() if "handshake" not in node.flags}


@attrs.frozen
class Survey:
    """The state of a cluster at ``now_s``, unix time. ``views``: ID → state of the node.
    ``silent``: address → why there is no answer. ``queues``: those with jobs that have waited for
    longest. ``letter_queues``: what policies name as queues for dead letters. ``failures``: of
    queues whose jobs fail."""

    views: dict[str, SurveyedNode]
    silent: dict[str, str]
    queues: tuple[QueueFacts, ...] = ()
    letter_queues: frozenset[str] = frozenset()
    now_s: float = 0.0
    failures: tuple[FailureFacts, ...] = ()

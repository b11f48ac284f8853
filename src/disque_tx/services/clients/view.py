"""What plugins can read of a node's state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
from zope.interface import implementer

from disque_tx.commands.base.context import Server
from disque_tx.commands.server.info import info_text, protocol_stats
from disque_tx.core.counting.counts import NUMBERS, queue_figures, scan_figures
from disque_tx.core.queues.queues import PAUSE_NAMES
from disque_tx.core.statistics.waits import BOUNDS_MS, Histogram
from disque_tx.messages.nodes import FAIL, HANDSHAKE, MYSELF, PFAIL
from disque_tx.messages.records import JOB_ID_LENGTH
from disque_tx.plugins.interfaces import INodeView
from disque_tx.plugins.values import Durations, Health, ProtocolFigures, QueueCounts, QueueFigures
from disque_tx.services.events.durations import DurationSink
from disque_tx.services.events.sinks import EventSinks

#: The level of memory at which ADDJOB may fail.
_FULL: Final = 2
_STATES: Final = ((FAIL, "failed"), (PFAIL, "suspected"), (HANDSHAKE, "handshake"))
_BOUNDS_S: Final = tuple(bound_ms / 1000 for bound_ms in BOUNDS_MS)


@implementer(INodeView)
class NodeView:
    """The state of one node. ``sinks``: where its events go. ``started``: whether its start is
    complete."""

    def __init__(self, server: Server, sinks: EventSinks, started: Callable[[], bool]) -> None:
        self._server = server
        self._node = server.node
        self._sinks = sinks
        self._started = started
        self._durations: DurationSink | None = None

    def health(self) -> Health:
        """Whether the node can serve."""
        memory, control = self._node.memory, self._server.control
        return Health(
            started=self._started(),
            loading=control.loading(),
            leaving=self._node.membership.leaving,
            memory_full=memory.limit != 0 and memory.level() >= _FULL,
            write_error=control.write_error(),
        )

    def info(self) -> dict[str, str]:
        """The fields of ``INFO ALL``."""
        fields = {}
        for line in info_text(self._server, "all").split("\r\n"):
            name, colon, value = line.partition(":")
            if colon:
                fields[name] = value
        return fields

    def commands(self) -> list[tuple[str, int, int]]:
        """Name, calls and microseconds of every command that was used."""
        return [
            (command.name.decode(), int(command.calls), int(command.ns) // 1000)
            for command in self._server.registry.table
            if command.calls
        ]

    def nodes(self) -> dict[str, int]:
        """How many other nodes are in each state."""
        counts = dict.fromkeys(
            (*(state for _flag, state in _STATES), "connected", "unconnected"), 0
        )
        for entry in self._node.membership.nodes.values():
            if entry.flags & MYSELF:
                continue
            states = [state for flag, state in _STATES if entry.flags & flag]
            link = "unconnected" if entry.link is None else "connected"
            counts[states[0] if states else link] += 1
        return counts

    def connected(self) -> frozenset[str]:
        """To which other nodes there is a connection."""
        return frozenset(
            entry.id.decode()
            for entry in self._node.membership.nodes.values()
            if entry.link is not None
        )

    def failure_reports(self) -> dict[str, list[str]]:
        """Which nodes do not reach which others, as far as they have reported it lately."""
        oldest_ms = self._node.now_ms - 2 * self._node.cluster.node_timeout_ms
        reports = {
            entry.id.decode(): [
                who.decode() for who, at_ms in entry.reports.items() if at_ms >= oldest_ms
            ]
            for entry in self._node.membership.nodes.values()
        }
        return {about: who for about, who in reports.items() if who}

    def durations(self) -> tuple[Durations, Durations]:
        """How long jobs waited, and how long work took."""
        sink = self._durations
        if sink is None:
            sink = self._durations = DurationSink()
            self._sinks.add(sink)
        return _durations(sink.wait), _durations(sink.run)

    def queues(self, cursor: int, least: int) -> tuple[int, list[QueueFigures]]:
        """At least ``least`` queues, from this cursor on."""
        node = self._node
        after, rows = scan_figures(
            node.queues, node.queue_queries.counts, cursor, least, node.now_ms
        )
        return after, [QueueFigures(*row) for row in rows]

    def queue(self, name: bytes) -> QueueFigures | None:
        """The figures of one queue."""
        node = self._node
        queue = node.queues.get(name)
        if queue is None:
            return None
        return QueueFigures(*queue_figures(queue, node.queue_queries.counts, node.now_ms))

    def pause(self, name: bytes) -> str:
        """Whether a queue is paused."""
        return PAUSE_NAMES[self._node.queues.paused(name)].decode()

    def alert_wait_s(self, name: bytes) -> int:
        """For how long the first job of a queue may wait."""
        policy = self._node.policies.of(name)
        return 0 if policy is None else int(policy.alert_wait_s)

    def queued(self, name: bytes, count: int) -> list[bytes]:
        """The IDs of jobs in a queue, from either end."""
        queue = self._node.queues.get(name)
        if queue is None or not count:
            return []
        wanted = min(abs(count), int(queue.jobs.size))
        jobs = queue.jobs.oldest(wanted) if count > 0 else queue.jobs.newest(wanted)
        return [job.id for job in jobs]

    def body(self, job_id: bytes, most: int) -> tuple[bytes, int] | None:
        """The beginning of a body, and its size."""
        job = self._node.jobs.get(job_id)
        if job is None or job.dummy:
            return None
        size = int(job.body_bytes)
        return job.data[JOB_ID_LENGTH : JOB_ID_LENGTH + most], size

    def schedules(self) -> list[bytes]:
        """The names of all schedules."""
        return self._node.timetable.names()

    def policies(self) -> list[bytes]:
        """The patterns of all policies."""
        return self._node.policies.patterns()

    def counts(self, name: bytes) -> QueueCounts:
        """What is counted of a queue."""
        kept = self._node.queue_queries.counts.of(name)
        of = dict(zip(NUMBERS, kept.numbers, strict=True))
        return QueueCounts(
            delayed=of[b"delayed"],
            backoff=of[b"backoff"],
            in_flight=of[b"in-flight"],
            dead=of[b"dead"],
            in_per_s=of[b"in-per-s"] / 1000,
            out_per_s=of[b"out-per-s"] / 1000,
            loaded=of[b"loaded"],
        )

    def protocols(self) -> list[ProtocolFigures]:
        """What the clients of each protocol did."""
        return [
            ProtocolFigures(
                name=name,
                connected=of.connected,
                connections=of.connections,
                commands=of.commands,
                errors=of.errors,
                input_bytes=of.input_bytes,
                output_bytes=of.output_bytes,
            )
            for name, of in protocol_stats(self._server)
        ]

    def figures(self) -> dict[str, Any]:
        """What the methods above say of the node as a whole."""
        health, (wait, run) = self.health(), self.durations()
        return {
            "info": self.info(),
            "commands": self.commands(),
            "protocols": [attrs.asdict(of) for of in self.protocols()],
            "nodes": self.nodes(),
            "leaving": health.leaving,
            "write_ok": not health.write_error,
            "wait": attrs.asdict(wait),
            "run": attrs.asdict(run),
        }


def _durations(histogram: Histogram) -> Durations:
    return Durations(_BOUNDS_S, tuple(histogram.counts()), histogram.sum_ms / 1000)

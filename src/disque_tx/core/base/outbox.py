"""What a turn leaves to be done outside: the runtime performs it after the whole batch.

Plain lists that are reused: this is the hot path. The order in which the runtime performs them is
fixed: the log first, then the bus, then the replies (cluster protocol, section 13.1).
"""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.base.client import Client
from disque_tx.messages.events import NO_REASON, EventSink
from disque_tx.messages.nodes import Link, NodeEntry
from disque_tx.messages.records import JobRecord, LogSink


class Outbox:
    """``log``: where records go, ``None`` while nothing is recorded. ``events``: the log of
    what happens to jobs, ``None`` without one. ``touched``: clients with
    replies to write or a connection to close. ``resumed``: clients that were just unblocked, whose
    waiting input must be looked at. ``connects``: nodes to make a link to. ``hangups``: links to
    close. ``resolves``: host names and ports of nodes to meet, once their address is known."""

    __slots__ = ("log", "events", "touched", "resumed", "connects", "hangups", "resolves")

    def __init__(self) -> None:
        self.log: LogSink | None = None
        self.events: EventSink | None = None
        self.touched: list[Client] = []
        self.resumed: list[Client] = []
        self.connects: list[NodeEntry] = []
        self.hangups: list[Link] = []
        self.resolves: list[tuple[bytes, int]] = []

    def record_event(
        self, kind: i64, job: JobRecord, reason: i64 = NO_REASON, number: i64 = 0
    ) -> None:
        """Record that something happened to a job, if there is an event log."""
        if self.events is not None:
            self.events.job(kind, job, reason, number, -1)

    def record_event_text(
        self, kind: i64, job: JobRecord, reason: i64, number: i64, text: bytes
    ) -> None:
        """Like :meth:`record_event`, with a text (see ``EventSink.noted``), which may be empty."""
        if self.events is not None:
            self.events.noted(kind, job, reason, number, -1, text)

    def touch(self, client: Client) -> None:
        """The client has something to write, or is to be closed; any number of times."""
        if not client.touched:
            client.touched = True
            self.touched.append(client)

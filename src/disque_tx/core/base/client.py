"""A connected client as the node sees it: identity, flags, and what it is blocked on."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.answerline import AnswerLine
from disque_tx.errors import PeerError
from disque_tx.messages.records import Linked, ReplySink

#: What a client waits for.
NOT_BLOCKED: Final = 0
BLOCKED_GETJOB: Final = 1
BLOCKED_ADDJOB: Final = 2
BLOCKED_QMOVE: Final = 3
BLOCKED_WAITJOB: Final = 4
BLOCKED_TASK: Final = 5

#: CLIENT REPLY modes.
REPLY_ON: Final = 0
REPLY_OFF: Final = 1
REPLY_SKIP_NEXT: Final = 2
REPLY_SKIP: Final = 3


class Client(Linked):
    """One row per connection, made by a listener, gone when the connection is.

    ``addr`` and ``monitor_addr``: as CLIENT LIST and MONITOR show it. ``created_ms`` and
    ``seen_ms``: the node's steady clock. ``touched``: the client is in the outbox's list of
    clients with something to write; the runtime clears it. ``closing``: no further request is
    executed, the connection closes once everything was written. ``abort_now``: closes at once.
    ``soft_limit_ms``: since when its output is above the soft limit, -1 while it is not.
    ``reader``: it may read and change nothing.
    ``refused``: the request being looked at has not passed the checks. ``blocked_queues`` and
    ``blocked_counters``: what a blocked GETJOB asked for; ``blocked_job``: whose key or copies
    a blocked ADDJOB waits for, or whose end a blocked WAITJOB; ``blocked_number``: which of its
    long requests the client waits for; ``blocked_selector``: the number of the selector of a
    blocked GETJOB with patterns, 0 for none. ``line``: the answers to several ADDJOBs that were
    sent at once, instead of ``blocked_job``. ``held``: a request that was read while it could not
    be executed, empty if it is none, as ``fault`` says.
    """

    __slots__ = (
        "id",
        "replies",
        "addr",
        "monitor_addr",
        "fault",
        "fd",
        "held",
        "line",
        "unix",
        "name",
        "created_ms",
        "seen_ms",
        "authenticated",
        "reader",
        "monitor",
        "reply_mode",
        "protocol",
        "last_command",
        "refused",
        "closing",
        "abort_now",
        "touched",
        "blocked",
        "blocked_queues",
        "blocked_job",
        "blocked_counters",
        "blocked_number",
        "blocked_selector",
        "soft_limit_ms",
    )

    def __init__(self, client_id: int, replies: ReplySink, addr: bytes, now_ms: i64) -> None:
        super().__init__()
        self.id: i64 = client_id
        self.replies: ReplySink = replies
        self.addr: bytes = addr
        self.monitor_addr: bytes = addr
        self.fd: i64 = -1
        self.unix: bool = False
        self.name: bytes = b""
        self.created_ms: i64 = now_ms
        self.seen_ms: i64 = now_ms
        self.authenticated: bool = False
        self.reader: bool = False
        self.monitor: bool = False
        self.reply_mode: i64 = REPLY_ON
        self.protocol: i64 = 2
        self.last_command: bytes = b""
        self.refused: bool = False
        self.closing: bool = False
        self.abort_now: bool = False
        self.touched: bool = False
        self.blocked: i64 = NOT_BLOCKED
        self.blocked_queues: list[bytes] = []
        self.blocked_job: bytes = b""
        self.blocked_counters: bool = False
        self.blocked_number: i64 = 0
        self.blocked_selector: i64 = 0
        self.line: AnswerLine | None = None
        self.held: list[bytes] | None = None
        self.fault: PeerError | None = None
        self.soft_limit_ms: i64 = -1

    def awaited_jobs(self) -> list[bytes]:
        """The jobs that it adds and waits for, in the order of its requests."""
        if self.blocked != BLOCKED_ADDJOB:
            return []
        if self.line is not None:
            return list(self.line.waiting)
        return [self.blocked_job] if self.blocked_job else []

    def begin_answer(self) -> int:
        """Where the answer about one of these jobs begins, which is written next."""
        return 0 if self.line is None else self.replies.mark()

    def speak(self, version: int) -> None:
        """Answer in RESP2 or RESP3 from now on; this replaces ``replies``."""
        self.replies = self.replies.speaking(version)

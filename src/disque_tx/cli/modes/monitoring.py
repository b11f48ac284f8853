"""Latency and figures, measured until interrupted (client protocol, section 22.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Final

from disque_tx.cli.connection import ServerConnection, ServerConnectionLost, ServerUnreachable
from disque_tx.cli.formatting import human_size
from disque_tx.cli.replies import ErrorReply

PING_INTERVAL_S: Final = 0.01
RECONNECT_INTERVAL_S: Final = 1.0
LINES_PER_HEADER: Final = 20
_OVERWRITE: Final = b"\x1b[0G\x1b[2K"
_HEADER: Final = (
    b"------- data ------ --------------------- load -------------------- - child -\n"
    b"keys       mem      clients blocked requests            connections          \n"
)


class RefusedError(Exception):
    """The server answered INFO with an error."""


class LatencyWindow:
    """Round trips since ``started_s``, in milliseconds."""

    def __init__(self, started_s: float) -> None:
        self.started_s = started_s
        self.count = 0
        self.total_ms = 0
        self.min_ms = 0
        self.max_ms = 0

    def add(self, elapsed_ms: int) -> None:
        """Count one round trip."""
        self.min_ms = min(self.min_ms, elapsed_ms) if self.count else elapsed_ms
        self.max_ms = max(self.max_ms, elapsed_ms)
        self.total_ms += elapsed_ms
        self.count += 1

    def line(self) -> bytes:
        """The figures so far."""
        average_ms = self.total_ms / self.count
        figures = (self.min_ms, self.max_ms, average_ms, self.count)
        return b"min: %d, max: %d, avg: %.2f (%d samples)" % figures


def latency(
    connection: ServerConnection,
    out: BinaryIO,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    window_s: float | None,
) -> None:
    """Measure PING every 10 ms until ``ServerConnectionLost`` is raised.

    ``window_s``: length of a window; each has a line of its own. ``None``: one window.
    """
    window = LatencyWindow(clock())
    while True:
        before_s = clock()
        connection.call([b"PING"])
        now_s = clock()
        window.add(int((now_s - before_s) * 1000))
        out.write(_OVERWRITE + window.line())
        if window_s is not None and now_s - window.started_s > window_s:
            out.write(b" -- %.2f seconds range\n" % (now_s - window.started_s))
            window = LatencyWindow(now_s)
        out.flush()
        sleep(PING_INTERVAL_S)


def stat(
    connect: Callable[[], ServerConnection],
    out: BinaryIO,
    sleep: Callable[[float], None],
    interval_s: float,
) -> None:
    """Print a line of figures per interval, and connect again when the connection is lost.

    Raises ``ServerUnreachable`` for the first connection only, ``RefusedError`` when INFO is
    refused.
    """
    connection: ServerConnection | None = connect()
    lines = 0
    requests = 0
    while True:
        try:
            connection = connection or _reconnect(connect, out, sleep)
            fields = _info(connection)
        except ServerConnectionLost:
            connection = None
            continue
        if lines % LINES_PER_HEADER == 0:
            out.write(_HEADER)
        total = _number(fields, "total_commands_processed")
        out.write(_stat_line(fields, total, total - requests if lines else 0))
        out.flush()
        requests = total
        lines += 1
        sleep(interval_s)


def _reconnect(
    connect: Callable[[], ServerConnection], out: BinaryIO, sleep: Callable[[float], None]
) -> ServerConnection:
    attempt = 0
    while True:
        attempt += 1
        out.write(b"Reconnecting (%d)...\n" % attempt)
        out.flush()
        sleep(RECONNECT_INTERVAL_S)
        try:
            return connect()
        except ServerUnreachable:
            continue


def _info(connection: ServerConnection) -> dict[str, str]:
    reply = connection.call([b"INFO"])
    if isinstance(reply, ErrorReply):
        raise RefusedError(reply.decode("utf-8", "backslashreplace"))
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else ""
    pairs = [line.partition(":") for line in text.splitlines()]
    return {name: value for name, colon, value in pairs if colon}


def _number(fields: dict[str, str], name: str) -> int:
    value = fields.get(name, "")
    return int(value) if value.isascii() and value.isdigit() else 0


def _stat_line(fields: dict[str, str], total: int, delta: int) -> bytes:
    jobs = f"{_number(fields, 'registered_jobs')}/{_number(fields, 'registered_queues')}"
    memory = human_size(_number(fields, "used_memory"))
    clients = _number(fields, "connected_clients")
    blocked = _number(fields, "blocked_clients")
    connections = _number(fields, "total_connections_received")
    child = "AOF" if _number(fields, "aof_rewrite_in_progress") else ""
    requests = f"{total} (+{delta})"
    line = f"{jobs:<10} {memory:<8} {clients:<8}{blocked:<8}{requests:<19} {connections:<12}{child}"
    return line.encode("ascii") + b"\n"


def intrinsic_latency(out: BinaryIO, clock_ns: Callable[[], int], run_s: float) -> None:
    """Measure for ``run_s`` seconds how long this machine keeps a busy program from running."""
    started_ns = before_ns = clock_ns()
    end_ns = started_ns + int(run_s * 1e9)
    worst_ns = runs = 0
    while before_ns < end_ns:
        now_ns = clock_ns()
        elapsed_ns = now_ns - before_ns
        before_ns = now_ns
        runs += 1
        if elapsed_ns > worst_ns:
            worst_ns = elapsed_ns
            out.write(b"Longest gap so far: %d microseconds\n" % (worst_ns // 1000))
            out.flush()
    average_ns = (before_ns - started_ns) / max(runs, 1)
    out.write(
        b"%d runs, on average %.4f microseconds (%.2f nanoseconds) each\n"
        % (runs, average_ns / 1000, average_ns)
    )
    out.write(b"The longest took %.0f times the average\n" % (worst_ns / max(average_ns, 1e-9)))

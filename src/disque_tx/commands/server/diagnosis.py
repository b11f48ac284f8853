"""SLOWLOG and LATENCY (client protocol, section 8)."""

from __future__ import annotations

from typing import Final

from disque_tx.commands.base.arguments import quoted, required_integer
from disque_tx.commands.base.context import ANY, Server, Subcommand, run_subcommand
from disque_tx.commands.base.latency import doctor, graph
from disque_tx.commands.base.slowlog import SlowEntry
from disque_tx.core.base.client import Client
from disque_tx.errors import CommandError, syntax_error
from disque_tx.messages.records import ReplySink

_SLOWLOG_COUNT: Final = 10


def slowlog(server: Server, client: Client, argv: list[bytes]) -> None:
    """SLOWLOG GET [count] | LEN | RESET."""
    refusal = CommandError(
        "ERR", "Unknown SLOWLOG subcommand or wrong # of args. Try GET, RESET, LEN."
    )
    run_subcommand(_SLOWLOG, server, client, argv, refusal)


def _slowlog_len(server: Server, client: Client, argv: list[bytes]) -> None:
    client.replies.integer(len(server.slowlog.entries))


def _slowlog_reset(server: Server, client: Client, argv: list[bytes]) -> None:
    server.slowlog.reset()
    client.replies.status(b"OK")


def _slowlog_get(server: Server, client: Client, argv: list[bytes]) -> None:
    count = required_integer(argv[2]) if len(argv) == 3 else _SLOWLOG_COUNT
    entries = list(server.slowlog.entries)
    chosen = entries if count < 0 else entries[:count]
    client.replies.array(len(chosen))
    for entry in chosen:
        slow_entry(client.replies, entry)


def slow_entry(replies: ReplySink, entry: SlowEntry) -> None:
    """One entry of the slow log."""
    replies.array(6 if entry.addr else 4)
    replies.integer(entry.id)
    replies.integer(entry.unix_s)
    replies.integer(entry.duration_us)
    replies.array(len(entry.words))
    for word in entry.words:
        replies.bulk(word)
    if entry.addr:
        replies.bulk(entry.addr)
        replies.bulk(entry.client)


def latency(server: Server, client: Client, argv: list[bytes]) -> None:
    """LATENCY LATEST | HISTORY event | RESET [event ...] | GRAPH event | DOCTOR."""
    run_subcommand(_LATENCY, server, client, argv, syntax_error())


def _latency_doctor(server: Server, client: Client, argv: list[bytes]) -> None:
    client.replies.bulk(doctor(server.latency))


def _latency_reset(server: Server, client: Client, argv: list[bytes]) -> None:
    client.replies.integer(server.latency.reset(argv[2:]))


def _latency_latest(server: Server, client: Client, argv: list[bytes]) -> None:
    replies = client.replies
    replies.array(len(server.latency.series))
    for event, series in server.latency.series.items():
        last_s, last_ms = series.samples[-1]
        replies.array(4)
        replies.bulk(event)
        replies.integer(last_s)
        replies.integer(last_ms)
        replies.integer(series.max_ms)


def _latency_history(server: Server, client: Client, argv: list[bytes]) -> None:
    replies = client.replies
    series = server.latency.series.get(argv[2])
    if series is None:
        replies.array(0)
        return
    replies.array(len(series.samples))
    for unix_s, duration_ms in series.samples:
        replies.array(2)
        replies.integer(unix_s)
        replies.integer(duration_ms)


def _latency_graph(server: Server, client: Client, argv: list[bytes]) -> None:
    series = server.latency.series.get(argv[2])
    if series is None:
        raise CommandError("ERR", f"No samples available for event '{quoted(argv[2])}'")
    client.replies.bulk(graph(argv[2], series, server.node.wall_us // 1_000_000))


_SLOWLOG: Final = {
    b"get": Subcommand(_slowlog_get, 2, 3),
    b"len": Subcommand(_slowlog_len, 2, 2),
    b"reset": Subcommand(_slowlog_reset, 2, 2),
}
_LATENCY: Final = {
    b"latest": Subcommand(_latency_latest, 2, 2),
    b"history": Subcommand(_latency_history, 3, 3),
    b"graph": Subcommand(_latency_graph, 3, 3),
    b"doctor": Subcommand(_latency_doctor, 2, 2),
    b"reset": Subcommand(_latency_reset, 2, ANY),
}

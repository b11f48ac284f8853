"""SCHEDULE: the table of recurring jobs (client protocol, section 30)."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.commands.base.arguments import integer
from disque_tx.commands.base.context import ANY, Server, Subcommand, run_subcommand
from disque_tx.commands.jobs.jobs import read_add_options
from disque_tx.commands.tables.change import change, repair
from disque_tx.commands.tables.schedulelists import (
    list_schedules,
    next_times,
    row_of,
    write_row,
)
from disque_tx.core.adding.adding import out_of_memory
from disque_tx.core.base.client import Client
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.node import Node
from disque_tx.core.tables.calendar import EVERY, EVERY_S_MAX
from disque_tx.core.tables.definition import MISSED, SKIP, TEXT_BYTES_MAX, Definition
from disque_tx.errors import CommandError, syntax_error
from disque_tx.messages.tables import Register

#: Occurrences that GET shows.
_SHOWN: Final = 5
_UNIQUE: Final = "UNIQUE is no option of a schedule: each of its occurrences is added once anyway"


def schedule(server: Server, client: Client, argv: list[bytes]) -> None:
    """SCHEDULE SET | LIST | GET | DEL | PAUSE | RESUME | SKIP | RUN | REPAIR."""
    refusal = CommandError("ERR", "Wrong SCHEDULE subcommand or number of arguments")
    run_subcommand(_SUBCOMMANDS, server, client, argv, refusal)


def _set(server: Server, client: Client, argv: list[bytes]) -> None:
    """SET name <cron | EVERY s> [TZ zone] [MISSED what] QUEUE queue body [ADDJOB options]"""
    node = server.node
    wall_s = _now_s(node)
    at: i64 = 4
    text = argv[3]
    if text.upper() == b"EVERY":
        every_s = integer(argv[4])
        if every_s < 1 or every_s > EVERY_S_MAX:
            raise CommandError("ERR", f"EVERY takes 1 to {EVERY_S_MAX} seconds")
        text = EVERY + b"%d" % every_s
        at = 5
    elif len(text) > TEXT_BYTES_MAX:
        raise CommandError("ERR", f"Cron expression longer than {TEXT_BYTES_MAX} bytes")
    zone, missed = b"", SKIP
    while at + 1 < len(argv) and argv[at].upper() != b"QUEUE":
        word = argv[at].upper()
        if word == b"TZ":
            zone = argv[at + 1]
        elif word == b"MISSED":
            missed = argv[at + 1].lower()
            if missed not in MISSED:
                raise CommandError("ERR", "MISSED is one of skip, one, all")
        else:
            raise syntax_error()
        at += 2
    if at + 2 >= len(argv):
        raise syntax_error()
    request = AddRequest(argv[at + 1], argv[at + 2])
    read_add_options(request, argv, at + 3)
    if request.unique is not None:
        raise CommandError("ERR", _UNIQUE)
    if not text.startswith(EVERY):
        node.recurring.calendar.check(text, zone, int(wall_s))
    elif zone:
        raise CommandError("ERR", "TZ needs a cron expression: EVERY counts seconds")
    wanted = Definition(text, zone, missed, request, wall_s)
    _change(server, node.timetable.plan_set(argv[2], wanted, node.id))
    client.replies.status(b"OK")


def _now_s(node: Node) -> i64:
    """What most clocks show, in seconds since 1970."""
    return (node.wall_us // 1000 - node.state.clocks.ahead_ms) // 1000


def _del(server: Server, client: Client, argv: list[bytes]) -> None:
    """DEL name"""
    node = server.node
    changes = node.timetable.plan_del(argv[2], node.id, node.wall_us // 1_000_000)
    _change(server, changes)
    client.replies.integer(1 if changes else 0)


def _pause(server: Server, client: Client, argv: list[bytes]) -> None:
    """PAUSE name"""
    _set_paused(server, client, argv[2], True)


def _resume(server: Server, client: Client, argv: list[bytes]) -> None:
    """RESUME name"""
    _set_paused(server, client, argv[2], False)


def _set_paused(server: Server, client: Client, name: bytes, paused: bool) -> None:
    node = server.node
    wall_s = _now_s(node)
    changes = node.timetable.plan_pause(name, paused, node.id, wall_s)
    _change(server, changes)
    client.replies.integer(len(changes))


def _skip(server: Server, client: Client, argv: list[bytes]) -> None:
    """SKIP name"""
    node = server.node
    node.timetable.find(argv[2])
    times = next_times(node, argv[2], 1)
    if not times:
        raise CommandError("ERR", "The schedule has no occurrence that could be left out")
    node.recurring.check_skip()
    _change(server, node.timetable.plan_skip(argv[2], times[0], node.id))
    client.replies.integer(times[0])


def _change(server: Server, changes: list[Register]) -> None:
    node = server.node
    save, exchange = server.control.save_schedules, node.recurring.exchange
    change(server, node.timetable, save, exchange, changes)


def _run(server: Server, client: Client, argv: list[bytes]) -> None:
    """RUN name"""
    node = server.node
    definition = node.timetable.find(argv[2])
    if node.memory.level() > 1:
        raise out_of_memory()
    node.add_job(client, definition.new_request())


def _repair(server: Server, client: Client, argv: list[bytes]) -> None:
    """REPAIR"""
    node = server.node
    save, exchange = server.control.save_schedules, node.recurring.exchange
    client.replies.integer(repair(server, node.timetable, save, exchange))


def _list(server: Server, client: Client, argv: list[bytes]) -> None:
    """LIST"""
    list_schedules(server, client)


def _get(server: Server, client: Client, argv: list[bytes]) -> None:
    """GET name"""
    server.node.timetable.find(argv[2])
    write_row(client.replies, row_of(server.node, argv[2], _SHOWN))


_SUBCOMMANDS: Final = {
    b"set": Subcommand(_set, 7, ANY),
    b"list": Subcommand(_list, 2, 2),
    b"get": Subcommand(_get, 3, 3),
    b"del": Subcommand(_del, 3, 3),
    b"pause": Subcommand(_pause, 3, 3),
    b"resume": Subcommand(_resume, 3, 3),
    b"skip": Subcommand(_skip, 3, 3),
    b"run": Subcommand(_run, 3, 3),
    b"repair": Subcommand(_repair, 2, 2),
}

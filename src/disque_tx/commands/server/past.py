"""What happened before: the history of queues, their failures, slow commands, the last actions, and
notes (client protocol, section 8)."""

from __future__ import annotations

from typing import Final

from disque_tx.commands.base.arguments import integer, job_ids, required_integer, wrong_arguments
from disque_tx.commands.base.audit import acted
from disque_tx.commands.base.context import Server
from disque_tx.commands.server.diagnosis import slow_entry
from disque_tx.core.base.client import Client
from disque_tx.core.statistics.rings import STEPS_S
from disque_tx.errors import CommandError, syntax_error
from disque_tx.messages.limits import U32_MAX
from disque_tx.messages.records import ReplySink

#: Rows of one answer.
_ROWS_MAX: Final = 500
_ACTIONS_COUNT: Final = 10
_NOTE_BYTES_MAX: Final = 200
#: What clients do by several commands, none of which says what it is a part of.
_TOLD: Final = frozenset((b"requeue", b"drop"))
#: What they tell a worker by a job: it is about no job.
_WORKER: Final = b"worker"
_TOLD_JOBS_MAX: Final = U32_MAX


def note(server: Server, client: Client, argv: list[bytes]) -> None:
    """NOTE word [word ...]: the list of actions has it, as it has every such request."""
    if sum(map(len, argv[1:])) + len(argv) - 2 > _NOTE_BYTES_MAX:
        raise CommandError("ERR", f"A note has at most {_NOTE_BYTES_MAX} bytes")
    client.replies.status(b"OK")


def actions(server: Server, client: Client, argv: list[bytes]) -> None:
    """ACTIONS [count]: of this node, newest first; or ACTIONS ADD jobs what word ..., by a program
    that has requeued or dropped jobs, or told a worker something."""
    if len(argv) > 4 and argv[1].lower() == b"add":
        _add(server, client, argv)
        return
    if len(argv) > 2:
        raise wrong_arguments(b"actions")
    count = required_integer(argv[1]) if len(argv) == 2 else _ACTIONS_COUNT
    _rows(server, client.replies, 0, len(server.actions.entries) if count < 0 else count)


def _add(server: Server, client: Client, argv: list[bytes]) -> None:
    jobs, what = required_integer(argv[2]), argv[3].lower()
    if jobs == 0 and what == _WORKER:
        acted(server, client, argv[3:])
    elif 0 < jobs < _TOLD_JOBS_MAX and what in _TOLD:
        acted(server, client, argv[3:], jobs)
    else:
        raise syntax_error()
    client.replies.status(b"OK")


def actions_question(server: Server, client: Client, argv: list[bytes]) -> None:
    """ACTIONS first count"""
    first, count = integer(argv[1]), integer(argv[2])
    if first < 0 or not 1 <= count <= _ROWS_MAX:
        raise syntax_error()
    _rows(server, client.replies, first, count)


def slowlog_question(server: Server, client: Client, argv: list[bytes]) -> None:
    """SLOWLOG first count"""
    first, count = integer(argv[1]), integer(argv[2])
    if first < 0 or not 1 <= count <= _ROWS_MAX:
        raise syntax_error()
    chosen = list(server.slowlog.entries)[first : first + count]
    client.replies.array(len(chosen))
    for entry in chosen:
        slow_entry(client.replies, entry)


def _rows(server: Server, replies: ReplySink, first: int, count: int) -> None:
    chosen = list(server.actions.entries)[first : first + count]
    replies.array(len(chosen))
    for action in chosen:
        replies.array(6)
        replies.integer(int(action.at_ms))
        for text in (action.command, action.who, action.what, action.refused):
            replies.bulk(text)
        replies.integer(int(action.jobs.value))


def events_question(server: Server, client: Client, argv: list[bytes]) -> None:
    """EVENTS id number: what happened to a job, by the event log, in parts: 1, or 0 if the log is
    off; the number of the next part, 0 for none; 1 if these were all; objects of JSON."""
    (job_id,) = job_ids(argv[:2])
    number = integer(argv[2])
    if number < 0:
        raise syntax_error()
    part = server.control.job_events(job_id, number)
    replies = client.replies
    replies.array(4)
    replies.integer(0 if part is None else 1)
    following, complete, found = (0, False, []) if part is None else part
    replies.integer(following)
    replies.integer(1 if complete else 0)
    replies.array(len(found))
    for one in found:
        replies.bulk(one)


def troubles_question(server: Server, client: Client, argv: list[bytes]) -> None:
    """TROUBLES count: queues whose jobs failed in the last minute, that with most failures first:
    name, failures, those without a word of a worker, since when in unix milliseconds, the latest
    reason, the job that failed most often, with how often that was, and the name of the connection
    that gave a job back last."""
    count = integer(argv[1])
    if not 1 <= count <= _ROWS_MAX:
        raise syntax_error()
    node, replies = server.node, client.replies
    found = node.state.troubles.recent(count)
    replies.array(len(found))
    for one in found:
        replies.array(8)
        replies.bulk(one.data)
        replies.integer(int(one.failed))
        replies.integer(int(one.timed_out))
        replies.integer(int(one.since_us) // 1000)
        replies.bulk(one.error)
        replies.bulk(one.job_id)
        replies.integer(int(one.attempts))
        replies.bulk(one.client)


def usual_question(server: Server, client: Client, argv: list[bytes]) -> None:
    """USUAL name ...: for how many milliseconds 99 % of the jobs of each queue wait usually, by the
    history of the last day; -1 where too little is known."""
    client.replies.array(len(argv) - 1)
    for name in argv[1:]:
        client.replies.integer(server.node.state.history.usual_wait_ms(name))


def history_question(server: Server, client: Client, argv: list[bytes]) -> None:
    """HISTORY step-seconds first last [queue]: a row for each point of these steps, which are
    numbered from 1970 on: the step, and the numbers of :data:`NUMBERS`."""
    step, first, last = integer(argv[1]), integer(argv[2]), integer(argv[3])
    if step not in STEPS_S or first < 0 or not first <= last < first + _ROWS_MAX:
        raise syntax_error()
    name = argv[4] if len(argv) == 5 else None
    rows = server.node.state.history.between(name, STEPS_S.index(step), first, last)
    client.replies.array(len(rows))
    for row in rows:
        client.replies.bulk(b" ".join([b"%d" % number for number in row]))

"""ASK, and the questions that it takes: each node answers them for itself. They are for programs
that show a daemon of several processes, or a whole cluster, as one.

A question costs its node about a millisecond at the most, besides a body that it shows whole: what
is longer is asked for in parts. Those about several jobs are answered with an element for each.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.commands.base.arguments import cursor, integer, job_ids
from disque_tx.commands.base.context import Handler, Server
from disque_tx.commands.jobs import jobs, progress, retries
from disque_tx.commands.jobs.counting import ended, scope_of
from disque_tx.commands.jobs.finding import find
from disque_tx.commands.jobs.queues import jscan
from disque_tx.commands.server import past
from disque_tx.commands.server.clients import client_line
from disque_tx.commands.server.cluster import node_list
from disque_tx.commands.server.diagnosis import latency
from disque_tx.commands.server.info import info
from disque_tx.commands.server.workers import workers_question
from disque_tx.core.base.client import Client
from disque_tx.core.counting.asked import (
    ASK_WORD_BYTES_MAX,
    ASK_WORDS_MAX,
    CHANGES,
    NO_QUESTION,
    READING,
    READS,
    Respondent,
)
from disque_tx.core.counting.counts import Figures, queue_figures, scan_figures
from disque_tx.core.counting.questions import HERE
from disque_tx.core.counting.wordreplies import WordReplies
from disque_tx.core.jobs.job import NOWHERE, Job
from disque_tx.errors import CommandError, syntax_error
from disque_tx.messages.records import ACKED, JOB_ID_LENGTH, QUEUED, ReplySink

_NODE_ID_BYTES: Final = 40
#: Queues, clients, entries of the slow log and found jobs of one answer; jobs in a queue.
_ROWS_MAX: Final = 500
_QUEUED_MAX: Final = 10_000
#: The level of memory at which no job is added.
_FULL: Final = 2
#: Bytes of bodies in one answer, if there are several.
BODIES_BYTES: Final = 256 * 1024
#: How much a node has to do with a job: nothing, it knows that the job is done, it has a copy, or
#: the job is in its queue, delayed, in backoff, loaded, or in flight.
UNKNOWN: Final = 0
DONE: Final = 1
COPY: Final = 2
HOLDS: Final = 3


def ask(server: Server, client: Client, argv: list[bytes]) -> None:
    """ASK NODE|PROCESSES|CLUSTER|node-id question [word ...]"""
    scope: i64 = HERE
    one = b""
    if argv[1].upper() != b"NODE":
        scope = scope_of(server, argv[1].upper())
        if scope < 0:
            if len(argv[1]) != _NODE_ID_BYTES:
                raise syntax_error()
            scope, one = HERE, argv[1]
    words = argv[2:]
    kind = _kind(words)
    if kind == NO_QUESTION:
        raise CommandError("ERR", "ASK knows no such question, or not with so many words")
    if len(words) > ASK_WORDS_MAX or max([len(word) for word in words]) > ASK_WORD_BYTES_MAX:
        raise CommandError(
            "ERR", f"A question has at most {ASK_WORDS_MAX} words of {ASK_WORD_BYTES_MAX} bytes"
        )
    node = server.node
    node.queue_queries.ask(client, words, scope, one)


class LocalRespondent(Respondent):
    """Answers the questions of all nodes at this one."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def kind(self, words: list[bytes]) -> i64:
        return _kind(words)

    def begin(self, words: list[bytes]) -> Client:
        server = self._server
        client = Client(0, WordReplies(), b"", server.node.now_ms)
        client.reader = True  # scans are bounded
        try:
            self._check(words)
            _QUESTIONS[words[0].upper()].handler(server, client, words)
        except CommandError as error:
            client.replies = WordReplies()
            client.replies.error(error.reply())
        return client

    def give_up(self, client: Client) -> None:
        self._server.node.client_gone(client)

    def _check(self, words: list[bytes]) -> None:
        """Raises ``CommandError`` for what the state of the node does not allow."""
        if not self._server.degraded:
            return
        if self._server.control.loading():
            raise CommandError("LOADING", "Disque is loading the dataset in memory")
        reason = self._server.control.write_error()
        if reason and _kind(words) == CHANGES:
            raise CommandError("MISCONF", f"Errors writing to the AOF file: {reason}")


class _Question:
    """``least``, ``most``: words, the name included."""

    __slots__ = ("handler", "least", "most")

    def __init__(self, least: i64, most: i64, handler: Handler) -> None:
        self.least: i64 = least
        self.most: i64 = most
        self.handler: Handler = handler


def _kind(words: list[bytes]) -> i64:
    question = _QUESTIONS.get(words[0].upper()) if words else None
    if question is None or not question.least <= len(words) <= question.most:
        return NO_QUESTION
    return READS if words[0].upper() in READING else CHANGES


def _number(word: bytes, most: int) -> int:
    """A number from 1 to ``most``."""
    number = integer(word)
    if not 1 <= number <= most:
        raise CommandError("ERR", f"A number of this question is not between 1 and {most}")
    return number


# -- queues ------------------------------------------------------------------------------------


def _queues(server: Server, client: Client, argv: list[bytes]) -> None:
    """QUEUES cursor count"""
    node = server.node
    after, rows = scan_figures(
        node.queues,
        node.queue_queries.counts,
        cursor(argv[1]),
        _number(argv[2], _ROWS_MAX),
        node.now_ms,
    )
    replies = client.replies
    replies.array(2)
    replies.bulk(b"%d" % after)
    replies.array(len(rows))
    for row in rows:
        replies.array(len(row))
        _write_figures(replies, row)


def _queue(server: Server, client: Client, argv: list[bytes]) -> None:
    """QUEUE name"""
    node, replies = server.node, client.replies
    queue = node.queues.get(argv[1])
    if queue is None:
        replies.null_array()
        return
    row = queue_figures(queue, node.queue_queries.counts, node.now_ms)
    said = node.pausing.kept.get(queue.name)
    replies.array(len(row) + 2)
    _write_figures(replies, row)
    replies.bulk(b"" if said is None else said.who)
    replies.integer(0 if said is None else said.at_s)


def _write_figures(replies: ReplySink, row: Figures) -> None:
    """The members of ``row``, the wait of the first job in milliseconds."""
    (name, queued, oldest_s, age_s, idle_s, blocked, jobs_in, jobs_out, rate, pause, *places) = row
    replies.bulk(name)
    replies.integer(queued)
    replies.integer(round(oldest_s * 1000))
    for number in (age_s, idle_s, blocked, jobs_in, jobs_out, rate):
        replies.integer(number)
    replies.bulk(pause.encode())
    for number in places:
        replies.integer(number)


def _counts(server: Server, client: Client, argv: list[bytes]) -> None:
    """COUNTS name ..."""
    node, replies = server.node, client.replies
    replies.array(len(argv) - 1)
    for name in argv[1:]:
        numbers = node.queue_queries.counts.of(name).numbers
        replies.array(len(numbers))
        for number in numbers:
            replies.integer(number)


# -- jobs --------------------------------------------------------------------------------------


def _holds(server: Server, client: Client, argv: list[bytes]) -> None:
    """HOLDS id ..."""
    ids = job_ids(argv)
    client.replies.array(len(ids))
    for job_id in ids:
        client.replies.integer(_holding(server.node.jobs.get(job_id)))


def _holding(job: Job | None) -> int:
    if job is None:
        return UNKNOWN
    if job.dummy or job.state == ACKED:
        return DONE
    return HOLDS if job.state == QUEUED or job.place != NOWHERE else COPY


def _queued(server: Server, client: Client, argv: list[bytes]) -> None:
    """QUEUED name oldest|newest count"""
    queue = server.node.queues.get(argv[1])
    count = _number(argv[3], _QUEUED_MAX)
    found: list[Job] = []
    if queue is not None:
        newest = argv[2].lower() == b"newest"
        found = queue.jobs.newest(count) if newest else queue.jobs.oldest(count)
    client.replies.array(len(found))
    for job in found:
        client.replies.bulk(b"%d:%d:%s" % (job.priority, job.ctime, job.id))


def _bodies(server: Server, client: Client, argv: list[bytes]) -> None:
    """BODIES longest beginning id ...: the size and the body of each; of longer ones this number of
    bytes; as many as fit."""
    longest, beginning = integer(argv[1]), integer(argv[2])
    if longest < 0 or beginning < 0:
        raise syntax_error()
    rows: list[tuple[int, bytes] | None] = []
    size = 0
    for job_id in job_ids(argv[2:]):
        job = server.node.jobs.get(job_id)
        if job is None or job.dummy:
            rows.append(None)
            continue
        body_bytes = int(job.body_bytes)
        shown = body_bytes if body_bytes <= longest else min(beginning, body_bytes)
        if size and size + shown > BODIES_BYTES:
            break
        size += shown
        rows.append((body_bytes, job.data[JOB_ID_LENGTH : JOB_ID_LENGTH + shown]))
    client.replies.array(len(rows))
    for row in rows:
        if row is None:
            client.replies.null_array()
        else:
            client.replies.array(2)
            client.replies.integer(row[0])
            client.replies.bulk(row[1])


def _outline(server: Server, client: Client, argv: list[bytes]) -> None:
    """OUTLINE id: SHOW with the place of the job, and not its body"""
    job = server.node.jobs.get(job_ids(argv)[0])
    if job is None or job.dummy:
        client.replies.null_array()
    else:
        node = server.node
        jobs.show_job(client.replies, job, node.now_ms, node.state.progress, False)


def _jobs(server: Server, client: Client, argv: list[bytes]) -> None:
    """JOBS cursor count queue [state]"""
    count = b"%d" % _number(argv[2], _ROWS_MAX)
    words = [b"JSCAN", argv[1], b"COUNT", count, b"QUEUE", argv[3]]
    jscan(server, client, words if len(argv) == 4 else [*words, b"STATE", argv[4]])


def _move(server: Server, client: Client, argv: list[bytes]) -> None:
    """MOVE and the words of QMOVE"""
    memory = server.node.memory
    if memory.limit != 0 and memory.level() == _FULL:
        raise CommandError("OOM", "command not allowed when used memory > 'maxmemory'.")
    retries.qmove(server, client, argv)


# -- the process -------------------------------------------------------------------------------


def _clients(server: Server, client: Client, argv: list[bytes]) -> None:
    """CLIENTS first count: how many there are, and lines of CLIENT LIST"""
    first = integer(argv[1])
    count = _number(argv[2], _ROWS_MAX)
    if first < 0:
        raise syntax_error()
    rows = list(server.clients.values())
    chosen = rows[first : first + count]
    client.replies.array(2)
    client.replies.integer(len(rows))
    client.replies.array(len(chosen))
    for other in chosen:
        client.replies.bulk(client_line(server, other))


def _latency(server: Server, client: Client, argv: list[bytes]) -> None:
    """LATENCY"""
    latency(server, client, [b"LATENCY", b"LATEST"])


_IDS_MAX: Final = 1_001
_QUESTIONS: Final = {
    b"QUEUES": _Question(3, 3, _queues),
    b"QUEUE": _Question(2, 2, _queue),
    b"COUNTS": _Question(2, 101, _counts),
    b"HOLDS": _Question(2, _IDS_MAX, _holds),
    b"QUEUED": _Question(4, 4, _queued),
    b"BODIES": _Question(4, _IDS_MAX + 2, _bodies),
    b"JOBS": _Question(4, 5, _jobs),
    b"FIND": _Question(6, 9, find),
    b"OUTLINE": _Question(2, 2, _outline),
    b"ENDED": _Question(2, 2, ended),
    b"SHOW": _Question(2, 2, jobs.show),
    b"PROGRESS": _Question(3, 3, progress.progress_question),
    b"CLIENTS": _Question(3, 3, _clients),
    b"WORKERS": _Question(3, 3, workers_question),
    b"SLOWLOG": _Question(3, 3, past.slowlog_question),
    b"LATENCY": _Question(1, 1, _latency),
    b"HISTORY": _Question(4, 5, past.history_question),
    b"EVENTS": _Question(3, 3, past.events_question),
    b"TROUBLES": _Question(2, 2, past.troubles_question),
    b"USUAL": _Question(2, 101, past.usual_question),
    b"ACTIONS": _Question(3, 3, past.actions_question),
    b"INFO": _Question(1, 2, info),
    b"NODES": _Question(1, 1, node_list),
    b"ACKJOB": _Question(2, _IDS_MAX, jobs.ackjob),
    b"FASTACK": _Question(2, _IDS_MAX, jobs.fastack),
    b"DELJOB": _Question(2, _IDS_MAX, jobs.deljob),
    b"ENQUEUE": _Question(2, _IDS_MAX, jobs.enqueue),
    b"DEQUEUE": _Question(2, _IDS_MAX, jobs.dequeue),
    b"WORKING": _Question(2, 6, progress.working),
    b"MOVE": _Question(3, _IDS_MAX + 6, _move),
    b"NACK": _Question(2, _IDS_MAX + 4, retries.nack),
}

"""Commands that look at queues, empty them, and wait for the end of jobs; the original has none of
them."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.commands.base.arguments import NOT_A_NUMBER, integer, job_ids, timeout_ms
from disque_tx.commands.base.context import Server
from disque_tx.core.base.bounds import check_glob
from disque_tx.core.base.client import Client
from disque_tx.core.counting.flushing import FLUSH_QUEUED, FLUSH_STATES
from disque_tx.core.counting.listing import ListRequest
from disque_tx.core.counting.questions import EVERYWHERE, HERE, PROCESSES
from disque_tx.core.counting.rankings import BY_QUEUED, SORTS
from disque_tx.core.counting.requests import ROWS_MAX
from disque_tx.core.counting.wordreplies import write_reply
from disque_tx.errors import CommandError, syntax_error

_DEFAULT_ROWS: Final = 100


def qcount(server: Server, client: Client, argv: list[bytes]) -> None:
    """QCOUNT queue [CLUSTER|PROCESSES]"""
    scope: i64 = HERE
    if len(argv) > 2:
        scope = scope_of(server, argv[2].upper())
        if len(argv) > 3 or scope < 0:
            raise syntax_error()
    node = server.node
    node.queue_queries.count_jobs(client, argv[1], scope)


def scope_of(server: Server, word: bytes) -> i64:
    """Who is asked besides this node; -1 for any other word. A daemon of one process asks nobody
    about its processes."""
    if word == b"CLUSTER":
        return EVERYWHERE
    if word == b"PROCESSES":
        return PROCESSES if server.node.membership.siblings else HERE
    return -1


def qlist(server: Server, client: Client, argv: list[bytes]) -> None:
    """QLIST [MATCH glob] [SORT queued|oldest|name|rate] [COUNT n] [CURSOR c]
    [CLUSTER|PROCESSES]"""
    request = ListRequest(b"", BY_QUEUED, _DEFAULT_ROWS, None)
    scope: i64 = HERE
    at = 1
    while at < len(argv):
        word = argv[at].upper()
        at += 1
        asked = scope_of(server, word)
        if asked >= 0:
            scope = asked
            continue
        if at >= len(argv):
            raise syntax_error()
        _set_option(request, word, argv[at])
        at += 1
    if scope != HERE and request.after is not None and SORTS[request.sort] != b"name":
        word = b"CLUSTER" if scope == EVERYWHERE else b"PROCESSES"
        raise CommandError("ERR", f"CURSOR with {word.decode()} needs SORT name")
    node = server.node
    node.queue_queries.list_queues(client, request, scope)


def _set_option(request: ListRequest, word: bytes, value: bytes) -> None:
    if word == b"MATCH":
        check_glob("MATCH pattern", value)
        request.pattern = value
    elif word == b"SORT":
        if value.lower() not in SORTS:
            raise CommandError("ERR", "SORT must be queued, oldest, name or rate")
        request.sort = SORTS.index(value.lower())
    elif word == b"COUNT":
        count = integer(value)
        if count < 1 or count > ROWS_MAX:
            raise CommandError("ERR", f"COUNT must be between 1 and {ROWS_MAX}")
        request.count = count
    elif word == b"CURSOR":
        request.after = _cursor(value)
    else:
        raise syntax_error()


def _cursor(word: bytes) -> tuple[int, bytes] | None:
    """Key and name of the row behind which the page begins; ``None`` for the first page."""
    if word == b"0":
        return None
    digits, colon, name = word.partition(b":")
    key = integer(digits)
    if not colon or key == NOT_A_NUMBER:
        raise CommandError("ERR", "invalid cursor")
    return key, name


def qflush(server: Server, client: Client, argv: list[bytes]) -> None:
    """QFLUSH queue [CLUSTER|PROCESSES] [STATE queued|delayed|backoff|in-flight|loaded|any]...
    [WITHDETAILS]"""
    states: i64 = 0
    scope: i64 = HERE
    details = False
    at = 2
    while at < len(argv):
        word = argv[at].upper()
        asked = scope_of(server, word)
        if asked >= 0:
            scope = asked
        elif word == b"WITHDETAILS":
            details = True
        elif word == b"STATE" and at + 1 < len(argv):
            at += 1
            bits = FLUSH_STATES.get(argv[at].lower())
            if bits is None:
                text = "STATE must be queued, delayed, backoff, in-flight, loaded or any"
                raise CommandError("ERR", text)
            states |= bits
        else:
            raise syntax_error()
        at += 1
    node = server.node
    states = states if states else FLUSH_QUEUED
    count = server.actions.counted()
    node.queue_queries.flush_queue(client, argv[1], states, scope, details, count)


def waitjob(server: Server, client: Client, argv: list[bytes]) -> None:
    """WAITJOB id [TIMEOUT ms]"""
    (job_id,) = job_ids(argv[:2])
    wait_ms: i64 = 0
    if len(argv) > 2:
        if len(argv) != 4 or argv[2].upper() != b"TIMEOUT":
            raise syntax_error()
        wait_ms = timeout_ms(argv[3])
    node = server.node
    node.queue_queries.wait_for_job(client, job_id, wait_ms)


def ended(server: Server, client: Client, argv: list[bytes]) -> None:
    """ENDED id, a question: as WAITJOB, or null while the job has not ended."""
    (job_id,) = job_ids(argv)
    words = server.endings.of(job_id)
    if words:
        write_reply(words, client.replies)
    else:
        client.replies.null()

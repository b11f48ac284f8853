"""Commands on jobs that come back: NACK with its options, and QMOVE."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.commands.base.arguments import integer, job_ids
from disque_tx.commands.base.context import Server
from disque_tx.core.base.bounds import check_queue
from disque_tx.core.base.client import Client
from disque_tx.core.jobs.job import valid_id
from disque_tx.core.jobs.reasons import REASON_BYTES_MAX
from disque_tx.core.policies.settings import thousandths
from disque_tx.core.redelivery.moves import MoveRequest
from disque_tx.core.redelivery.retries import BY_POLICY
from disque_tx.errors import CommandError, syntax_error
from disque_tx.messages.limits import SECONDS_MAX

_ANY_QUEUE: Final = b"*"


def nack(server: Server, client: Client, argv: list[bytes]) -> None:
    """NACK [DELAY seconds] [REASON text] [id ...]"""
    delay_ms: i64 = BY_POLICY
    reason = b""
    at = 1
    while at < len(argv):
        word = argv[at].upper()
        if word != b"DELAY" and word != b"REASON":
            break
        if at + 1 >= len(argv):
            raise syntax_error()
        if word == b"DELAY":
            delay_ms = _delay_ms(argv[at + 1])
        else:
            reason = argv[at + 1]
            if len(reason) > REASON_BYTES_MAX:
                raise CommandError("ERR", f"REASON is longer than {REASON_BYTES_MAX} bytes")
        at += 2
    ids = job_ids(argv[at - 1 :])
    client.replies.integer(server.node.enqueue(ids, True, delay_ms, reason))
    for job_id in ids if client.name else ():
        job = server.node.jobs.get(job_id)
        if job is not None:
            server.node.state.troubles.given_back(job.queue, client.name)


def _delay_ms(word: bytes) -> i64:
    """Seconds with up to three decimals, in milliseconds."""
    delay_ms = thousandths(word)
    if not 0 <= delay_ms <= SECONDS_MAX * 1000:
        raise CommandError(
            "ERR",
            f"DELAY must be a number of seconds from 0 to {SECONDS_MAX}, with up to 3 decimals",
        )
    return delay_ms


def qmove(server: Server, client: Client, argv: list[bytes]) -> None:
    """QMOVE from to [COUNT n] [ID id [id ...]] [DEAD]"""
    request = MoveRequest(argv[1], argv[2])
    at = 3
    while at < len(argv):
        word = argv[at].upper()
        at += 1
        if word == b"DEAD":
            request.dead = True
        elif word == b"COUNT" and at < len(argv):
            count = integer(argv[at])
            if not 0 < count < 1 << 62:
                raise CommandError("ERR", "COUNT must be a number greater than zero")
            request.count = count
            at += 1
        elif word == b"ID":
            at = _read_ids(request, argv, at)
        else:
            raise syntax_error()
    if request.dead and request.target == _ANY_QUEUE:
        request.target = b""
    elif not request.target:
        raise CommandError("ERR", "QMOVE needs the name of a queue to move jobs to")
    if request.source == request.target:
        raise CommandError("ERR", "QMOVE needs two different queues")
    check_queue(request.target)
    server.node.move(client, request)


def _read_ids(request: MoveRequest, argv: list[bytes], at: int) -> int:
    """The IDs behind ID, up to the next option; where they end."""
    ids: list[bytes] = [] if request.ids is None else request.ids
    start = at
    while at < len(argv) and (at == start or valid_id(argv[at])):
        if not valid_id(argv[at]):
            raise CommandError("BADID", "Invalid Job ID format.")
        ids.append(argv[at])
        at += 1
    if at == start:
        raise syntax_error()
    request.ids = ids
    return at


def retry_fields(server: Server) -> list[tuple[str, str]]:
    """What became of jobs that came back, for INFO."""
    totals = server.node.totals
    return [
        ("jobs_in_backoff", str(totals.in_backoff)),
        ("jobs_loaded", str(totals.loaded)),
        ("total_backoffs", str(totals.backoffs)),
        ("total_dead_letters", str(totals.dead_letters)),
        ("total_letters_dropped", str(totals.letters_dropped)),
        ("total_jobs_moved", str(totals.moved)),
        ("total_jobs_copied", str(totals.copied)),
    ]

"""WORKING, by which a consumer also reports how far a job is; and the question for such reports
(client protocol, section 17).
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from disque_tx.commands.base.arguments import integer, job_ids
from disque_tx.commands.base.context import Server
from disque_tx.core.base.client import Client
from disque_tx.core.jobs.progress import DONE_MILLI, NOTE_BYTES_MAX, Progress
from disque_tx.core.policies.settings import show_thousandths, thousandths
from disque_tx.errors import CommandError, syntax_error
from disque_tx.messages.records import ReplySink

#: Words of WORKING with a fraction, and with a note.
_WITH_FRACTION: Final = 4
_WITH_NOTE: Final = 6
#: Reports of one answer, and how many are looked at for them: less than a millisecond.
_ROWS_MAX: Final = 500
_LOOKED_AT_MAX: Final = 2_000
_ONE_LINE: Final = bytes.maketrans(b"\r\n\0", b"   ")


def working(server: Server, client: Client, argv: list[bytes]) -> None:
    """WORKING id [PROGRESS fraction [NOTE text]]"""
    job_id = job_ids(argv[:2])[0]
    milli, note = _report(argv)
    node = server.node
    retry_s = node.working(job_id)
    job = node.jobs.get(job_id)
    if milli >= 0 and job is not None:
        node.state.progress.put(job, milli, note)
    client.replies.integer(retry_s)


def _report(argv: list[bytes]) -> tuple[int, bytes]:
    """The thousandths and the note; -1 if nothing is reported."""
    size = len(argv)
    if size == 2:
        return -1, b""
    if size not in (_WITH_FRACTION, _WITH_NOTE) or argv[2].upper() != b"PROGRESS":
        raise syntax_error()
    if size == _WITH_NOTE and argv[4].upper() != b"NOTE":
        raise syntax_error()
    milli = int(thousandths(argv[3]))
    if not 0 <= milli <= DONE_MILLI:
        raise CommandError("ERR", "PROGRESS must be a number from 0 to 1, with up to 3 decimals")
    note = argv[5] if size == _WITH_NOTE else b""
    if len(note) > NOTE_BYTES_MAX:
        raise CommandError("ERR", f"NOTE is longer than {NOTE_BYTES_MAX} bytes")
    return milli, note.translate(_ONE_LINE)


def write_progress(replies: ReplySink, progress: Progress, age_ms: int) -> None:
    """Three names and values, as SHOW has them."""
    replies.bulk(b"progress")
    replies.bulk(show_thousandths(progress.milli))
    replies.bulk(b"progress-note")
    replies.bulk(progress.note)
    replies.bulk(b"progress-age")
    replies.integer(age_ms)


def progress_question(server: Server, client: Client, argv: list[bytes]) -> None:
    """PROGRESS queue count: the jobs of a queue whose consumers reported something last, each with
    its ID, the fraction, the note, and the age of the report in milliseconds."""
    queue, count = argv[1], integer(argv[2])
    if not 1 <= count <= _ROWS_MAX:
        raise CommandError("ERR", f"PROGRESS shows 1 to {_ROWS_MAX} jobs")
    node = server.node
    reports = node.state.progress
    found: list[tuple[bytes, Progress]] = []
    for job_id in list(islice(reports.newest(), _LOOKED_AT_MAX)):
        job = node.jobs.get(job_id)
        if job is not None and job.queue == queue:
            progress = reports.of(job)
            if progress is not None:
                found.append((job_id, progress))
                if len(found) >= count:
                    break
    replies = client.replies
    replies.array(len(found))
    for job_id, progress in found:
        replies.array(4)
        replies.bulk(job_id)
        replies.bulk(show_thousandths(progress.milli))
        replies.bulk(progress.note)
        replies.integer(reports.age_ms(progress))

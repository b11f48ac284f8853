"""FIND: jobs with a text in them, some of a long walk over all jobs at a time."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.commands.base.arguments import cursor, integer
from disque_tx.commands.base.context import Server
from disque_tx.core.base.client import Client
from disque_tx.core.jobs.job import Job
from disque_tx.errors import CommandError, syntax_error
from disque_tx.messages.records import JOB_ID_LENGTH, STATE_NAMES

#: What one answer looks at and finds: less than a millisecond.
_JOBS_MAX: Final = 2_000
_BYTES_MAX: Final = 256 * 1024
_FOUND_MAX: Final = 50
#: Bytes of a body that are searched, from its beginning.
BODY_BYTES: Final = 64 * 1024
_ANY: Final = b"any"


def find(server: Server, client: Client, argv: list[bytes]) -> None:
    """FIND cursor state|any attempts queue text [text ...]: a cursor, how many jobs were looked at
    and how many there are, and the IDs of those that have one of the texts, given in lower case, in
    their ID, key, body, or the reason for which they came back, and were delivered as often at
    least. An empty queue is any."""
    position: i64 = cursor(argv[1])
    state, attempts, queue = argv[2].lower(), integer(argv[3]), argv[4]
    texts = argv[5:]
    if (state != _ANY and state not in STATE_NAMES) or attempts < 0 or min(map(len, texts)) == 0:
        raise syntax_error()
    if len(texts) > 4:
        raise CommandError("ERR", "FIND takes at most 4 texts")
    number = -1 if state == _ANY else STATE_NAMES.index(state)
    node = server.node
    found: list[bytes] = []
    seen: i64 = 0
    read: i64 = 0
    while True:
        after, jobs = node.jobs.table.scan(int(position))
        position = after
        seen += len(jobs)
        for job in jobs:
            if (
                not job.dummy
                and (number < 0 or job.state == number)
                and (not queue or job.queue == queue)
                and job.nacks + job.deliveries >= attempts
            ):
                read += min(len(job.data), BODY_BYTES) * len(texts)
                if _has_text(server, job, texts):
                    found.append(job.id)
        if position == 0 or seen >= _JOBS_MAX or read >= _BYTES_MAX or len(found) >= _FOUND_MAX:
            break
    replies = client.replies
    replies.array(4)
    replies.bulk(b"%d" % position)
    replies.integer(int(seen))
    replies.integer(len(node.jobs))
    replies.array(len(found))
    for job_id in found:
        replies.bulk(job_id)


def _has_text(server: Server, job: Job, texts: list[bytes]) -> bool:
    state = server.node.state
    looked_at = job.data[: JOB_ID_LENGTH + BODY_BYTES].lower()
    reason = state.reasons.get(job.id).lower()
    reservation = state.keys_by_job.by_job.get(job.id)
    key = b"" if reservation is None else reservation.key.lower()
    return any(text in looked_at or text in reason or text in key for text in texts)

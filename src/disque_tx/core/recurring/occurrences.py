"""One occurrence of a schedule as a job.

Its ID is made of the key of the occurrence. So two nodes that make the same occurrence, because one
does not know of the other, make one job: who has a copy of it takes no second one. A job with RETRY
0 has an ID of its own, as it may be delivered by one node only.
"""

from __future__ import annotations

from binascii import b2a_base64
from hashlib import blake2b
from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.adding import Adding
from disque_tx.core.jobs.addrequest import AddRequest
from disque_tx.core.jobs.job import Job

#: The 24 characters of an ID that differ from job to job are 18 bytes in base64.
_BYTES: Final = 18


def occurrence_key(name: bytes, time_s: i64) -> bytes:
    """The key of one occurrence."""
    return b"cron:%s:%d" % (name, time_s)


def id_start(key: bytes, origin: bytes) -> bytes:
    """What the ID of the job of a key begins with. ``origin``: the ID of the node that it names."""
    marks = b2a_base64(blake2b(key, digest_size=_BYTES).digest(), newline=False)
    return b"D-%s-%s" % (origin[:8], marks)


class Occurrences:
    """Adds the jobs of schedules."""

    def __init__(self, adding: Adding) -> None:
        self._adding = adding

    def add(self, request: AddRequest, key: bytes, origin: bytes) -> Job:
        """Add a job under a key, or find the one that was added under it and is not done.

        The job may still wait for its copies. ``origin``: the ID of the node that its ID is to
        name. Raises ``CommandError`` as ADDJOB does.
        """
        start = b"" if request.retry_s == 0 else id_start(key, origin)
        return self._adding.add_scheduled(request, start)

"""What a job was added with, so that it can be added again and stay the job that it was."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

import attrs

from disque_tx.client.values import JobDetails

#: The end of a job ID: TTL in whole minutes, odd if the job may be delivered again
#: (client protocol, section 6.3).
_ID: Final = re.compile(r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-([0-9a-f]{4})")
_MINUTE_S: Final = 60


@attrs.frozen
class Terms:
    """RETRY, TTL and REPLICATE, in the words of ADDJOB; ``None``: the node's default."""

    retry_s: int | None = None
    ttl_s: int | None = None
    replicate: int | None = None

    @property
    def at_most_once(self) -> bool:
        """Whether the job asked never to be delivered twice."""
        return self.retry_s == 0

    def with_replicate(self, replicate: int | None) -> Terms:
        """The same with so many copies, if any number is given; with RETRY 0 there is one copy
        (client protocol, section 14)."""
        if self.at_most_once:
            return attrs.evolve(self, replicate=1)
        return self if replicate is None else attrs.evolve(self, replicate=replicate)


def left_of(job: JobDetails) -> Terms:
    """What a node says of a job, with the TTL that is left."""
    return Terms(job.retry_s, max(1, job.ttl_s), max(1, job.replicate))


def whole_of(job: JobDetails, wall_s: Callable[[], float] = time.time) -> Terms:
    """The same with the TTL that the job was added with.

    A node tells what is left of it. The age comes on top, by this machine's clock; if that differs
    from the one of the node that made the job, the TTL in the job's ID is nearer to the truth.
    """
    left_s = max(1, job.ttl_s)
    ttl_s = left_s + max(0, int(wall_s() - job.ctime / 1e9))
    told = _in_id(job.id)
    if told is not None:
        minutes = told & ~1
        # The last digit is no part of the TTL; 65535 minutes stand for more.
        most_s = (minutes + 2) * _MINUTE_S - 1 if minutes < 0xFFFE else ttl_s
        ttl_s = max(left_s, min(max(ttl_s, minutes * _MINUTE_S), most_s))
    return Terms(job.retry_s, ttl_s, max(1, job.replicate))


def of_id(job_id: str) -> Terms:
    """What the ID alone tells of a job: its TTL to the minute, and whether it is delivered at most
    once. Nothing, for what is no ID."""
    told = _in_id(job_id)
    if told is None:
        return Terms()
    ttl_s = max(1, (told & ~1) * _MINUTE_S)
    return Terms(None, ttl_s) if told & 1 else Terms(0, ttl_s, 1)


def _in_id(job_id: str) -> int | None:
    found = _ID.fullmatch(job_id)
    return None if found is None else int(found[1], 16)

"""Options of connections, and of jobs that are added."""

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
class TLS:
    """How connections are encrypted.

    ``ca_file``: PEM certificates that are trusted, by default those of the system.
    ``certificate_file``, ``key_file``: PEM, who the client is. ``verify``: whether the node must
    have a certificate that is trusted; ``check_hostname``: and that names its host.
    """

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    check_hostname: bool = True


def chosen(tls: bool | TLS) -> TLS | None:
    """What a client was told: not at all, as usual, or as described."""
    return (TLS() if tls else None) if isinstance(tls, bool) else tls


@attrs.frozen
class ConnectionOptions:
    """What all connections of a client have in common.

    ``timeout_s``: for connecting, and for a reply beyond what the request itself may wait.
    ``protocol``: of RESP, 2 or 3; the Twisted client speaks 2. ``name``: of the connections, as
    CLIENT LIST shows it, without spaces; the Twisted client's only.
    """

    password: str | None = attrs.field(default=None, repr=False)
    tls: TLS | None = None
    timeout_s: float = 5.0
    protocol: int = 2
    name: str | None = None


# One is made for every job that is added: without slots, freezing costs a third less.
@attrs.frozen(slots=False)
class AddOptions:
    """How a job is added, in the words of ADDJOB (client protocol, section 14); ``None``: the
    node's default.

    ``timeout_ms``: how long the copies may take, 0 for ever. ``replicate``: on how many nodes the
    job is to be. ``delay_s``: until its first delivery; ``retry_s``: from a delivery to the next
    one, while it is not acknowledged, 0 to deliver it at most once; ``ttl_s``: until it is given
    up. ``maxlen``: refuse it when its queue holds so many. ``asynchronous``: do not wait for the
    copies. ``retry_adds``: add it again at another node when the answer is lost; it may then be
    there twice.
    """

    timeout_ms: int = 5000
    replicate: int | None = None
    delay_s: int | None = None
    retry_s: int | None = None
    ttl_s: int | None = None
    maxlen: int | None = None
    asynchronous: bool = False
    retry_adds: bool = False

    @property
    def at_most_once(self) -> bool:
        """Whether the job asks never to be delivered twice."""
        return self.retry_s == 0

    def with_replicate(self, replicate: int | None) -> AddOptions:
        """The same with so many copies, if any number is given; with RETRY 0 there is one copy
        (client protocol, section 14)."""
        if self.at_most_once:
            return attrs.evolve(self, replicate=1)
        return self if replicate is None else attrs.evolve(self, replicate=replicate)

    def retried_if_safe(self) -> AddOptions:
        """The same, added again when the answer is lost: better twice than never, unless the job
        itself asks for the contrary."""
        return attrs.evolve(self, retry_adds=not self.at_most_once)


def left_of(job: JobDetails) -> AddOptions:
    """With which a job can be added again and stay as it is: what a node says of it, with the TTL
    that is left."""
    return AddOptions(retry_s=job.retry_s, ttl_s=max(1, job.ttl_s), replicate=max(1, job.replicate))


def whole_of(job: JobDetails, wall_s: Callable[[], float] = time.time) -> AddOptions:
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
    return AddOptions(retry_s=job.retry_s, ttl_s=ttl_s, replicate=max(1, job.replicate))


def of_id(job_id: str) -> AddOptions:
    """What the ID alone tells of a job: its TTL to the minute, and whether it is delivered at most
    once. Nothing, for what is no ID."""
    told = _in_id(job_id)
    if told is None:
        return AddOptions()
    ttl_s = max(1, (told & ~1) * _MINUTE_S)
    if told & 1:
        return AddOptions(ttl_s=ttl_s)
    return AddOptions(retry_s=0, ttl_s=ttl_s, replicate=1)


def _in_id(job_id: str) -> int | None:
    found = _ID.fullmatch(job_id)
    return None if found is None else int(found[1], 16)

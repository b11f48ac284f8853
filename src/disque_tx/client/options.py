"""Options of connections, and of jobs that are added."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Final

import attrs

from disque_tx.client.addresses import Seeds, seeds
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


@attrs.frozen
class ConnectionOptions:
    """Options of all connections of a client.

    ``timeout_s``: for connecting, and for a reply beyond what the request itself may wait.
    ``protocol``: of RESP, 2 or 3; the Twisted client speaks 2. ``name``: of the connections, as
    CLIENT LIST shows it, without spaces; the Twisted client's only.
    """

    password: str | None = attrs.field(default=None, repr=False)
    tls: TLS | None = None
    timeout_s: float = 5.0
    protocol: int = 2
    name: str | None = None


@attrs.frozen
class Target:
    """The cluster that a client connects to. ``discover``: use the nodes that HELLO lists, too."""

    seeds: Seeds
    options: ConnectionOptions
    discover: bool

    @classmethod
    def of(
        cls,
        addresses: str | Iterable[str],
        password: str | None,
        tls: bool | TLS,
        timeout_s: float,
        discover: bool | None,
        protocol: int = 2,
    ) -> Target:
        """From the arguments of a client. By default, nodes are not discovered with TLS, because
        HELLO does not list its ports.

        :raises BadAddress: if an address is not valid.
        """
        found = seeds(addresses)
        encryption = (TLS() if tls else None) if isinstance(tls, bool) else tls
        options = ConnectionOptions(password or found.password, encryption, timeout_s, protocol)
        return cls(found, options, encryption is None if discover is None else discover)


# One is made for every job that is added: without slots, freezing costs a third less.
@attrs.frozen(slots=False)
class AddOptions:
    """How a job is added, in the words of ADDJOB (client protocol, section 14); ``None``: the
    node's default.

    ``timeout_ms``: how long the replication may take, 0 forever. ``replicate``: how many nodes
    hold a copy. ``delay_s``: time before the first delivery. ``retry_s``: time between deliveries
    while the job is not acknowledged, 0 to deliver it at most once. ``ttl_s``: time until the job
    expires. ``maxlen``: refuse the job when its queue holds this many. ``asynchronous``: do not
    wait for the copies. ``retry_adds``: add the job again at another node when the answer is lost;
    there may then be two of it. ``unique``: a key that one job at a time may have, 1 to 512 bytes;
    while there is one, no other is added, and the answer is its ID. So the job is added again when
    the answer is lost, and there is one of it. ``unique_for_s``: keep the key for so long, even if
    the job is done. Only nodes of disque-tx know keys.
    """

    timeout_ms: int = 5000
    replicate: int | None = None
    delay_s: int | None = None
    retry_s: int | None = None
    ttl_s: int | None = None
    maxlen: int | None = None
    asynchronous: bool = False
    retry_adds: bool = False
    unique: str | bytes | None = None
    unique_for_s: int | None = None

    @property
    def at_most_once(self) -> bool:
        """Whether the job asks never to be delivered twice."""
        return self.retry_s == 0

    def with_replicate(self, replicate: int | None) -> AddOptions:
        """A copy of the options with this number of copies, unless it is ``None``; with RETRY 0
        there is always one copy (client protocol, section 14)."""
        if self.at_most_once:
            return attrs.evolve(self, replicate=1)
        return self if replicate is None else attrs.evolve(self, replicate=replicate)

    def retried_if_safe(self) -> AddOptions:
        """A copy of the options, with the job added again when the answer is lost, unless it must
        be delivered at most once."""
        return attrs.evolve(self, retry_adds=not self.at_most_once)


def current_options(job: JobDetails) -> AddOptions:
    """Options to add a job again as a node shows it, with its remaining TTL."""
    return AddOptions(retry_s=job.retry_s, ttl_s=max(1, job.ttl_s), replicate=max(1, job.replicate))


def original_options(job: JobDetails, wall_s: Callable[[], float] = time.time) -> AddOptions:
    """Options to add a job again as it was first added, with its whole TTL.

    A node shows the remaining TTL. The job's age is added to it, by this machine's clock; the TTL
    in the job's ID limits the error if that clock differs from the clock of the node that created
    the job.
    """
    left_s = max(1, job.ttl_s)
    ttl_s = left_s + max(0, int(wall_s() - job.ctime / 1e9))
    ttl_field = _ttl_field_of(job.id)
    if ttl_field is not None:
        minutes = ttl_field & ~1
        # The last digit is no part of the TTL; 65535 minutes stand for more.
        most_s = (minutes + 2) * _MINUTE_S - 1 if minutes < 0xFFFE else ttl_s
        ttl_s = max(left_s, min(max(ttl_s, minutes * _MINUTE_S), most_s))
    return AddOptions(retry_s=job.retry_s, ttl_s=ttl_s, replicate=max(1, job.replicate))


def options_from_id(job_id: str) -> AddOptions:
    """The options that a job ID contains: the TTL to the minute, and whether the job is delivered
    at most once. The defaults, if this is not a job ID."""
    ttl_field = _ttl_field_of(job_id)
    if ttl_field is None:
        return AddOptions()
    ttl_s = max(1, (ttl_field & ~1) * _MINUTE_S)
    if ttl_field & 1:
        return AddOptions(ttl_s=ttl_s)
    return AddOptions(retry_s=0, ttl_s=ttl_s, replicate=1)


def _ttl_field_of(job_id: str) -> int | None:
    found = _ID.fullmatch(job_id)
    return None if found is None else int(found[1], 16)

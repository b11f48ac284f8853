"""What the clients of a run saw, to be judged afterwards: every ADDJOB, every delivery.

Each job has a body that no other job has, so a delivery says which ADDJOB it belongs to, also when
the answer to that ADDJOB was lost on its way.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs


@attrs.define
class Added:
    """One ADDJOB. Times are true time in microseconds, -1 for never.

    ``asked_us``: sent. ``accepted_us``: its ID came back. ``refused``: the error that came back.
    ``node``: address of the node asked. ``outside``: that node kept no copy itself at that time.
    ``holders``: addresses of the nodes that had a copy when the client was answered.
    """

    body: bytes
    queue: bytes
    node: bytes
    asked_us: int
    replicate: int
    retry_s: int
    ttl_s: int
    delay_s: int
    asynchronous: bool
    accepted_us: int = -1
    job_id: bytes = b""
    refused: str = ""
    outside: bool = False
    holders: frozenset[bytes] = frozenset()


@attrs.frozen
class Delivered:
    """One job in the answer to a GETJOB. ``sent_us``: when the node said it; ``at_us``: when the
    client heard it. ``answer``: a number that the jobs of one answer share."""

    body: bytes
    job_id: bytes
    queue: bytes
    node: bytes
    sent_us: int
    at_us: int
    nacks: int
    deliveries: int
    answer: int = 0


@attrs.define
class Deed:
    """One job in a request that does something with it: ACKJOB, NACK, ENQUEUE, WORKING and so on.

    ``asked_us``: sent. ``said_us``: when the node answered, -1 if nothing arrived; ``reply`` is the
    number then, for this job, -1 for an error or if the answer does not say which jobs it counts.
    """

    word: bytes
    job_id: bytes
    node: bytes
    asked_us: int
    said_us: int = -1
    reply: int = -1


@attrs.define
class Paused:
    """One PAUSE. ``flags``: 1 for in, 2 for out. ``everywhere``: all other nodes are told.
    Times as in :class:`Deed`."""

    queue: bytes
    node: bytes
    flags: int
    everywhere: bool
    asked_us: int
    said_us: int = -1


@attrs.frozen
class Shown:
    """The counters in an answer to SHOW, as the node said them at ``said_us``."""

    job_id: bytes
    node: bytes
    said_us: int
    nacks: int
    deliveries: int


@attrs.define
class History:
    """Everything in the order in which it happened. ``added``: by body. ``deeds``: in the order in
    which they were asked for. ``admitted``: what those were answered who have no password, errors
    apart."""

    added: dict[bytes, Added] = attrs.Factory(dict)
    delivered: list[Delivered] = attrs.Factory(list)
    deeds: list[Deed] = attrs.Factory(list)
    pauses: list[Paused] = attrs.Factory(list)
    shown: list[Shown] = attrs.Factory(list)
    admitted: list[str] = attrs.Factory(list)

    def accepted(self) -> Iterator[Added]:
        """The jobs whose clients have an ID."""
        return (added for added in self.added.values() if added.accepted_us >= 0)

    def asked(self, *words: bytes) -> dict[bytes, list[Deed]]:
        """The requests with these words, by job."""
        result: dict[bytes, list[Deed]] = {}
        for deed in self.deeds:
            if deed.word in words:
                result.setdefault(deed.job_id, []).append(deed)
        return result

    def by_body(self) -> dict[bytes, list[Delivered]]:
        """Deliveries of each job."""
        result: dict[bytes, list[Delivered]] = {}
        for delivery in self.delivered:
            result.setdefault(delivery.body, []).append(delivery)
        return result

    def duplicates(self) -> int:
        """Deliveries beyond the first one of each job."""
        return len(self.delivered) - len({delivery.body for delivery in self.delivered})

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
    client heard it."""

    body: bytes
    job_id: bytes
    queue: bytes
    node: bytes
    sent_us: int
    at_us: int
    nacks: int
    deliveries: int


@attrs.frozen
class Worked:
    """One WORKING that was answered with ``retry_s``."""

    job_id: bytes
    asked_us: int
    answered_us: int
    retry_s: int


@attrs.define
class History:
    """Everything in the order in which it happened. ``added``: by body. ``nacked``: job ID → when
    somebody asked for a NACK."""

    added: dict[bytes, Added] = attrs.Factory(dict)
    delivered: list[Delivered] = attrs.Factory(list)
    worked: list[Worked] = attrs.Factory(list)
    nacked: dict[bytes, list[int]] = attrs.Factory(dict)

    def accepted(self) -> Iterator[Added]:
        """The jobs whose clients have an ID."""
        return (added for added in self.added.values() if added.accepted_us >= 0)

    def by_body(self) -> dict[bytes, list[Delivered]]:
        """Deliveries of each job."""
        result: dict[bytes, list[Delivered]] = {}
        for delivery in self.delivered:
            result.setdefault(delivery.body, []).append(delivery)
        return result

    def duplicates(self) -> int:
        """Deliveries beyond the first one of each job."""
        return len(self.delivered) - len({delivery.body for delivery in self.delivered})

"""The holders of jobs, as the node that makes copies again sends them (cluster protocol, section
21.11)."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.messages.bus import Message
from disque_tx.messages.bustypes import HOLDERS

#: Holders, and jobs, that one message can name.
HOLDERS_MAX: Final = 1_000
JOBS_MAX: Final = 1_000

#: Message flag of HOLDERS: the receiver got its copy from the sender just now, so what else the
#: message says about the job is for it.
ARRIVED: Final = 1
#: Message flag of REPLJOB: the copy takes the place of a lost one, so the receiver keeps it also
#: while the queue is paused. Originals ignore it.
AGAIN: Final = 64


@mypyc_attr(acyclic=True)
class HoldersMessage(Message):
    """HOLDERS: IDs of all nodes that may have a copy of these jobs from now on; of several only to
    nodes that take them.

    ``delay_ms``: what is left of the DELAY. ``priority``: see :mod:`disque_tx.core.jobs.job`.
    """

    __slots__ = ("delay_ms", "holders", "job_ids", "priority")

    def __init__(
        self, job_ids: list[bytes], holders: tuple[bytes, ...], delay_ms: i64, priority: i64
    ) -> None:
        super().__init__(HOLDERS)
        self.job_ids: list[bytes] = job_ids
        self.holders: tuple[bytes, ...] = holders
        self.delay_ms: i64 = delay_ms
        self.priority: i64 = priority

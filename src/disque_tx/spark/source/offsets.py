"""The offset of a stream of jobs: the IDs of the batch that ends there.

A queue has no positions to return to, but a job can be read by its ID until it is acknowledged. So
a batch can be read again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Final

import attrs

from disque_tx.client.addresses import Address

_JOB_ID: Final = re.compile(r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")
#: A task costs Spark some 0.1 s, as much as thousands of jobs do; more jobs would make it much
#: slower than the others when they are read again. More bytes would be much at once for a task
#: that gets them with its partition.
_TASK_JOBS_MAX: Final = 25_000
_TASK_BYTES: Final = 8 << 20


@attrs.frozen
class Offset:
    """``seq``: number of the batch. ``jobs``: node that delivered them → IDs."""

    seq: int = 0
    jobs: Mapping[Address, Sequence[str]] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.jobs.values()))

    def ids(self) -> set[str]:
        """The IDs, wherever they came from."""
        return {job_id for ids in self.jobs.values() for job_id in ids}

    def without(self, ids: Collection[str]) -> Offset:
        """The same batch without these jobs."""
        if not ids:
            return self
        jobs = {
            node: [job_id for job_id in some if job_id not in ids]
            for node, some in self.jobs.items()
        }
        return Offset(self.seq, jobs)


def is_job_id(text: object) -> bool:
    """Whether this is the ID of a job."""
    return isinstance(text, str) and _JOB_ID.fullmatch(text) is not None


def shares(
    offset: Offset, wanted: int | None, size: int = 0
) -> list[tuple[Address, tuple[str, ...]]]:
    """The batch divided into tasks of about the same size, each with jobs of one node. ``wanted``:
    minimum number of tasks, if there are as many jobs. ``size``: bytes of all bodies, if known."""
    total = len(offset)
    tasks = max(wanted or 1, -(-total // _TASK_JOBS_MAX), -(-size // _TASK_BYTES))
    least = min(total, tasks)
    cut: list[tuple[Address, tuple[str, ...]]] = []
    for node, ids in offset.jobs.items():
        tasks = -(-len(ids) * least // total) if ids else 0
        ends = [len(ids) * task // tasks for task in range(1, tasks + 1)]
        cut += [(node, tuple(ids[start:end])) for start, end in pairwise([0, *ends])]
    return cut

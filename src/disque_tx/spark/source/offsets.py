"""The offset of a stream of jobs: the IDs of the batch that ends there.

A queue has no positions to return to, but a job can be read by its ID until it is acknowledged.
Spark stores an offset before the batch runs, so a batch can be read again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import attrs

from disque_tx.client.addresses import Address, address
from disque_tx.client.errors import BadAddress
from disque_tx.spark.errors import JobsLost
from disque_tx.spark.options import JOBS_MAX

_JOB_ID: Final = re.compile(r"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")
#: More jobs would make a task much slower than the others.
_TASK_JOBS_MAX: Final = 2500


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

    def as_json(self) -> dict[str, Any]:
        """The form in which Spark stores it."""
        return {"seq": self.seq, "jobs": {str(node): list(ids) for node, ids in self.jobs.items()}}


def from_json(kept: Any) -> Offset:
    """An offset that Spark stored.

    :raises JobsLost: when it was not written by this format.
    """
    try:
        seq = kept["seq"]
        jobs = {address(node): tuple(map(_checked, ids)) for node, ids in kept["jobs"].items()}
    except (TypeError, KeyError, AttributeError, BadAddress):
        raise _foreign() from None
    offset = Offset(seq, jobs)
    if type(seq) is not int or seq < 0 or len(offset) > JOBS_MAX:
        raise _foreign()
    return offset


def _checked(job_id: str) -> str:
    if not _JOB_ID.fullmatch(job_id):
        raise _foreign()
    return job_id


def _foreign() -> JobsLost:
    return JobsLost(
        "The checkpoint of this query was not written by the format disque: its offset is not"
        " understood. Use the checkpointLocation of this query, or a new one."
    )


def shares(offset: Offset, wanted: int | None) -> list[tuple[Address, tuple[str, ...]]]:
    """The batch divided into tasks of about the same size, each with jobs of one node. ``wanted``:
    minimum number of tasks, if there are as many jobs."""
    total = len(offset)
    least = min(total, max(wanted or 1, -(-total // _TASK_JOBS_MAX)))
    cut: list[tuple[Address, tuple[str, ...]]] = []
    for node, ids in offset.jobs.items():
        tasks = -(-len(ids) * least // total) if ids else 0
        ends = [len(ids) * task // tasks for task in range(1, tasks + 1)]
        cut += [(node, tuple(ids[start:end])) for start, end in pairwise([0, *ends])]
    return cut

"""Jobs by their IDs: what tasks do."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.client.errors import ClientError, ConnectionLost
from disque_tx.client.requests import encoded
from disque_tx.client.values import JobDetails
from disque_tx.spark.errors import JobsLost
from disque_tx.spark.schema import text
from disque_tx.spark.servers import Servers

_LOG: Final = logging.getLogger(__name__)
#: Bodies of so many jobs are in the buffers of a node at once.
_AT_ONCE: Final = 100
_CTIME_UNITS_IN_US: Final = 1000


def rows(
    servers: Servers, node: Address, ids: Sequence[str], strict: bool
) -> Iterator[tuple[Any, ...]]:
    """The jobs as rows of the format ``disque``. They stay as they are; reading again gives the
    same. ``strict``: whether jobs that are gone are an error, or are left out with a warning.

    :raises JobsLost: when strict, and no node knows a job any more; or when a node is away that
        may know it, as what is left out here will be acknowledged.
    """
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        answers = servers.ask_holders(node, some, requests.show, _is_gone)
        lost = [
            (job_id, answer)
            for job_id, answer in zip(some, answers, strict=True)
            if not isinstance(answer, JobDetails) or answer.body is None
        ]
        if lost:
            _miss(node, lost, strict)
        for answer in answers:
            if isinstance(answer, JobDetails) and answer.body is not None:
                yield row(answer)


def row(job: JobDetails) -> tuple[Any, ...]:
    """A job as a row of the format ``disque``."""
    return (
        job.id,
        text(encoded(job.queue or "")),
        job.body,
        job.nacks,
        job.additional_deliveries,
        job.ctime // _CTIME_UNITS_IN_US,
    )


def _is_gone(answer: JobDetails | ClientError | None) -> bool:
    """Whether another holder may know more."""
    return answer is None or (isinstance(answer, JobDetails) and answer.body is None)


def _miss(
    node: Address, lost: Sequence[tuple[str, JobDetails | ClientError | None]], strict: bool
) -> None:
    # Those of a node that is away first: they may still be there.
    job_id, answer = max(lost, key=lambda one: isinstance(one[1], ConnectionLost))
    if isinstance(answer, ClientError) and not isinstance(answer, ConnectionLost):
        raise answer
    why = str(answer) if answer else "It was acknowledged by others, deleted, evicted or expired."
    what = (
        f"{len(lost)} jobs that {node} delivered to this query cannot be read again, for"
        f" example {job_id}. {why}"
    )
    if strict or isinstance(answer, ConnectionLost):
        raise JobsLost(
            f"{what} Bring the node back and start the query again; or set failOnDataLoss to false"
            " to go on without these jobs: those that still are in the cluster come again after"
            " their RETRY. If the checkpoint is old and its jobs are long gone, use that option"
            " once, or a new checkpointLocation."
        )
    _LOG.warning("%s They are left out.", what)

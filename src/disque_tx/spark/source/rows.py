"""Jobs as rows, read at the nodes by their IDs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import ClientError, ConnectionLost
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import encoded
from disque_tx.client.values import Job, JobDetails
from disque_tx.spark.errors import JobsLost
from disque_tx.spark.options import ReadOptions
from disque_tx.spark.schema import arrow_schema, jobs_ddl, text

_LOG: Final = logging.getLogger(__name__)
_SCHEMA: Final = arrow_schema(jobs_ddl(details=False))
#: The bodies of this many jobs are in the buffers of a node at once.
_AT_ONCE: Final = 100
_CTIME_UNITS_IN_US: Final = 1000


def job_rows(
    servers: Servers, node: Address, ids: Sequence[str], options: ReadOptions
) -> Iterator[tuple[Any, ...]]:
    """The jobs as rows of the format ``disque``. Reading does not change them; reading again gives
    the same rows. If the option ``strict`` is not set, missing jobs are left out with a warning.

    :raises JobsLost: when strict, and no node knows a job any more; or when a node that may know it
        cannot be reached, as jobs that are left out here will be acknowledged.
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
            _miss(node, lost, options.strict)
        for answer in answers:
            if isinstance(answer, JobDetails) and answer.body is not None:
                yield job_row(answer, options.details)


def job_row(job: JobDetails, details: bool) -> tuple[Any, ...]:
    """A job as a row of the format ``disque``. ``details``: with the columns of
    ``includeDetails``."""
    row = (
        job.id,
        text(encoded(job.queue or "")),
        job.body,
        job.nacks,
        job.additional_deliveries,
    )
    if not details:
        return row
    more = (job.retry_s, job.ttl_s, job.delay_s, job.replicate)
    return (*row, job.ctime // _CTIME_UNITS_IN_US, *more)


def delivered(jobs: Sequence[Job]) -> pa.RecordBatch:
    """The same of jobs as GETJOB delivers them, which has no details."""
    names = {queue: text(encoded(queue)) for queue in {job.queue for job in jobs}}
    columns = (
        [job.id for job in jobs],
        [names[job.queue] for job in jobs],
        [job.body for job in jobs],
        [job.nacks for job in jobs],
        [job.additional_deliveries for job in jobs],
    )
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _is_gone(answer: JobDetails | ClientError | None) -> bool:
    """Whether this node does not have the job, and another holder may."""
    return answer is None or (isinstance(answer, JobDetails) and answer.body is None)


def _miss(
    node: Address, lost: Sequence[tuple[str, JobDetails | ClientError | None]], strict: bool
) -> None:
    # First those of a node that cannot be reached: they may still exist.
    job_id, answer = max(lost, key=lambda one: isinstance(one[1], ConnectionLost))
    if isinstance(answer, ClientError) and not isinstance(answer, ConnectionLost):
        raise answer
    why = str(answer) if answer else "It was acknowledged elsewhere, deleted, evicted or expired."
    what = (
        f"{len(lost)} jobs that {node} delivered to this query cannot be read again, for"
        f" example {job_id}. {why}"
    )
    if strict or isinstance(answer, ConnectionLost):
        raise JobsLost(
            f"{what} Bring the node back and start the query again; or set failOnDataLoss to false"
            " to continue without these jobs: those that are still in the cluster are delivered"
            " again after their RETRY. If the checkpoint is old and its jobs are long gone, use"
            " that option once, or a new checkpointLocation."
        )
    _LOG.warning("%s They are left out.", what)

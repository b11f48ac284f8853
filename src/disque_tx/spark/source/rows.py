"""Jobs as rows: of a reply to GETJOB, or read at the nodes by their IDs.

A batch has hundreds of thousands of jobs, and an object for each would cost more than to fetch
them. So a reply to GETJOB becomes columns of Arrow as a whole. It is untrusted input.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, compress
from typing import Any, Final

import attrs
import pyarrow as pa

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import ClientError, ConnectionLost
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import encoded
from disque_tx.client.requests.replies import MalformedReply, array
from disque_tx.client.values import JobDetails
from disque_tx.spark.errors import JobsLost
from disque_tx.spark.options import ReadOptions
from disque_tx.spark.schema import arrow_schema, jobs_ddl, text
from disque_tx.text.counts import counted

_LOG: Final = logging.getLogger(__name__)
_SCHEMA: Final = arrow_schema(jobs_ddl(details=False))
_ID_BYTES: Final = 40
_PARTS: Final = 7
_BODY: Final = "body"
#: The bodies of this many jobs are in the buffers of a node at once.
_AT_ONCE: Final = 100
_CTIME_UNITS_IN_US: Final = 1000


@attrs.frozen
class JobRows:
    """Jobs in the order of their delivery. ``rows``: with the columns of the format ``disque``, of
    the jobs with these ``ids``. ``size``: of the bodies, in bytes."""

    ids: Sequence[str] = ()
    rows: pa.Table = attrs.field(factory=_SCHEMA.empty_table)
    size: int = 0

    def where(self, wanted: Sequence[bool]) -> JobRows:
        """The jobs for which this is true."""
        rows = self.rows.filter(pa.array(wanted, pa.bool_()))
        size = sum(map(len, rows.column(_BODY).to_pylist()))
        return JobRows(list(compress(self.ids, wanted)), rows, size)

    def only(self, ids: Collection[str]) -> JobRows:
        """The jobs with these IDs."""
        if len(ids) == len(self.ids):
            return self
        wanted = frozenset(ids)
        return self.where([job_id in wanted for job_id in self.ids])

    def parts(self, sizes: Iterable[int]) -> list[pa.RecordBatch]:
        """The rows divided into parts of these numbers."""
        begun, cut = 0, []
        for size in sizes:
            cut += self.rows.slice(begun, size).combine_chunks().to_batches()
            begun += size
        return cut


def joined(several: Iterable[JobRows]) -> JobRows:
    """Jobs behind others."""
    parts = list(several)
    ids = list(chain.from_iterable(part.ids for part in parts))
    rows = pa.concat_tables([part.rows for part in parts] or [_SCHEMA.empty_table()])
    return JobRows(ids, rows, sum(part.size for part in parts))


def delivered(reply: Any) -> JobRows:
    """A reply to GETJOB with WITHCOUNTERS; nil for no jobs."""
    jobs = [] if reply is None else array(reply)
    if not jobs:
        return JobRows()
    if set(map(type, jobs)) != {list} or set(map(len, jobs)) != {_PARTS}:
        raise MalformedReply(f"jobs of {_PARTS} parts", reply)
    queues, ids, bodies, _, nacks, _, more = zip(*jobs, strict=True)
    for column, kind in ((queues, bytes), (ids, bytes), (bodies, bytes), (nacks, int), (more, int)):
        if set(map(type, column)) != {kind}:
            raise MalformedReply(f"{kind.__name__} in each job", reply)
    texts = _texts(ids)
    numbers = [pa.array(column, pa.int64()) for column in (nacks, more)]
    columns = [pa.array(ids, pa.string()), _names(queues), pa.array(bodies, pa.binary()), *numbers]
    rows = pa.Table.from_arrays(columns, schema=_SCHEMA)
    return JobRows(texts, rows, sum(map(len, bodies)))


def _texts(ids: Sequence[bytes]) -> list[str]:
    """The IDs, which have no spaces."""
    together = b" ".join(ids)
    texts = str(together, "ascii").split(" ") if together.isascii() else []
    if len(texts) != len(ids) or set(map(len, texts)) != {_ID_BYTES}:
        raise MalformedReply("job IDs", ids[0])
    return texts


def _names(queues: Sequence[bytes]) -> pa.Array:
    """The names of queues, which mostly are the same."""
    names = {queue: text(queue) for queue in set(queues)}
    if len(names) == 1:
        return pa.repeat(pa.scalar(*names.values(), pa.string()), len(queues))
    return pa.array([names[queue] for queue in queues], pa.string())


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
        f"{counted(len(lost), 'job')} that {node} delivered to this query cannot be read again, for"
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

"""Jobs that a query cannot process go back to their queue, and follow its policy."""

from __future__ import annotations

from contextlib import closing
from typing import Final

from pyspark.sql import DataFrame

from disque_tx.client.errors import ClientError
from disque_tx.client.options import TLS
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Request
from disque_tx.spark.errors import BadColumn
from disque_tx.spark.options import cluster
from disque_tx.spark.source.returned import Returned

_ID: Final = "id"


def disque_nack(
    rows: DataFrame,
    reason: str,
    *,
    servers: str,
    checkpoint: str,
    password: str | None = None,
    tls: TLS | None = None,
) -> int:
    """In ``foreachBatch``: give the jobs of these rows back by NACK, with a reason. They are not
    acknowledged with their batch, but delivered again, or become dead letters, as the policy of
    their queue says. Returns how many were given back; the others are delivered again after their
    RETRY.

    ``rows``: some of the batch, with the column ``id``; few, as the driver collects the IDs.
    ``servers``, ``checkpoint``: as the options ``disque.servers`` and ``checkpointLocation`` of the
    query.

    :raises BadColumn: when the rows have no IDs.
    """
    if _ID not in rows.columns:
        raise BadColumn(f"Jobs are given back by their column {_ID!r}, which these rows lack.")
    ids = [row[0] for row in rows.select(_ID).collect()]
    if not ids:
        return 0
    # First: a job that goes back must not be acknowledged, but one may be delivered again anyway.
    Returned(checkpoint).add(ids)

    def nack(job_id: str) -> Request[int]:
        return requests.nack(job_id, reason=reason)

    with closing(cluster(servers, password, tls).servers()) as nodes:
        answers = nodes.ask_holders(nodes.addresses[0], ids, nack, _is_elsewhere)
    return sum(answer for answer in answers if isinstance(answer, int))


def _is_elsewhere(answer: int | ClientError) -> bool:
    return answer == 0

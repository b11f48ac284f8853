"""``disque-pipeline drain``: queues into a Delta table, without Spark.

1. GETJOB at all nodes at once; the bodies are written as one Parquet file.
2. The file is committed. Jobs that are in the table already are left out: they were stored, and
   the drain was killed before it could acknowledge them, or was slower than their RETRY.
3. All of them are acknowledged.

So each job is moved once, and is in the table once, whatever is killed when. Several drains may
share queues and a table.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import closing
from types import FrameType
from typing import Any, Final
from uuid import uuid4

import attrs
import click
import pyarrow as pa

from disque_tx.errors import DisqueError
from disque_tx.spark.options import ReadOptions, read_options
from disque_tx.spark.paths import resolved
from disque_tx.spark.pipeline import failures, wording
from disque_tx.spark.pipeline.tables.footers import Staged
from disque_tx.spark.pipeline.tables.jobs import JobTable, write
from disque_tx.spark.pipeline.transfer.target import connection, connection_options
from disque_tx.spark.schema import arrow_schema, jobs_ddl
from disque_tx.spark.source.fetching import Fetching, Limit
from disque_tx.spark.source.intake import acknowledge
from disque_tx.spark.source.offsets import Offset

_JOBS_MAX: Final = 50_000
#: A job may be on its way from one node to another: how long to look for more.
_EMPTY_ROUNDS: Final = 10
_PAUSE_S: Final = 0.1


@attrs.frozen
class Drained:
    """``stored``: jobs. ``again``: those that were in the table already."""

    stored: int = 0
    again: int = 0


def drain(options: ReadOptions, table: JobTable, follow: bool, stopped: threading.Event) -> Drained:
    """Store and acknowledge jobs until there are none, or with ``follow`` until ``stopped``. The
    table is created before any job is fetched, so that none is if it cannot be.

    :raises CannotConnect: when no node can be reached.
    :raises Refused: when a node refuses to deliver.
    """
    table.open(arrow_schema(jobs_ddl(details=False)))
    done = Drained()
    limit = Limit(_JOBS_MAX, options.bytes_max)
    empty = turn = 0
    fetching = Fetching(options.cluster, options.selection)
    with closing(fetching), closing(options.cluster.servers()) as servers:
        while not stopped.is_set() and (follow or empty < _EMPTY_ROUNDS):
            turn += 1
            found = fetching.fetch(limit, turn, set())
            if not found:
                empty += 1
                stopped.wait(_PAUSE_S)
                continue
            empty = 0
            table.step("fetched")
            folder = f"drain-{uuid4().hex}"
            rows = pa.concat_tables([jobs.rows for jobs in found.values()])
            staged = Staged(folder, [write(table.root, rows, folder)])
            new = table.add(staged, rows.schema)
            ids = {node: jobs.ids for node, jobs in found.items()}
            acknowledge(servers, Offset(turn, ids), strict=False)
            table.step("acknowledged")
            done = Drained(done.stored + new, done.again + len(rows) - new)
    return done


@click.command("drain")
@click.argument("queues", nargs=-1, required=True)
@click.option("--into", "table", required=True, help="The table; created if it does not exist.")
@click.option("--follow", is_flag=True, help="Go on until Ctrl-C or SIGTERM.")
@connection_options
def drain_command(
    queues: tuple[str, ...], table: str, follow: bool, servers: str, **words: Any
) -> None:
    """Store the jobs of queues in a Delta table, each once, and acknowledge them.

    This needs neither Spark nor Java. RETRY of the jobs should be 10 s or more.
    """
    stopped = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, _setting(stopped))
    try:
        wanted = {"disque.servers": servers, "subscribe": ",".join(queues), **connection(**words)}
        options = read_options(wanted, streaming=False)
        done = drain(options, JobTable(resolved(table)), follow, stopped)
    except (DisqueError, *failures.STORAGE) as error:
        raise failures.in_words(error) from error
    click.echo(
        f"{wording.counted(done.stored, 'job')} stored; {wording.count(done.again)} more that had"
        " been stored before."
    )


def _setting(stopped: threading.Event) -> Callable[[int, FrameType | None], None]:
    """The batch that is under way is finished."""
    return lambda number, frame: stopped.set()

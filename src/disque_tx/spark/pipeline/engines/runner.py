"""What runs the commands: Spark, or DuckDB in this process. Neither is imported before it is
used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final

import attrs
import click

from disque_tx.errors import DisqueError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from disque_tx.spark.pipeline.engines.spark import Engine

SPARK: Final = "spark"
DUCKDB: Final = "duckdb"
ENGINES: Final = (SPARK, DUCKDB)
#: What these queries need beyond Spark's own choice: few and large partitions are joined by
#: Spark itself, and a sketch per queue fits into memory, for this many queues and windows.
SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.shuffle.partitions": "32",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.skewJoin.enabled": "true",
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "20000",
    "spark.sql.session.timeZone": "UTC",
}


@attrs.frozen
class PipelineRunner:
    """Makes the engine of a command. ``master``, ``settings``: of Spark; those of the user override
    :data:`SETTINGS`. ``progress``: whether to show that of Spark. ``name``: of the engine."""

    master: str | None
    settings: Mapping[str, str]
    progress: bool | None
    name: str = SPARK

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        """The engine; errors in it become messages of a line or two."""
        if self.name == SPARK:
            from disque_tx.spark.pipeline.engines.spark import SparkEngine

            with self.spark() as spark:
                yield SparkEngine(spark)
            return
        with duckdb_needed(f"--engine {DUCKDB}"):
            from disque_tx.spark.pipeline.local.engine import DuckEngine

        with errors_shown():
            yield DuckEngine()

    def spark(self, more: Mapping[str, str] = {}) -> AbstractContextManager[SparkSession]:
        """A session of Spark; errors in it become messages of a line or two. ``more``: settings of
        the command, which those of the user override as well.

        :raises click.UsageError: when another engine was asked for.
        """
        if self.name != SPARK:
            command = click.get_current_context().info_name
            raise click.UsageError(
                f"{command} runs on Spark alone: leave out --engine {self.name}."
            )
        from disque_tx.spark.pipeline.stages import running

        return running(self.master, {**SETTINGS, **more, **self.settings}, self.progress)


@contextmanager
def duckdb_needed(what: str) -> Iterator[None]:
    """Where modules are imported that need DuckDB. ``what``: is asked for.

    :raises click.ClickException: when it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != DUCKDB:
            raise
        raise click.ClickException(
            f"{what} needs the package duckdb: pip install 'disque-tx[lake]'"
        ) from error


@contextmanager
def errors_shown() -> Iterator[None]:
    """Errors of this package, and of files, become messages."""
    try:
        yield
    except Exception as error:
        # This imports libraries that take long, and that are there already if they failed.
        from disque_tx.spark.pipeline import failures

        if isinstance(error, (DisqueError, *failures.STORAGE)):
            raise failures.in_words(error) from error
        raise

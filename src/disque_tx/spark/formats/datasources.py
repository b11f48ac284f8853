"""The formats as data sources of Spark. Options are checked here, before anything runs."""

from __future__ import annotations

from typing import Any, Final, cast

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    DataSourceStreamWriter,
)
from pyspark.sql.types import StructType

from disque_tx.spark import options
from disque_tx.spark.errors import BadOption
from disque_tx.spark.files.aof import FilteringLogReader, LogReader, log_options
from disque_tx.spark.files.events import EventReader, FilteringEventReader
from disque_tx.spark.files.filters import OPTION, filtering
from disque_tx.spark.files.folders import folder_options
from disque_tx.spark.files.live import LiveEventReader, LiveEventStreamReader
from disque_tx.spark.files.remote import CONNECTION, event_nodes
from disque_tx.spark.files.table import EventTableReader
from disque_tx.spark.formats.older import OlderStreamReader, RowStreamWriter
from disque_tx.spark.offered import ARROW_STREAMS, LIMITS, arrow_columns
from disque_tx.spark.pipeline.tables.events import EVENT_COLUMNS, event_schema
from disque_tx.spark.schema import (
    AOF_JOBS_DDL,
    AOF_RECORDS_DDL,
    EVENTS_READ_DDL,
    arrow_schema,
)
from disque_tx.spark.sink.columns import check
from disque_tx.spark.sink.writer import JobWriter, StreamWriter, TableWriter
from disque_tx.spark.source.readers import JobReader, JobStreamReader

_FILES: Final = "maxFilesPerTrigger"
_FILES_MAX: Final = 1_000
_COLUMNS_OF_ITS_OWN: Final = "The format {} has columns of its own. Leave schema() out."


def _options(source: DataSource) -> dict[str, str]:
    return dict(cast(Any, source.options))


class DisqueSource(DataSource):
    """``format("disque")``: queues."""

    @classmethod
    def name(cls) -> str:
        """The name of the source in ``format``."""
        return "disque"

    def schema(self) -> str:
        """The columns of a job, or of files of jobs."""
        return options.columns(_options(self))

    def reader(self, schema: StructType) -> JobReader:
        """For ``spark.read``."""
        _only(schema, self.schema(), self.name())
        return JobReader(options.read_options(_options(self), streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream``."""
        _only(schema, self.schema(), self.name())
        wanted = options.read_options(_options(self), streaming=True)
        return _for_this_spark(JobStreamReader(wanted), wanted.checkpoint, "seq")

    def writer(self, schema: StructType, overwrite: bool) -> TableWriter:
        """For ``df.write``."""
        return TableWriter(self._writer(schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """For ``df.writeStream``."""
        writer = StreamWriter(self._writer(schema, overwrite))
        return writer if ARROW_STREAMS else RowStreamWriter(writer, arrow_columns(schema))

    def _writer(self, schema: StructType, overwrite: bool) -> JobWriter:
        if overwrite:
            raise BadOption("Jobs can only be added to queues. Use mode or outputMode append.")
        wanted = options.write_options(_options(self))
        check(schema, wanted)
        return JobWriter(wanted)


class LogSource(DataSource):
    """``format("disque_aof")``: append only files."""

    @classmethod
    def name(cls) -> str:
        """The name of the source in ``format``."""
        return "disque_aof"

    def schema(self) -> str:
        """The columns of a job, or of a record."""
        view = log_options(_options(self)).view
        return AOF_RECORDS_DDL if view == "records" else AOF_JOBS_DDL

    def reader(self, schema: StructType) -> LogReader:
        """For ``spark.read``."""
        _only(schema, self.schema(), self.name())
        wanted = log_options(_options(self))
        return FilteringLogReader(wanted) if wanted.filtering else LogReader(wanted)


class EventSource(DataSource):
    """``format("disque_events")``: segments of event logs; with the option ``nodes``, those of
    running nodes; or with the option ``table``, which is for streams, a table of events."""

    @classmethod
    def name(cls) -> str:
        """The name of the source in ``format``."""
        return "disque_events"

    def schema(self) -> str:
        """The columns of an event, and one for lines that are not events; or those of the table."""
        return f"{EVENT_COLUMNS}, dt DATE" if self._table() else EVENTS_READ_DDL

    def _table(self) -> str | None:
        return _options(self).get("table")

    def _nodes(self, *more: str) -> options.FormatOptions | None:
        given = _options(self)
        if "nodes" not in given:
            return None
        return options.FormatOptions(self.name(), given, (*CONNECTION, *more))

    def reader(self, schema: StructType) -> EventReader | LiveEventReader:
        """For ``spark.read``."""
        if self._table():
            raise BadOption("The option table is for readStream. Table(spark, path).rows() reads.")
        nodes = self._nodes()
        _only(schema, EVENTS_READ_DDL, self.name())
        if nodes is not None:
            return LiveEventReader(event_nodes(nodes))
        given = _options(self)
        paths = folder_options(self.name(), given, OPTION)
        wanted = options.FormatOptions(self.name(), given, given)
        return FilteringEventReader(paths) if filtering(wanted) else EventReader(paths)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream``."""
        nodes = self._nodes(_FILES)
        if nodes is not None:
            _only(schema, EVENTS_READ_DDL, self.name())
            files_max = nodes.number(_FILES, 1, _FILES_MAX) or _FILES_MAX
            example = "/data/checkpoint"
            checkpoint = None if LIMITS else nodes.required("checkpointLocation", example)
            live = LiveEventStreamReader(event_nodes(nodes), files_max)
            return _for_this_spark(live, checkpoint, "logs")
        table = self._table()
        if table is None:
            raise BadOption(
                "A stream of events needs the option nodes, which are addresses for HTTP, or the"
                " option table, which is a table of 'ingest'."
            )
        if arrow_columns(schema) != event_schema():
            raise BadOption(_COLUMNS_OF_ITS_OWN.format(self.name()))
        return _for_this_spark(EventTableReader(table), None, "version")


def _for_this_spark(
    reader: JobStreamReader | LiveEventStreamReader | EventTableReader,
    checkpoint: str | None,
    mark: str,
) -> DataSourceStreamReader:
    return reader if LIMITS else OlderStreamReader(reader, checkpoint, mark)


def _only(schema: StructType, ddl: str, form: str) -> None:
    if arrow_columns(schema) != arrow_schema(ddl):
        raise BadOption(_COLUMNS_OF_ITS_OWN.format(form))

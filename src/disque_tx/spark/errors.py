"""What can go wrong between Spark and Disque, in words for the person who started the query."""

from __future__ import annotations

from disque_tx.errors import DisqueError


class SparkError(DisqueError):
    """Base of the errors of this package. Spark shows only the text of an error, so the text says
    what happened, where, and what to do."""


class JavaMissing(SparkError):
    """No Java was found that Spark runs on."""


class SparkTooOld(SparkError):
    """The installed PySpark has no formats in Python."""


class BadOption(SparkError, ValueError):
    """An option of a format is unknown, missing or has an invalid value."""


class RemoteSession(SparkError):
    """What was asked for cannot be done with a session of Spark Connect."""


class BadColumn(SparkError, ValueError):
    """A table cannot be written to a queue: a column is missing, unknown, or has a
    wrong type."""


class JobsLost(SparkError):
    """Jobs of a batch cannot be read again, and the query must not continue without them."""


class EventsLost(SparkError):
    """Files of an event log were removed before a query had read them."""


class NodeRefused(SparkError):
    """A node does not say what is in its event log, and never will as it is."""


class BadRecords(SparkError):
    """A batch has jobs whose bodies cannot be read."""


class WriteRefused(SparkError):
    """A node refused jobs, or was lost while they were written."""


class PipelineError(SparkError):
    """Base of the errors of the pipeline."""


class NothingToRead(PipelineError):
    """A folder or file that was named does not exist."""


class BadPath(PipelineError, ValueError):
    """A path names a file system or a place that cannot be used."""


class BadTable(PipelineError):
    """A folder is not a table of events, or is one of another version."""


class OutputExists(PipelineError):
    """The folder or file for the results exists already, and must not be replaced."""


class OutputOverlaps(PipelineError):
    """The folder for the results has something in common with what is read."""


class Conflict(PipelineError):
    """The table was written to by another process at the same time."""


class ForeignData(PipelineError):
    """The input is so different from event logs that it is not processed."""

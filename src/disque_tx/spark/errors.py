"""What can go wrong between Spark and Disque, in words for the person who started the query."""

from __future__ import annotations

from disque_tx.errors import DisqueError


class SparkError(DisqueError):
    """Base of the errors of this package. Spark shows the text of an error alone, so it says it
    all: what happened, where, and what to do."""


class JavaMissing(SparkError):
    """There is no Java that Spark runs on."""


class BadOption(SparkError, ValueError):
    """An option of a format is unknown, missing or has a value it cannot have."""


class BadColumn(SparkError, ValueError):
    """A table cannot be written to a queue: a column is missing, foreign, or of another type."""


class JobsLost(SparkError):
    """Jobs of a batch cannot be read again, and the query must not go on as if they could."""


class WriteRefused(SparkError):
    """A node did not take jobs."""


class DamagedFile(SparkError):
    """A file is not what the format reads."""


class PipelineError(SparkError):
    """Base of the errors of the pipeline."""


class NothingToRead(PipelineError):
    """A folder or file that was named does not exist."""


class BadTable(PipelineError):
    """A folder is no table of events, or one of another version."""


class OutputExists(PipelineError):
    """Results would go where something is already."""


class Conflict(PipelineError):
    """Somebody else wrote to the table in the meantime."""


class ForeignData(PipelineError):
    """What was given is no event log, to such a degree that it is not worth going on."""

"""What people are told when a command of the pipeline cannot do its work."""

from __future__ import annotations

from disque_tx.spark.errors import SparkError


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

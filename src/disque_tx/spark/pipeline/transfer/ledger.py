"""Which jobs were replayed, so that none is replayed twice.

::

    LEDGER/
      run-<unique name>/*.parquet     the IDs of the jobs of a replay that ended well
      _open-<unique name>/*.parquet   those of one that runs, or failed, or was killed

Of a replay that did not end well nobody knows whether its jobs are in the queues: they are added at
once, and the ledger is told before and after. So the next one asks, rather than losing or doubling.
"""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from disque_tx.spark.pipeline.errors import PipelineError
from disque_tx.spark.pipeline.storage import Entry, Storage

_DONE: Final = "run-"
_OPEN: Final = "_open-"
#: What to do about replays that did not end well.
CHOICES: Final = ("stop", "skip", "again")


class Unfinished(PipelineError):
    """An earlier replay did not tell how it ended."""


class Ledger:
    """The ledger in a folder, which need not exist."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._storage = Storage(spark)
        self.root = self._storage.absolute(path)

    def known(self) -> DataFrame:
        """The column ``job_id``: what was replayed, each once."""
        runs = [entry.path for entry in self._named(_DONE)]
        if not runs:
            return self._spark.createDataFrame([], "job_id STRING")
        return self._spark.read.schema("job_id STRING").parquet(*runs).distinct()

    def settle(self, choice: str) -> None:
        """Decide about replays that did not end well: ``skip``: their jobs count as replayed;
        ``again``: they do not.

        :raises Unfinished: for ``stop``, if there is one.
        """
        for entry in self._named(_OPEN):
            if choice == "stop":
                raise Unfinished(
                    f"An earlier replay runs still, failed or was killed; see {entry.path}. If its"
                    " jobs are in their queues, add --unfinished skip; if they are not, add"
                    " --unfinished again."
                )
            if choice == "skip":
                self.finish(entry.name)
            else:
                self._storage.remove(entry.path)

    def begin(self, jobs: DataFrame) -> str:
        """Tell that jobs are about to be added, by their ``job_id``; returns a name."""
        name = f"{_OPEN}{uuid4().hex}"
        jobs.select("job_id").write.parquet(f"{self.root}/{name}")
        return name

    def finish(self, name: str) -> None:
        """Tell that they were added."""
        done = name.replace(_OPEN, _DONE, 1)
        self._storage.move(f"{self.root}/{name}", f"{self.root}/{done}")

    def _named(self, prefix: str) -> list[Entry]:
        entries = self._storage.entries(self.root)
        return [entry for entry in entries if entry.name.startswith(prefix)]

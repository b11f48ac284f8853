"""Where the files of a batch are read: in threads of this process, or in tasks of Spark. Arrow does
most of what there is to do, and lets other threads run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import attrs

from disque_tx.spark.process.threads import in_threads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


class Workers(Protocol):
    """What does several pieces of work at once."""

    @property
    def count(self) -> int:
        """How many at once."""

    def map(self, do: Callable[[_Work], _Result], work: Sequence[_Work]) -> list[_Result]:
        """The result of each piece of work, in their order."""


@attrs.frozen
class LocalThreads:
    """Threads of this process."""

    count: int = attrs.field(factory=lambda: os.cpu_count() or 1)

    def map(self, do: Callable[[_Work], _Result], work: Sequence[_Work]) -> list[_Result]:
        """The result of each piece of work, in their order."""
        if len(work) == 1:
            return [do(work[0])]
        return in_threads(do, work, self.count)


class SparkTasks:
    """Tasks of Spark. What they do and return is pickled."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self.count = max(int(self._context.defaultParallelism), 1)

    def map(self, do: Callable[[_Work], _Result], work: Sequence[_Work]) -> list[_Result]:
        """The result of each piece of work, in their order."""
        return list(self._context.parallelize(work, len(work)).map(do).collect())

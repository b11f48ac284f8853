"""The Spark session of a command, with a progress bar per active stage, on terminals."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import click
from py4j.protocol import Py4JJavaError
from pyspark import StatusTracker
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from disque_tx.errors import DisqueError
from disque_tx.spark import session
from disque_tx.spark.pipeline import failures

_PERIOD_S: Final = 0.2


@contextmanager
def running(
    master: str | None, settings: Mapping[str, str], progress: bool | None
) -> Iterator[SparkSession]:
    """A session; errors in it become messages of a line or two. ``progress``: whether to show it;
    ``None``: on a terminal."""
    # For a condition with a misspelt column, it would print pages of plans.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    try:
        spark = session("disque-pipeline", master, settings)
        console = Console(stderr=True)
        with stages_shown(spark.sparkContext.statusTracker(), console, progress):
            yield spark
    except (DisqueError, *failures.STORAGE) as error:
        raise failures.in_words(error) from error
    except PySparkException as error:
        first = (error.getMessage() or str(error)).strip().partition("\n")[0]
        raise click.ClickException(f"Spark failed: {first}") from error
    except Py4JJavaError as error:
        raise click.ClickException(f"Spark failed: {error.java_exception}") from error


@contextmanager
def stages_shown(tracker: StatusTracker, console: Console, wanted: bool | None) -> Iterator[None]:
    """Show the stages while the block runs.

    ``wanted``: whether to show them; ``None``: if ``console`` is a terminal.
    """
    if not (console.is_terminal if wanted is None else wanted):
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    over = threading.Event()
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        bars = StageBars(tracker, progress)
        thread = threading.Thread(target=_follow, args=(bars, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _follow(bars: StageBars, over: threading.Event) -> None:
    while not over.wait(_PERIOD_S):
        bars.update()


class StageBars:
    """Progress bars for active stages; those of finished ones disappear."""

    def __init__(self, tracker: StatusTracker, progress: Progress) -> None:
        self._tracker = tracker
        self._progress = progress
        self._bars: dict[int, TaskID] = {}

    def update(self) -> None:
        """Show the progress of the stages."""
        active = set(self._tracker.getActiveStageIds())
        for stage in set(self._bars) - active:
            self._progress.remove_task(self._bars.pop(stage))
        for stage in sorted(active):
            info = self._tracker.getStageInfo(stage)
            if info is not None:
                self._show(
                    stage, info.name.partition(" at ")[0], info.numCompletedTasks, info.numTasks
                )

    def _show(self, stage: int, name: str, done: int, tasks: int) -> None:
        if stage not in self._bars:
            self._bars[stage] = self._progress.add_task(f"stage {stage} {name}", total=tasks)
        self._progress.update(self._bars[stage], completed=done, total=tasks)

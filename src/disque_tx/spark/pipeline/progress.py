"""A bar per stage that Spark works on, on terminals."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark import StatusTracker
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

_PERIOD_S: Final = 0.2


@contextmanager
def stages_shown(tracker: StatusTracker, console: Console, wanted: bool | None) -> Iterator[None]:
    """Show the stages for so long.

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
    """Bars for the stages that are active; those that are over disappear."""

    def __init__(self, tracker: StatusTracker, progress: Progress) -> None:
        self._tracker = tracker
        self._progress = progress
        self._bars: dict[int, TaskID] = {}

    def update(self) -> None:
        """Show how far the stages are now."""
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

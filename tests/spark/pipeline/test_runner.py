"""Progress bars per stage."""

from __future__ import annotations

import io
from typing import Any

import attrs
from rich.console import Console
from rich.progress import Progress
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.stages import StageBars, stages_shown


@attrs.frozen
class Stage:
    """Spark's information about a stage."""

    name: str
    numTasks: int
    numCompletedTasks: int


class Tracker:
    """Spark's status tracker, with stages that a test sets."""

    def __init__(self) -> None:
        self.stages: dict[int, Stage | None] = {}

    def getActiveStageIds(self) -> list[int]:
        return list(self.stages)

    def getStageInfo(self, stage: int) -> Any:
        return self.stages[stage]


class BarTests(SynchronousTestCase):
    """The progress that users see while they wait."""

    def test_stages(self) -> None:
        """Each stage has a bar that shows its tasks, and disappears with it; a stage without
        information has none."""
        tracker, progress = Tracker(), Progress(console=Console(file=io.StringIO()))
        bars = StageBars(tracker, progress)  # type: ignore[arg-type]
        tracker.stages = {3: Stage("parquet at Native.java:0", 10, 2), 4: None}
        bars.update()
        tracker.stages[3] = Stage("parquet at Native.java:0", 10, 7)
        bars.update()
        (task,) = progress.tasks
        shown = (task.description, task.completed, task.total)
        self.assertEqual(("stage 3 parquet", 7, 10), shown)
        tracker.stages = {}
        bars.update()
        self.assertEqual([], progress.tasks)

    def test_only_on_terminals(self) -> None:
        """Without a terminal there are no bars, unless they are requested."""
        for wanted, expected in ((None, False), (True, True)):
            output = io.StringIO()
            with stages_shown(Tracker(), Console(file=output), wanted):  # type: ignore[arg-type]
                pass
            self.assertEqual(expected, bool(output.getvalue()))

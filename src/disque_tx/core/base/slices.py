"""Long work in slices: what would hold up a turn is done a part at a time, turn by turn.

Nothing here knows how long a part takes: a task bounds it by counting what it looks at.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

#: Parts per turn, of different tasks.
_PARTS_PER_TURN: Final = 4


@mypyc_attr(allow_interpreted_subclasses=True)
class SlicedTask:
    """Work of which one part is done per call of :meth:`step`."""

    __slots__ = ()

    def step(self, now_ms: i64) -> bool:
        """Do one part; ``True`` when all is done."""
        raise NotImplementedError

    def over(self) -> None:
        """All is done."""

    def failed(self) -> None:
        """A fault in :meth:`step` ended the task: whoever waits for it must not wait forever."""


class SlicedWork:
    """The tasks under way; each gets its turn after the others."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: list[SlicedTask] = []

    def add(self, task: SlicedTask) -> None:
        """Begin a task in the next turn, unless it is under way."""
        if task not in self._tasks:
            self._tasks.append(task)

    def count(self) -> int:
        """How many tasks are under way."""
        return len(self._tasks)

    def busy(self) -> bool:
        """Whether there is anything to do."""
        return bool(self._tasks)

    def run(self, now_ms: i64) -> None:
        """Do a part of the first tasks; those that are not done go to the end. A fault ends the
        task that met it, and is raised."""
        for _ in range(min(len(self._tasks), _PARTS_PER_TURN)):
            task = self._tasks.pop(0)
            try:
                done = task.step(now_ms)
            except Exception:
                task.failed()
                raise
            if done:
                task.over()
            else:
                self._tasks.append(task)

    def clear(self) -> None:
        """Forget all tasks, done or not."""
        self._tasks.clear()

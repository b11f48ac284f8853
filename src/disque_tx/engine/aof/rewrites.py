"""The rewrite of the log that is under way, if there is one, and how the last one went."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from disque_tx.config.paths import os_error_text
from disque_tx.engine.aof.environment import Environment
from disque_tx.engine.aof.rewrite import Rewrite
from disque_tx.engine.interfaces import IFile

#: How long after a failure a rewrite is not begun by itself again.
_RETRY_MS: Final = 10_000


class Rewrites:
    """``current``: the one under way. ``scheduled``: one was interrupted and must be done again.
    ``took_s``: seconds that the last one took, -1 for none. ``ok``: the last one succeeded.

    ``finished`` gets the new file, which has its name already. ``changed`` is called whenever a
    rewrite began or ended without a new file: other records are wanted then.
    """

    def __init__(
        self,
        environment: Environment,
        finished: Callable[[IFile], None],
        changed: Callable[[], None],
    ) -> None:
        self.current: Rewrite | None = None
        self.scheduled = False
        self.took_s = -1
        self.ok = True
        self._environment = environment
        self._finished = finished
        self._changed = changed
        self._began_ms = 0
        self._retry_ms = 0

    def _now_ms(self) -> int:
        return int(self._environment.node.now_ms)

    @property
    def running_s(self) -> int:
        """Seconds since the one under way began; -1 when there is none."""
        return -1 if self.current is None else (self._now_ms() - self._began_ms) // 1000

    def may_begin(self) -> bool:
        """Whether no rewrite is under way, and none has just failed."""
        return self.current is None and self._now_ms() >= self._retry_ms

    def begin(self, path: str, guard: Callable[[], IFile | None]) -> None:
        """Begin to write a new log for ``path``.

        ``guard``: gives what keeps other nodes off that name. ``OSError`` when that cannot be had,
        or the file cannot be made.
        """
        self.scheduled = False
        self._began_ms = self._now_ms()
        self.current = Rewrite(self._environment, path, guard(), self._end, self._fail)
        self._changed()

    def try_to_begin(self, path: str, guard: Callable[[], IFile | None]) -> None:
        """Begin a rewrite that no client asked for: a failure is logged."""
        try:
            self.begin(path, guard)
        except OSError as error:
            self._fail(error)

    def abandon(self) -> None:
        """Give up the one under way."""
        if self.current is not None:
            self.current.stop()
            self.current = None
            self._changed()

    def _report_end(self, ok: bool) -> None:
        self.ok = ok
        self.took_s = (self._now_ms() - self._began_ms) // 1000
        self.current = None

    def _end(self, file: IFile) -> None:
        self._report_end(True)
        self._finished(file)

    def _fail(self, error: OSError) -> None:
        self._environment.reports.warning(
            f"Rewriting the append only file failed: {os_error_text(error)}"
        )
        self._report_end(False)
        self._retry_ms = self._now_ms() + _RETRY_MS
        self._changed()

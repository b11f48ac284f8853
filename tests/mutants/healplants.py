"""The wrong methods of copies that are made again; see :mod:`tests.mutants.plants`."""

from __future__ import annotations

from typing import Any

from disque_tx.core.healing.lostnodes import ALIVE, LOST


def lost_is_alive(right: Any) -> Any:
    """A node that is lost counts as a holder."""

    def status(self: Any, node_id: bytes) -> int:
        found: int = right(self, node_id)
        return ALIVE if found == LOST else found

    return status


def one_only(right: Any) -> Any:
    """One copy is made, however many are missing."""

    def begin(self: Any, job: Any, shortage: Any) -> bool:
        if len(shortage.alive) > 1:
            return False
        begun: bool = right(self, job, shortage)
        return begun

    return begin


def fresh_delay(right: Any) -> Any:
    """A delayed job is queued by its new copy at once."""

    def set_state(self: Any, job: Any, message: Any) -> None:
        right(self, job, message)
        if message.delay_ms > 0:
            job.qtime_ms = self._turn.now_ms + 1
            self._jobs.reschedule(job)

    return set_state


def once(right: Any) -> Any:
    """Jobs are looked through once, and never again."""

    def counted(self: Any) -> None:
        right(self)
        self.lacking = 0
        self._walk = 0
        self._next_ms = -1

    return counted

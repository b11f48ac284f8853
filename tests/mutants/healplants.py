"""The wrong methods of copies that are made again; see :mod:`tests.mutants.plants`."""

from __future__ import annotations

from typing import Any

from disque_tx.core.healing.lostnodes import ALIVE, LOST
from disque_tx.messages.handover import HELD


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

    def settle(self: Any) -> None:
        right(self)
        self.lacking = 0
        self._following = 1
        self._next_ms = -1

    return settle


def waits_for_ever(right: Any) -> Any:
    """A node that waits until it is its turn to make copies looks at none of its jobs again."""

    def begin(self: Any) -> None:
        if self._waiting and not self._passed:
            self._next_ms = -1
        else:
            right(self)

    return begin


def asks_nobody(right: Any) -> Any:
    """Nodes that were started again are not asked."""

    def links_changed(self: Any, lost: dict[bytes, int]) -> None:
        self._walking = False

    return links_changed


def started_once(right: Any) -> Any:
    """A node that was asked once is not asked after its next start."""

    def links_changed(self: Any, lost: dict[bytes, int]) -> None:
        for node in self._membership.reachable:
            if node.id in self._known:
                self._known[node.id] = int(node.newest_link)
        right(self, lost)

    return links_changed


def has_everything(right: Any) -> Any:
    """A node that is asked answers that it has all jobs."""

    def answered(self: Any, sender: Any, message: Any) -> None:
        for entry in message.entries:
            entry.what = HELD
        right(self, sender, message)

    return answered


def no_state(right: Any) -> Any:
    """What the record of a job does not hold does not follow it."""

    def state_of(self: Any, job: Any) -> Any:
        message = right(self, job)
        message.delay_ms = 1
        return message

    return state_of

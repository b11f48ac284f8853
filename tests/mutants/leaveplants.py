"""The wrong methods of nodes that leave empty; see :mod:`tests.mutants.plants`."""

from __future__ import annotations

from typing import Any

from disque_tx.core.healing.lostnodes import ABOUT_TO_LEAVE, ALIVE
from disque_tx.core.jobs.job import DELAYED
from disque_tx.messages.handover import DELAY
from disque_tx.messages.records import ACKED


def leaving_is_alive(right: Any) -> Any:
    """A node that leaves counts as a holder that stays."""

    def status(self: Any, node_id: bytes) -> int:
        found: int = right(self, node_id)
        return ALIVE if found == ABOUT_TO_LEAVE else found

    return status


def ignored(what: str) -> Any:
    """Jobs of one kind do not count as left."""

    def plant(right: Any) -> Any:
        def visit(self: Any, job: Any) -> None:
            kind = "acked" if job.state == ACKED else "delayed" if job.place == DELAYED else ""
            if kind != what:
                right(self, job)

        return visit

    return plant


def delay_at_once(right: Any) -> Any:
    """The DELAY that another node is to wait for is over at once."""

    def wait(self: Any, job: Any, what: int, due_ms: int) -> None:
        right(self, job, what, self._turn.now_ms + 1 if what == DELAY else due_ms)

    return wait


def kept_too(right: Any) -> Any:
    """A job with RETRY 0 that moves while it is delayed stays here as well."""

    def delayed_once(self: Any, job: Any) -> None:
        discard, self._jobs.discard = self._jobs.discard, lambda job: None
        flags = job.flags
        right(self, job)
        job.flags = flags
        self._jobs.discard = discard

    return delayed_once

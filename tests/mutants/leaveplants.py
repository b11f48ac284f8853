"""The wrong methods of nodes that leave empty; see :mod:`tests.mutants.plants`."""

from __future__ import annotations

from typing import Any

from disque_tx.core.healing.lostnodes import ABOUT_TO_LEAVE, ALIVE
from disque_tx.core.jobs.job import DELAYED
from disque_tx.messages.handover import BACKOFF, DELAY
from disque_tx.messages.nodes import LEAVING
from disque_tx.messages.records import ACKED


def unconfirmed(right: Any) -> Any:
    """A copy is dropped as soon as the others are asked."""

    def ask(self: Any, job: Any, *rest: Any) -> None:
        right(self, job, *rest)
        asked = self.pending.get(job.id)
        if asked is not None:
            self._end(asked)
            self._release(asked)

    return ask


def leaving_is_alive(right: Any) -> Any:
    """A node that leaves counts as a holder that stays."""

    def status(self: Any, node_id: bytes) -> int:
        found: int = right(self, node_id)
        return ALIVE if found == ABOUT_TO_LEAVE else found

    return status


def answers_while_leaving(right: Any) -> Any:
    """A node that leaves itself confirms copies to others that leave."""

    def asked(self: Any, sender: Any, message: Any) -> None:
        myself = self._membership.myself
        leaving = myself.flags & LEAVING
        myself.flags &= ~LEAVING
        right(self, sender, message)
        myself.flags |= leaving

    return asked


def ignored(what: str) -> Any:
    """Jobs of one kind do not count as left."""

    def plant(right: Any) -> Any:
        def visit(self: Any, job: Any) -> None:
            kind = "acked" if job.state == ACKED else "delayed" if job.place == DELAYED else ""
            if kind != what:
                right(self, job)

        return visit

    return plant


def at_once(what: int) -> Any:
    """What another node is to wait for is over at once."""

    def plant(right: Any) -> Any:
        def wait(self: Any, job: Any, asked: int, due_ms: int) -> None:
            right(self, job, asked, self._turn.now_ms + 1 if asked == what else due_ms)

        return wait

    return plant


delay_at_once = at_once(DELAY)
backoff_at_once = at_once(BACKOFF)


def kept_too(right: Any) -> Any:
    """A job with RETRY 0 that moves while it is delayed stays here as well."""

    def delayed_once(self: Any, job: Any) -> None:
        discard, self._jobs.discard = self._jobs.discard, lambda job: None
        flags = job.flags
        right(self, job)
        job.flags = flags
        self._jobs.discard = discard

    return delayed_once


def quiet(right: Any) -> Any:
    """The other holders do not get to know that a copy was dropped."""

    def release(self: Any, asked: Any) -> None:
        right(self, asked)
        self._dropped.clear()

    return release

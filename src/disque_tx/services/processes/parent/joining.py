"""Which processes serve clients and do not reach the others yet: what they add could get too few
copies."""

from __future__ import annotations

from typing import Final

from disque_tx.services.processes.parent.reports import ProcessReports
from disque_tx.services.processes.parent.supervision import Member

#: A process that still does not reach the others is used all the same.
PATIENCE_S: Final = 10.0


class JoiningProcesses:
    """``reports``: what the processes said last. ``members``: the processes that there are."""

    def __init__(self, reports: ProcessReports, members: dict[int, Member]) -> None:
        self._reports = reports
        self._members = members
        self._begun_s: dict[int, float] = {}

    @property
    def busy(self) -> bool:
        """Whether there are any."""
        return bool(self._begun_s)

    def begin(self, number: int, now_s: float) -> None:
        """Watch a process that serves clients, until it reaches the others."""
        self._begun_s[number] = now_s

    def end(self, number: int) -> None:
        """Stop watching a process that has ended."""
        self._begun_s.pop(number, None)

    def is_over(self, number: int, now_s: float) -> bool:
        """Whether a process that has just reported was waited for, and is no longer: it reaches
        all others that serve clients."""
        begun_s = self._begun_s.get(number)
        if begun_s is None:
            return False
        reached = set(self._reports.of(number).get("reached", ()))
        wanted = {
            self._reports.of(other).get("id", "")
            for other, member in self._members.items()
            if other != number and member.ready
        }
        if not wanted <= reached and now_s - begun_s < PATIENCE_S:
            return False
        del self._begun_s[number]
        return True

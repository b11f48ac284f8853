"""Before a daemon of several processes stops, all of them give their jobs to other hosts
(``shutdown-evacuates``; see :mod:`disque_tx.services.node.evacuation`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from disque_tx.services.processes.parent.reports import ProcessReports
from disque_tx.services.processes.parent.supervision import Member

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings

_POLL_S: Final = 0.5
#: How much later than the processes the parent gives up.
_LATER_S: Final = 2.0


class DaemonEvacuation:
    """``members``: the processes. ``reports``: what they report every second."""

    def __init__(
        self,
        settings: Settings,
        members: dict[int, Member],
        reports: ProcessReports,
        reactor: Any,
    ) -> None:
        self._settings = settings
        self._members = members
        self._reports = reports
        self._reactor = reactor
        self._begun = False
        self._end_s = 0.0
        self._done: Callable[[], object] = lambda: None

    def begin(self, done: Callable[[], object]) -> bool:
        """Have all processes give their jobs away, and call ``done`` when they have; ``False`` if
        the daemon is to be stopped at once."""
        seconds = self._settings.shutdown_evacuates
        if not seconds or self._begun:
            return self._begun
        self._begun = True
        self._done = done
        self._end_s = self._reactor.seconds() + seconds + _LATER_S
        for member in self._running():
            if member.child is not None:
                member.child.send(["evacuate"])
        self._check()
        return True

    def _running(self) -> list[Member]:
        return [member for member in self._members.values() if member.child is not None]

    def _check(self) -> None:
        numbers = [member.number for member in self._running()]
        over = all(self._reports.of(number).get("evacuated") for number in numbers)
        if over or self._reactor.seconds() >= self._end_s:
            self._done()
        else:
            self._reactor.callLater(_POLL_S, self._check)

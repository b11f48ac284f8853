"""What the parent knows of each process, as it tells them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from disque_tx.services.processes import settings as shares
from disque_tx.services.processes.parent.supervision import Member
from disque_tx.services.processes.summedinfo import COUNTERS, Figures

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings


class Known:
    """One process. ``id``: of its node, empty while it is unknown. ``report``: its last one."""

    def __init__(self) -> None:
        self.pid = 0
        self.launched_s = 0.0
        self.id = ""
        self.report: dict[str, Any] = {}


class ProcessReports:
    """``members``: the processes that there are. ``host_ip``: the address of this host that nodes
    of other hosts use; empty while no process knows it, or when it is configured. ``counted``: the
    counters of processes that have ended."""

    def __init__(self, settings: Settings, members: dict[int, Member]) -> None:
        self.host_ip = ""
        self.counted: Figures = {}
        self._settings = settings
        self._members = members
        self._known: dict[int, Known] = {}

    def launched(self, number: int, pid: int, now_s: float) -> None:
        """A process was started."""
        known = self._known.setdefault(number, Known())
        known.pid = pid
        known.launched_s = now_s

    def opened(self, number: int, node_id: str) -> None:
        """Keep the node ID of a process that has opened its ports."""
        self._known[number].id = node_id

    def receive(self, number: int, report: dict[str, Any]) -> None:
        """Keep a report of a process in place of its last one."""
        self._known[number].report = report
        if report["ip"] and not self.host_ip and not self._settings.cluster_announce_ip:
            self.host_ip = report["ip"]

    def ended(self, number: int) -> None:
        """Add the counters of an ended process to the total; keep its last report until the next
        one."""
        known = self._known.get(number)
        if known is not None and known.pid:
            known.pid = 0
            for name in COUNTERS:
                last = known.report.get("figures", {}).get(name, 0)
                self.counted[name] = self.counted.get(name, 0) + last
            known.report = {**known.report, "figures": {}}

    def of(self, number: int) -> dict[str, Any]:
        """The last report, with the ID of the node; empty when there is none."""
        known = self._known.get(number)
        return {**known.report, "id": known.id} if known is not None and known.report else {}

    def forget(self, number: int) -> None:
        """Forget a process that will not be started again."""
        self._known.pop(number, None)

    def for_children(self, meeting_ip: str, now_s: float) -> list[dict[str, Any]]:
        """What children are told of every process; ``ip``, ``port``, ``bus_port``: where its node
        can be met."""
        settings = self._settings
        found: list[dict[str, Any]] = []
        for number, known in sorted(self._known.items()):
            member = self._members.get(number)
            if member is None:
                continue
            runs = member.child is not None
            found.append(
                {
                    "number": number,
                    "id": known.id,
                    "pid": known.pid,
                    "ip": self.host_ip or meeting_ip,
                    "port": shares.own_port(settings, number),
                    "bus_port": shares.own_bus_port(settings, number),
                    "state": _state(member),
                    "uptime": int(now_s - known.launched_s) if runs else 0,
                    "restarts": member.restarts,
                    "figures": known.report.get("figures", {}) if runs else {},
                }
            )
        return found


def _state(member: Member) -> str:
    if member.child is None:
        return "down"
    return "ready" if member.ready else "loading" if member.opened else "starting"

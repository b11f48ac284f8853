"""Memory: a node that is full imports nothing, and takes back what it gave to clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.messages.bustypes import NEEDJOBS, NEEDMATCH, type_name
from disque_tx.messages.demands import DemandMessage
from disque_tx.sim.stage.checker import Checker

if TYPE_CHECKING:
    from disque_tx.messages.bus import Message
    from disque_tx.sim.machines.interfaces import Running
    from disque_tx.sim.stage.stage import Stage

#: What asks other nodes for jobs.
_ASKING: Final = (NEEDJOBS, NEEDMATCH)


class FullAsksForNothing(Checker):
    """A node above 95 % of maxmemory asks no other node for jobs, under any fault. What it asked
    for before may still come."""

    def __init__(self) -> None:
        self._breaches: dict[str, None] = {}

    def watch(self, run: Stage) -> None:
        """Look at every message."""
        for machine in run.machines:
            machine.on_send.append(self._look)

    def _look(self, process: Running, message: Message) -> None:
        asks = message.type in _ASKING
        if isinstance(message, DemandMessage):
            asks = any(entry.credit > 0 for entry in message.entries)
        if asks and process.node.memory.is_full():
            where = f"{process.ip.decode()} at {process.world.now_us / 1e6:.3f} s"
            self._breaches.setdefault(f"{where}: {type_name(message.type)} above 95 % of maxmemory")

    def judge(self, run: Stage) -> list[str]:
        """The first few of such messages."""
        return list(self._breaches)[:10]


class ReturnsTaken(Checker):
    """No request about a job that a node may have is refused for want of memory: NACK and ENQUEUE
    put it where it was before, acknowledgements make room."""

    def judge(self, run: Stage) -> list[str]:
        """Requests that were refused."""
        return [
            f"{request.job_id.decode('latin-1')}: {request.node.decode()} refused"
            f" {request.word.decode()} at {request.answered_us / 1e6:.3f} s: {request.refused}"
            for request in run.history.job_requests
            if request.refused.startswith("OOM")
        ]

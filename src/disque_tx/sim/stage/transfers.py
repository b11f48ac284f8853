"""Which jobs nodes gave to each other, and when."""

from __future__ import annotations

import attrs

from disque_tx.messages.bus import JobsMessage, Message
from disque_tx.messages.bustypes import YOURJOBS
from disque_tx.sim.machines.interfaces import Running
from disque_tx.sim.machines.machine import Machine


@attrs.define
class Transfers:
    """``sent``: by ID of a job, when it was sent and by whom, in that order."""

    sent: dict[bytes, list[tuple[int, bytes]]] = attrs.Factory(dict)

    def watch(self, machines: list[Machine]) -> None:
        """Examine every message."""
        for machine in machines:
            machine.on_send.append(self._look)

    def _look(self, process: Running, message: Message) -> None:
        if message.type == YOURJOBS and isinstance(message, JobsMessage):
            for job in message.jobs:
                sent = process.world.now_us, process.ip
                self.sent.setdefault(job.id, []).append(sent)

    def by_others(self, job_id: bytes, node: bytes, since_us: int, until_us: int) -> int:
        """How often nodes other than this one sent the job in that time."""
        return sum(
            since_us <= sent_us <= until_us and sender != node
            for sent_us, sender in self.sent.get(job_id, ())
        )

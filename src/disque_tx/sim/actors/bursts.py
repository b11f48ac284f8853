"""Producers that add several jobs without waiting for answers."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import hiredis

from disque_tx.sim.actors.actors import Producer
from disque_tx.sim.actors.clients import LOST
from disque_tx.sim.stage.history import Added

_AT_ONCE_MAX: Final = 12
#: Some give up earlier than others, while their jobs still wait for copies.
_IMPATIENT: Final = 0.3
_IMPATIENT_US: Final = -2_800_000


class BurstProducer(Producer):
    """Adds jobs in bursts: several ADDJOBs in one piece, whose answers must come in their order."""

    _left = 0
    _refused = False

    def act(self) -> None:
        burst = [self.new_job() for _ in range(self.random.randint(2, _AT_ONCE_MAX))]
        self._left = len(burst)
        self._refused = False
        self.client.ask_all(
            [partial(self.answered, added) for added, _ in burst],
            [tuple(self.words(added, timeout_ms)) for added, timeout_ms in burst],
            within_us=_IMPATIENT_US
            if self.random.random() < _IMPATIENT
            else 1000 * sum(timeout_ms for _, timeout_ms in burst),
        )
        for added, _ in burst:
            added.node = self.client.node

    def answered(self, added: Added, reply: Any) -> None:
        """The answer, ``LOST``, or ``None`` if no job was to be added."""
        self._left -= 1
        if isinstance(reply, hiredis.ReplyError):
            added.refused = str(reply)
            self._refused = True
        elif reply is not LOST and reply is not None:
            added.answered_us = self.client.sent_us
            self.run.accepted(added, self.client.node, reply)
            self.run.world.counters["bursts"] += 1
        if self._left == 0:
            if self._refused and self.random.random() < 0.5:
                self.client.leave()
            self.rest(self.run.pace_us * _AT_ONCE_MAX)

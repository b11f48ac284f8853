"""Log lines about jobs that have the key of an earlier one (cluster protocol, section 21.6), after
a partition, or after nodes that failed together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from disque_tx.core.node import Node
    from disque_tx.services.machine.log import DaemonLog

#: At most one line in this time: a partition may end with many.
PERIOD_MS: Final = 1_000


class KeyLog:
    """Logs how many such jobs of its own this node has found since the last line."""

    def __init__(self, node: Node, log: DaemonLog) -> None:
        self._node = node
        self._log = log
        self._dropped = 0
        self._doubled = 0
        self._quiet_until_ms = 0

    def update(self) -> None:
        """Log what was found, unless there was a line a moment ago: then it is in the next one."""
        totals = self._node.totals
        dropped, doubled = int(totals.keys_dropped), int(totals.keys_doubled)
        if dropped < self._dropped or doubled < self._doubled:
            self._dropped = self._doubled = 0  # CONFIG RESETSTAT
        now_ms = int(self._node.now_ms)
        if now_ms < self._quiet_until_ms or (dropped, doubled) == (self._dropped, self._doubled):
            return
        self._quiet_until_ms = now_ms + PERIOD_MS
        ended, stay = dropped - self._dropped, doubled - self._doubled
        self._dropped, self._doubled = dropped, doubled
        self._write(ended, stay)

    def _write(self, ended: int, stay: int) -> None:
        text = (
            "Jobs were added with the key of an earlier job, as happens in a partition:"
            f" {ended} that had not been delivered were dropped,"
            f" {stay} that may have been delivered were left as they are"
        )
        if stay:
            self._log.warning(text)
        else:
            self._log.notice(text)

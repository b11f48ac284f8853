"""Log lines about what nodes share: changes of tables that other nodes sent and that could not be
taken, and jobs that have the key of an earlier one (cluster protocol, section 21.6), after a
partition, or after nodes that failed together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from disque_tx.core.node import Node
    from disque_tx.core.tables.table import SharedTable
    from disque_tx.services.machine.log import DaemonLog


#: At most one line about a table and a node in this time.
PERIOD_MS: Final = 60_000
#: At most one line in this time: a partition may end with many.
KEY_PERIOD_MS: Final = 1_000


class TableLog:
    """Logs how many changes of each node were refused since the last line about it."""

    def __init__(self, node: Node, log: DaemonLog) -> None:
        self._node = node
        self._policies = _OneTable(node.policy_table, "policies", "QPOLICY", log)
        self._schedules = _OneTable(node.timetable, "schedules", "SCHEDULE", log)

    def update(self) -> None:
        """Log what was refused, unless there was a line about its sender less than a minute ago:
        then it is in the next one."""
        now_ms = int(self._node.now_ms)
        self._policies.update(now_ms)
        self._schedules.update(now_ms)


class _OneTable:
    def __init__(self, table: SharedTable, what: str, command: str, log: DaemonLog) -> None:
        self._table = table
        self._what = what
        self._command = command
        self._log = log
        self._total = 0
        # By node ID: how many were logged, and until when nothing is logged.
        self._logged: dict[bytes, tuple[int, int]] = {}

    def update(self, now_ms: int) -> None:
        refused = self._table.refused
        if int(refused.total) == self._total:
            return
        behind = False
        for node_id, count in refused.by_sender.items():
            logged, quiet_until_ms = self._logged.get(node_id, (0, now_ms))
            if count == logged:
                continue
            if now_ms < quiet_until_ms:
                behind = True
                continue
            self._logged[node_id] = (count, now_ms + PERIOD_MS)
            self._log.warning(
                f"{count - logged} changes of {self._what} that node {node_id.decode('latin-1')}"
                f" sent were refused: their counters are too far ahead, or they are damaged. See"
                f" {self._command} REPAIR in docs/how-to/run-a-cluster.md."
            )
        if not behind:
            self._total = int(refused.total)


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
        self._quiet_until_ms = now_ms + KEY_PERIOD_MS
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

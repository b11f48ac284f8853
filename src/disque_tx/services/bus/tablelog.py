"""Log lines about changes of shared tables that other nodes sent and that could not be taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from disque_tx.core.node import Node
    from disque_tx.core.shared.table import SharedTable
    from disque_tx.services.host.log import DaemonLog

#: At most one line about a table and a node in this time.
PERIOD_MS: Final = 60_000


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

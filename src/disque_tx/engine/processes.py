"""Nodes that are the processes of one daemon: when one reaches another, and how those end for good
that are surplus because the daemon has fewer processes than before. They leave the cluster, give
their jobs away, and nothing of them stays on the disk.
"""

from __future__ import annotations

from typing import Final

from disque_tx.core.node import Node
from disque_tx.engine.sidefiles import history_path, pauses_path, table_path
from disque_tx.messages.nodes import FAIL, HANDSHAKE, PFAIL
from disque_tx.wire.files.tables import POLICIES, SCHEDULES

#: Beside the nodes file of a node that leaves because its process is surplus.
_MARK: Final = ".leaving"
#: How often in a row it must report that it is empty.
_EMPTY_REPORTS: Final = 2
#: How long to wait until the remaining processes know its nodes.
_TEACHING_S: Final = 15.0


def reaches(node: Node, other_id: bytes) -> bool:
    """Whether a node may send jobs and questions to another one."""
    membership = node.membership
    entry = membership.nodes.get(other_id)
    if entry is None or entry.flags & (HANDSHAKE | PFAIL | FAIL):
        return False
    link = entry.link
    return link is not None and (link.features != 0 or membership.features == 0)


def mark_path(nodes_path: str) -> str:
    """What shows that a node leaves because its process is not wanted: no operator asked for
    it."""
    return nodes_path + _MARK


def node_files(nodes_path: str, log_files: list[str]) -> list[str]:
    """All that a node has written and that a later one in its place must not find, such as policies
    that were deleted since, in the order in which it is removed. The nodes file is the last but
    one: as long as that is there, the next start goes on with the rest.

    ``log_files``: the log and what lies beside it; none if the log is not in use, and stays.
    """
    tables = [table_path(nodes_path, POLICIES), table_path(nodes_path, SCHEDULES)]
    beside = [*tables, pauses_path(nodes_path), history_path(nodes_path)]
    return [*log_files, *beside, nodes_path, mark_path(nodes_path)]


def jobs_left(node: Node) -> int:
    """How many jobs, and clients that wait for copies, keep a node from ending for good."""
    return len(node.jobs) + len(node.waiters.copies)


def nodes_known(node: Node) -> int:
    """How many members of the cluster a node knows."""
    return sum(not entry.flags & HANDSHAKE for entry in node.membership.nodes.values())


class Emptying:
    """One node that is to end, by what it reports every second."""

    def __init__(self, now_s: float) -> None:
        self._since_s = now_s
        self._empty = 0

    def may_end(self, left: int, nodes: int, others: list[int], now_s: float) -> bool:
        """Whether it is empty, and the others know the nodes that it knows or had time enough.

        ``left``: :func:`jobs_left`; ``nodes``: :func:`nodes_known`, ``others``: that of each
        process which stays.
        """
        self._empty = self._empty + 1 if left == 0 else 0
        known = all(other >= nodes for other in others)
        return self._empty >= _EMPTY_REPORTS and (known or now_s - self._since_s > _TEACHING_S)

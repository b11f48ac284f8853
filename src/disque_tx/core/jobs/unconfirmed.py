"""Copies that nodes were asked for and did not confirm in time: they may have them all the same.

A late confirmation of a job that is done ends the copy. One of a job that only left this node, and
lives on elsewhere, must not: its holders would take it for done, too. So those are forgotten here.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

#: Jobs that are remembered.
_JOBS_MAX: Final = 10_000


class UnconfirmedCopies:
    """``nodes``: those that did not confirm, by the ID of the job."""

    def __init__(self) -> None:
        self.nodes: OrderedDict[bytes, set[bytes]] = OrderedDict()

    def note(self, job_id: bytes, nodes: set[bytes]) -> None:
        """Remember that these nodes did not confirm."""
        self.nodes[job_id] = nodes
        if len(self.nodes) > _JOBS_MAX:
            self.nodes.popitem(last=False)

    def arrived(self, job_id: bytes, node_id: bytes) -> bool:
        """Whether the node did not confirm in time, and does so now."""
        nodes = self.nodes.get(job_id)
        if nodes is None or node_id not in nodes:
            return False
        nodes.discard(node_id)
        if not nodes:
            del self.nodes[job_id]
        return True

    def left(self, job_id: bytes) -> None:
        """The job is about to leave this node, and may live on elsewhere."""
        if self.nodes:
            self.nodes.pop(job_id, None)

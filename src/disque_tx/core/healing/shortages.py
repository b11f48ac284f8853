"""How many copies a job lacks, and whose turn it is to make them.

1. A job that may be delivered again is to have as many copies as REPLICATE says, or as there are
   nodes that take jobs; those of lost nodes, and of nodes that leave, do not count.
2. When a lost copy was the only one on another host, one is missing although there are enough.
3. Of the nodes that have a copy, the one with the smallest ID makes the others; nodes that leave
   come last. The second one begins when the first has made none for 10 seconds, and so on: two at
   once make a copy too many, never one too few.

Many jobs have the same holders, so what is missing is worked out once for each list.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i32, i64

from disque_tx.core.adding.placement import Placement
from disque_tx.core.base.part import Turn
from disque_tx.core.healing.lostnodes import ABOUT_TO_LEAVE, ALIVE, LOST, LostNodes
from disque_tx.core.jobs.job import Job
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.records import ACTIVE, QUEUED

#: How long the next holder waits for the one before it.
TURN_MS: Final = 10_000
#: Lists of holders that are remembered.
_LISTS_MAX: Final = 20_000


class Shortage:
    """What jobs with one list of holders lack.

    ``missing``: copies, 0 or less for none. ``avoid``: a host that has enough of them. ``alive``:
    holders that stay. ``sources``: all that have a copy, in the order in which they make new ones,
    this node included. ``since_ms``: when the last of the missing copies was lost. ``waits``: it is
    noted that this node waits for its turn.
    """

    __slots__ = ("alive", "avoid", "missing", "since_ms", "sources", "waits")

    def __init__(self, missing: i64, avoid: bytes, alive: list[bytes], sources: list[bytes]):
        self.missing: i64 = missing
        self.avoid: bytes = avoid
        self.alive: list[bytes] = alive
        self.sources: list[bytes] = sources
        self.since_ms: i64 = 0
        self.waits: bool = False


class Shortages:
    """``nodes``: which are lost. ``made_ms``: when other nodes last made copies, by their IDs.
    ``doubtful``: some list names nodes that are lost, leave, or are unknown."""

    __slots__ = (
        "doubtful",
        "made_ms",
        "nodes",
        "_by_repl",
        "_last",
        "_last_nodes",
        "_last_repl",
        "_lists",
        "_membership",
        "_placement",
    )

    def __init__(self, turn: Turn, membership: Membership, placement: Placement) -> None:
        self.nodes: LostNodes = LostNodes(turn, membership)
        self.made_ms: dict[bytes, int] = {}
        self.doubtful: bool = False
        self._membership: Membership = membership
        self._placement: Placement = placement
        # REPLICATE → holders → what is missing.
        self._by_repl: dict[int, dict[tuple[bytes, ...], Shortage]] = {}
        # The list that was asked for last, and what is missing.
        self._last_nodes: tuple[bytes, ...] | None = None
        self._last_repl: i32 = 0
        self._last: Shortage | None = None
        self._lists: i64 = 0

    def update(self) -> bool:
        """Look at the nodes again; whether other jobs may lack copies than before."""
        if not self.nodes.update():
            return False
        self.forget()
        return True

    def forget(self) -> None:
        """Work out anew what is missing."""
        self.doubtful = False
        self._by_repl.clear()
        self._lists = 0
        self._last_nodes = None

    def of(self, job: Job) -> Shortage | None:
        """What the job lacks; ``None`` if that is nothing, or cannot be made again."""
        if not may_be_copied(job):
            return None
        if job.repl < 2 and job.nodes is self._membership.only_me and not self._membership.leaving:
            return None
        if job.nodes is self._last_nodes and job.repl == self._last_repl:
            return self._last
        self._last = self._of(job)
        self._last_nodes = job.nodes
        self._last_repl = job.repl
        return self._last

    def _of(self, job: Job) -> Shortage | None:
        by_nodes = self._by_repl.get(int(job.repl))
        if by_nodes is None:
            by_nodes = self._by_repl[int(job.repl)] = {}
        known = by_nodes.get(job.nodes)
        if known is not None:
            return known if known.missing > 0 else None
        if self._lists >= _LISTS_MAX:
            doubtful = self.doubtful
            self.forget()
            self.doubtful = doubtful
            by_nodes = self._by_repl[int(job.repl)] = {}
        self._lists += 1
        shortage = by_nodes[job.nodes] = self._work_out(job.nodes, i64(job.repl))
        return shortage if shortage.missing > 0 else None

    def _work_out(self, holders: tuple[bytes, ...], repl: i64) -> Shortage:
        nodes = self.nodes
        mine = self._membership.myself.id
        alive: list[bytes] = []
        leaving: list[bytes] = []
        since_ms: i64 = 0
        lost = False
        listed = holders if mine in holders else (*holders, mine)
        for node_id in listed:
            status = nodes.status(node_id)
            if status == LOST:
                lost = True
            elif status == ABOUT_TO_LEAVE:
                leaving.append(node_id)
            else:
                alive.append(node_id)
            since_ms = max(since_ms, nodes.since_ms(node_id))
            if status != ALIVE or not nodes.knows(node_id):
                self.doubtful = True
        missing = min(repl, nodes.takers) - i64(len(alive))
        avoid = b""
        if missing <= 0 and lost and repl > 1:
            avoid = self._placement.only_host(alive)
            missing = 1 if avoid else 0
        shortage = Shortage(missing, avoid, alive, sorted(alive) + sorted(leaving))
        shortage.since_ms = max(since_ms, nodes.grown_ms)
        return shortage

    def due_ms(self, shortage: Shortage) -> i64:
        """When it is this node's turn to make the copies."""
        mine = self._membership.myself.id
        before = shortage.sources.index(mine)
        due_ms: i64 = shortage.since_ms + before * TURN_MS if before else 0
        for place in range(before):
            made_ms: i64 = self.made_ms.get(shortage.sources[place], 0)
            if made_ms:
                due_ms = max(due_ms, made_ms + (before - place) * TURN_MS)
        return due_ms


def may_be_copied(job: Job) -> bool:
    """Whether the job is one that is delivered again when a client does not end it, so that more
    copies of it may be made."""
    return job.retry_s > 0 and (job.state == ACTIVE or job.state == QUEUED) and not job.held

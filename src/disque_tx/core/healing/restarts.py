"""Nodes that were started again: what they have lost of their copies, they get again.

A node without a log comes back with nothing, and one whose log is synced once a second without what
came last. It is alive, so it counts as a holder: two such restarts, one after the other, would lose
jobs with two copies.

1. A node is asked about all jobs whose lists name it when its start is another than the one this
   node knows, so all nodes are asked after this one's own start. Each holder asks, a part of its
   jobs at a time.
2. What the node does not have, it gets again, as fast as copies are made again. If it has no
   memory for copies, or does not confirm one, it is taken out of the list, and another node gets
   the copy.
3. Where a list is longer than REPLICATE, some node in it may never have got its copy, and only the
   node that added the job knew. So the other nodes of such lists are asked, too, when one of them
   was started again, is lost, or leaves.

Nodes of the original, and those of ours that do not know HANDOVER, are not asked.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.part import NEVER_MS
from disque_tx.core.delivery.arrival import Arrivals
from disque_tx.core.healing.copyrate import shares
from disque_tx.core.healing.repairs import Repairs
from disque_tx.core.healing.shortages import may_be_copied
from disque_tx.core.jobs.job import Job
from disque_tx.core.lookup.walk import Walk
from disque_tx.core.nodes.duplicateids import same_start
from disque_tx.core.state.state import State
from disque_tx.messages.bustypes import CAN_HAND_OVER
from disque_tx.messages.handover import (
    FULL,
    KEEP,
    NOT_HELD,
    RESTARTED,
    HandoverEntry,
    HandoverMessage,
)
from disque_tx.messages.nodes import (
    FAIL,
    HANDSHAKE,
    LEAVING,
    MYSELF,
    NOADDR,
    PFAIL,
    Link,
    NodeEntry,
)

#: Jobs that one message asks about, and messages to one node that may wait for their answers.
BATCH_MAX: Final = 500
_UNANSWERED_MAX: Final = 4
#: Between two parts of a walk, and jobs looked at in each.
_PAUSE_MS: Final = 10
_LOOKED_AT: Final = 2_000
#: How many of these are looked at in one go.
_AT_ONCE: Final = 100
#: Jobs that wait to be sent again: no more are asked about meanwhile.
_MISSING_MAX: Final = 2_000
#: A job with less than this left to live is not sent again.
_NEARLY_OVER_MS: Final = 2_000
#: A node that answers nothing for so long is left out, and asked again after as long.
_SILENT_MS: Final = 10_000


class _Asked:
    """A node that is asked on ``link``. ``started``: about all its copies, since its start; else
    only about those in doubt. ``entries``: the jobs of the next message. ``unanswered``: messages
    without an answer yet, and ``answered_ms``, since when."""

    __slots__ = ("answered_ms", "entries", "link", "node", "number", "started", "unanswered")

    def __init__(self, node: NodeEntry, link: Link, started: bool) -> None:
        self.node = node
        self.link = link
        self.started = started
        self.number: i64 = node.newest_link
        self.entries: list[HandoverEntry] = []
        self.unanswered: i64 = 0
        self.answered_ms: i64 = 0


class RestartedNodes:
    """``asked``: the nodes of the walk under way, by ID. ``missing``: copies that nodes do not have
    any more and are to get again: node and job ID. ``dropped``: whether a node was taken out of a
    list since the owner last set it back, so that jobs may lack copies."""

    def __init__(self, state: State, arrivals: Arrivals, repairs: Repairs) -> None:
        self.asked: dict[bytes, _Asked] = {}
        self.missing: deque[tuple[NodeEntry, bytes]] = deque()
        self.dropped: bool = False
        self._turn = state.turn
        self._jobs = state.jobs
        self._peers = state.peers
        self._membership = state.membership
        self._arrivals = arrivals
        self._repairs = repairs
        #: Node ID → the start that was asked about everything; and when to ask again one that
        #: did not answer.
        self._known: dict[bytes, int] = {}
        self._later_ms: dict[bytes, int] = {}
        #: Nodes that were gone when jobs were last looked through; and those, with the ones that
        #: were started again, whose lists are in doubt in the walk under way.
        self._gone: set[bytes] = set()
        self._doubted: set[bytes] = set()
        #: Whether a node of a list in doubt did not answer, so that all this is asked once more,
        #: and when.
        self._unsettled: bool = False
        self._again_ms: i64 = 0
        #: Nodes of such lists that fail: the lists are in doubt until these are back and asked.
        self._absent: set[bytes] = set()
        self._open: set[bytes] = set()
        self._walking: bool = False
        self._looking: Walk[Job] = Walk(state.jobs.table)
        self._next_ms: i64 = NEVER_MS

    # -- when --------------------------------------------------------------------------------

    def links_changed(self, gone: set[bytes]) -> None:
        """See whether nodes were started again that can be asked now, or are ``gone``: lost, or
        leaving."""
        if self._walking or not self._membership.features & CAN_HAND_OVER:
            return
        now_ms = self._turn.now_ms
        for node in self._membership.reachable:
            link = node.link
            if link is None or node.newest_link == 0 or not link.features & CAN_HAND_OVER:
                continue
            if node.flags & LEAVING or self._later_ms.get(node.id, 0) > now_ms:
                continue
            known: i64 = self._known.get(node.id, 0)
            if not known or not same_start(known, node.newest_link):
                self.asked[node.id] = _Asked(node, link, True)
        newly_gone: set[bytes] = set()
        if now_ms >= self._again_ms:
            newly_gone = gone - self._gone
            self._gone = gone
            newly_gone |= self._left_open()
        if self.asked or newly_gone:
            self._doubted = newly_gone | self.asked.keys()
            self._walking = True
            self._looking.begin()
            self._next_ms = now_ms
            self._forget_removed()

    def _left_open(self) -> set[bytes]:
        """The nodes whose lists are in doubt still, once one that could not be asked about them is
        back, or was removed."""
        nodes = self._membership.nodes
        back = [at for at in self._absent if at not in nodes or nodes[at].link is not None]
        if not back:
            return set()
        self._absent.difference_update(back)
        found = {node_id for node_id in self._open if node_id in nodes}
        if not self._absent:
            self._open = set()
        return found

    def _forget_removed(self) -> None:
        nodes = self._membership.nodes
        for remembered in (self._known, self._later_ms):
            for node_id in [node_id for node_id in remembered if node_id not in nodes]:
                del remembered[node_id]

    def next_due_ms(self) -> i64:
        """When to go on."""
        return self._next_ms

    def forget_all(self) -> None:
        """All jobs are gone."""
        self.missing.clear()
        self._absent.clear()
        self._open.clear()
        self._end()

    def _end(self) -> None:
        self.asked.clear()
        self._looking.end()
        self._walking = False
        self._next_ms = NEVER_MS

    # -- asking ------------------------------------------------------------------------------

    def run_due(self, budget: i64) -> i64:
        """Go on: ask about the next jobs, and send again what is missing, ``budget`` jobs at most;
        returns how many were sent."""
        self._next_ms = self._turn.now_ms + _PAUSE_MS
        sent = self._send_missing(budget)
        if self._walking:
            self._leave_out_silent()
            if self._looking.under_way:
                self._walk()
        if not self._looking.under_way and not self.missing and not self._has_unanswered():
            self._settle()
            self._end()
        if not self._walking and self.missing:
            self._next_ms = self._turn.now_ms + _PAUSE_MS
        return sent

    def _settle(self) -> None:
        again_ms = self._turn.now_ms + _SILENT_MS
        for node_id, asked in self.asked.items():
            if asked.started and self._unsettled:
                self._later_ms[node_id] = int(again_ms)
            elif asked.started:
                self._known[node_id] = int(asked.number)
        if self._unsettled:
            self._unsettled = False
            self._gone = set()
            self._again_ms = again_ms

    def _has_unanswered(self) -> bool:
        return any(asked.unanswered > 0 for asked in self.asked.values())

    def _leave_out_silent(self) -> None:
        """Ask no further those whose connection is another, or who answer nothing."""
        now_ms = self._turn.now_ms
        for node_id, asked in list(self.asked.items()):
            if asked.node.link is not asked.link:
                del self.asked[node_id]  # it is asked anew
            elif asked.unanswered and now_ms - asked.answered_ms > _SILENT_MS:
                del self.asked[node_id]
                self._later_ms[node_id] = int(now_ms + _SILENT_MS)
            else:
                continue
            if not asked.started:
                self._unsettled = True

    def _walk(self) -> None:
        """Ask about the next jobs, unless too many answers or copies are missing."""
        looked_at: i64 = 0
        while looked_at < _LOOKED_AT and len(self.missing) < _MISSING_MAX:
            if any(asked.unanswered >= _UNANSWERED_MAX for asked in self.asked.values()):
                break
            looked_at += _AT_ONCE
            for job in self._looking.part(_AT_ONCE):
                if may_be_copied(job):
                    self._ask_about(job)
            if not self._looking.under_way:
                break
        for asked in self.asked.values():
            self._flush(asked)

    def _ask_about(self, job: Job) -> None:
        doubtful = i64(len(job.nodes)) > i64(job.repl) and self._is_doubted(job)
        for node_id in job.nodes:
            asked = self.asked.get(node_id)
            if asked is None and doubtful:
                asked = self._ask_too(node_id)
            if asked is not None and (asked.started or doubtful):
                asked.entries.append(HandoverEntry(job.id, KEEP))
                if len(asked.entries) == BATCH_MAX:
                    self._flush(asked)

    def _is_doubted(self, job: Job) -> bool:
        return any(node_id in self._doubted for node_id in job.nodes)

    def _ask_too(self, node_id: bytes) -> _Asked | None:
        """Another node of a list in doubt, if it can be asked."""
        node = self._membership.nodes.get(node_id)
        if node is None or node.flags & (LEAVING | MYSELF):
            return None
        link = node.link
        if link is None:
            if node.flags & (PFAIL | FAIL):
                self._absent.add(node_id)
                self._open |= self._doubted
            elif not node.flags & (NOADDR | HANDSHAKE):
                self._unsettled = True  # it is about to have one
            return None
        if not link.features & CAN_HAND_OVER:
            return None
        asked = self.asked[node_id] = _Asked(node, link, False)
        return asked

    def _flush(self, asked: _Asked) -> None:
        if asked.entries:
            if asked.unanswered == 0:
                asked.answered_ms = self._turn.now_ms
            asked.unanswered += 1
            self._peers.send(asked.node.id, HandoverMessage(RESTARTED, asked.entries))
            asked.entries = []

    # -- answers -----------------------------------------------------------------------------

    def answered(self, sender: NodeEntry, message: HandoverMessage) -> None:
        """HANDOVER with ANSWER: which of the jobs the sender has."""
        asked = self.asked.get(sender.id)
        if asked is None or asked.unanswered == 0:
            return
        asked.unanswered -= 1
        asked.answered_ms = self._turn.now_ms
        for entry in message.entries:
            if entry.what != NOT_HELD:
                continue
            job = self._jobs.get(entry.job_id)
            if job is None or not may_be_copied(job):
                continue
            if not message.mflags & FULL:
                self.missing.append((sender, job.id))
            elif job.id not in self._repairs.by_job:
                self._arrivals.remove_holder(job, sender.id)
                self._jobs.record(job)
                self.dropped = True

    def _send_missing(self, budget: i64) -> i64:
        sent: i64 = 0
        for _ in range(len(self.missing)):
            if sent >= budget:
                break
            node, job_id = self.missing.popleft()
            job = self._jobs.get(job_id)
            if job is None or not may_be_copied(job) or node.id not in job.nodes:
                continue
            if job.expire_ms - self._turn.now_ms < _NEARLY_OVER_MS:
                continue  # its life may be over there, which on the bus has whole seconds
            repair = self._repairs.by_job.get(job_id)
            if repair is not None:
                if node.id not in repair.asked:
                    self.missing.append((node, job_id))  # another copy of it is under way
                continue
            if self._membership.nodes.get(node.id) is not node or node.link is None:
                continue  # it is asked anew when it is back
            self._repairs.restore(job, node)
            sent += 1
            budget -= shares(job) - 1
        return sent

"""Whether jobs with keys exist: the question that nodes ask each other, and its answer.

1. All nodes of ours that can be reached are asked (KEY CHECK), this node first. They answer which
   of the jobs they hold, are making, or know to be done.
2. That a job is done counts more than that some node holds it: a holder that was away does not know
   it yet. Apart from that, the node that made the job knows best; of the others it is enough if one
   holds it.
3. If a job was only reserved, as far as the asker knows, then a copy of it stands for nothing while
   the node that makes it can be reached. Otherwise whoever holds the copy keeps it.
4. The answer is complete if every member of the cluster was asked and has answered in time. With a
   member that cannot be asked (an original, or a node that is away) a job may exist there.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.core.base.schedule import Schedule
from disque_tx.core.jobs.job import made_by
from disque_tx.core.keys.done import DoneJobs
from disque_tx.core.keys.reservation import left
from disque_tx.core.state.state import State
from disque_tx.messages.bustypes import KEY_CHECK, KEY_COPY
from disque_tx.messages.keys import (
    ANSWER,
    DONE,
    ENDED,
    ENTRIES_MAX,
    FREE,
    HELD,
    RESERVED,
    KeyMessage,
)
from disque_tx.messages.records import ACKED, WAIT_REPL, KeyEntry, Linked

_ANSWER_MS: Final = 1_000


@mypyc_attr(allow_interpreted_subclasses=True)
class ExistenceAsker:
    """Who wants to know."""

    def answered(self, question: ExistenceQuestion) -> None:
        """The nodes have answered, or their time is over."""
        raise NotImplementedError


class ExistenceQuestion(Linked):
    """A question in progress, whether jobs exist. ``entries``: the jobs, with their keys.
    ``waiting``: who has not answered; ``complete``: all members were asked, and those that answered
    did so in time."""

    __slots__ = ("_done", "_makers", "_states", "asker", "complete", "entries", "number", "waiting")

    def __init__(
        self, asker: ExistenceAsker, number: i64, entries: list[KeyEntry], complete: bool
    ) -> None:
        super().__init__()
        self.asker: ExistenceAsker = asker
        self.number: i64 = number
        self.entries: list[KeyEntry] = entries
        self.complete: bool = complete
        self.waiting: set[bytes] = set()
        # What was answered, by job ID.
        self._states: dict[bytes, int] = {}
        self._done: set[bytes] = set()
        # Jobs about which the node that made them has answered.
        self._makers: set[bytes] = set()

    def record(self, node_id: bytes, job_id: bytes, state: i64) -> None:
        """A node knows this of a job: ``HELD``, ``RESERVED``, ``ENDED``, or ``FREE`` if the job is
        done for certain."""
        if state == FREE:
            self._done.add(job_id)
        elif state == ENDED:
            self._states.setdefault(job_id, int(state))
        elif made_by(node_id, job_id):
            self._makers.add(job_id)
            self._states[job_id] = int(state)
        elif job_id not in self._makers and self._states.get(job_id) != HELD:
            self._states[job_id] = int(state)

    def done(self, job_id: bytes) -> bool:
        """Whether some node knows that the job is done."""
        return job_id in self._done

    def state(self, job_id: bytes) -> i64:
        """``HELD``, ``RESERVED``, ``ENDED`` (done, its key is kept), or ``FREE``: no node that
        answered knows it."""
        if job_id in self._done:
            return ENDED
        return self._states.get(job_id, FREE)

    def lives(self, job_id: bytes) -> bool:
        """Whether a node holds the job, and none knows that it is done."""
        return self.state(job_id) == HELD


class Existence:
    """Asks, and answers. ``claimed``: IDs of jobs that this node is about to make. ``done_jobs``:
    jobs that are done for certain."""

    def __init__(self, state: State) -> None:
        self.claimed: set[bytes] = set()
        self.done_jobs: DoneJobs = state.done_jobs
        self._turn = state.turn
        self._membership = state.membership
        self._peers = state.peers
        self._jobs = state.jobs
        self._reservations = state.reservations
        self._view = state.key_view
        self._open: dict[int, ExistenceQuestion] = {}
        self._timeouts: Schedule[ExistenceQuestion] = Schedule()
        self._last: i64 = 0

    # -- what this node knows ----------------------------------------------------------------

    def verdict(self, job_id: bytes) -> i64:
        """Whether the job exists here (``HELD``), is being made (``RESERVED``), or is not known or
        done (``FREE``)."""
        job = self._jobs.get(job_id)
        if job is None:
            return RESERVED if job_id in self.claimed else FREE
        if job.state == ACKED:
            return FREE
        return RESERVED if job.state == WAIT_REPL else HELD

    def _told(self, entry: KeyEntry) -> i64:
        """The verdict for a node that asks. A copy does not show that a job was made if the node
        that makes it can be reached: it may be about to withdraw the job. If it cannot be reached,
        the copy stays from now on, whatever was withdrawn."""
        state = self.verdict(entry.job_id)
        job = self._jobs.get(entry.job_id)
        if state == HELD and entry.state == RESERVED and job is not None:
            if made_by(self._membership.myself.id, job.id):
                return HELD
            if self._view.has_maker(job.id):
                return RESERVED
            job.promised = True
        return state

    def done(self, job_id: bytes) -> bool:
        """Whether this node knows that the job is done."""
        if self.done_jobs.has(job_id):
            return True
        job = self._jobs.get(job_id)
        return job is not None and job.state == ACKED

    def correct(self, sender: bytes, entry: KeyEntry) -> None:
        """Another node does not know yet that the job of the entry is done: it gets to know."""
        known = KeyEntry(entry.key, entry.job_id, FREE, 0, 0, entry.born_ms)
        found = self._reservations.of_job(entry.job_id)
        if found is not None and found.state == ENDED:
            known = left(found, self._turn.now_ms)
        self._peers.send(sender, KeyMessage(KEY_COPY, 0, DONE, [known]))

    # -- asking ------------------------------------------------------------------------------

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for never."""
        return self._timeouts.next_ms()

    def run_due(self, limit: i64) -> None:
        """Wait no longer for answers that are late."""
        now_ms = self._turn.now_ms
        for question in self._timeouts.due(now_ms, limit):
            del self._open[int(question.number)]
            question.complete = False
            question.asker.answered(question)

    def ask(self, asker: ExistenceAsker, entries: list[KeyEntry]) -> None:
        """Find out whether the jobs exist, up to ``ENTRIES_MAX``."""
        assert len(entries) <= ENTRIES_MAX
        self._last += 1
        question = ExistenceQuestion(asker, self._last, entries, not self._view.missing())
        mine = self._membership.myself.id
        for entry in entries:
            if self.done(entry.job_id):
                question.record(mine, entry.job_id, FREE)
            state = self._told(entry)
            if state != FREE:
                question.record(mine, entry.job_id, state)
        others = self._view.others()
        if not others:
            asker.answered(question)
            return
        for node_id in others:
            question.waiting.add(node_id)
            self._peers.send(node_id, KeyMessage(KEY_CHECK, question.number, 0, entries))
        self._open[int(question.number)] = question
        self._timeouts.add(question, self._turn.now_ms + _ANSWER_MS)

    def receive(self, sender: bytes, message: KeyMessage) -> None:
        """KEY CHECK: a question or an answer."""
        if not message.status & ANSWER:
            self._answer(sender, message)
            return
        question = self._open.get(int(message.number))
        if question is None or sender not in question.waiting:
            return
        question.waiting.remove(sender)
        asked = {entry.job_id for entry in question.entries}
        for entry in message.entries:
            if entry.job_id in asked:
                question.record(sender, entry.job_id, entry.state)
        if not question.waiting:
            self._timeouts.remove(question)
            del self._open[int(question.number)]
            question.asker.answered(question)

    def _answer(self, sender: bytes, message: KeyMessage) -> None:
        entries: list[KeyEntry] = []
        for entry in message.entries:
            job_id = entry.job_id
            state = self._told(entry)
            if self.done(job_id):
                entries.append(KeyEntry(b"", job_id, FREE, 0, 0, 0))
            elif state != FREE:
                entries.append(KeyEntry(b"", job_id, state, 0, 0, 0))
            elif self._reservations.ended(entry.key, job_id):
                entries.append(KeyEntry(b"", job_id, ENDED, 0, 0, 0))
        self._peers.send(sender, KeyMessage(KEY_CHECK, message.number, ANSWER, entries))

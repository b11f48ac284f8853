"""Makes the occurrences of schedules when they are due (client protocol, section 30).

1. All occurrences of a schedule are made by one node, in order: of those that can be reached the
   one that ranks first with the name of the schedule. When it fails, the next one goes on behind
   the last occurrence that it knows of.
2. Every node knows the last one made: it is a register of the shared table, sent as soon as the job
   has its copies, in the same turn.
3. A node that has just started waits for a moment before it makes any, until it has the table.
4. Times before that register are done with. So a wall clock that is set back repeats nothing.
5. What no node made within :data:`LATE_S` of its time was missed: it is skipped, or made once for
   all of them, or made one by one, as the schedule says.
6. What cannot be added is tried again every second until it is missed.
7. A node whose clock is apart from most others (see ``clocks``) makes none; the next one does.
8. A last occurrence that lies in the future comes from a clock that was wrong. If another node
   confirms that, the next one is the first after now; a node by itself waits, for its own clock may
   have been set back.
9. Occurrences that clients want left out are done with on every node when they are due, as far as
   that node has been told so by then.

No turn makes more than :data:`PER_TURN` of them.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.adding import Adding
from disque_tx.core.base.part import Part
from disque_tx.core.jobs.job import Job
from disque_tx.core.keys.owners import ranking
from disque_tx.core.nodes.clocks import APART_MS
from disque_tx.core.queues.copieswait import CopiesWatcher
from disque_tx.core.recurring.occurrences import Occurrences, occurrence_key
from disque_tx.core.state.state import State
from disque_tx.core.tables.calendar import NEVER, Calendar
from disque_tx.core.tables.definition import ALL, ONE, Definition
from disque_tx.errors import CommandError
from disque_tx.messages import events
from disque_tx.messages.bustypes import CAN_SETTLE, CAN_TABLES
from disque_tx.messages.records import WAIT_REPL

#: Schedules looked at in one turn.
PER_TURN: Final = 100
#: How late an occurrence may be made; later it was missed.
LATE_S: Final = 60
#: Occurrences that a schedule with MISSED all makes up for at a stretch.
MADE_UP_MAX: Final = 1_000
#: How long a node that has just started waits for the tables of the others.
SETTLE_MS: Final = 3_000
#: How long until a schedule is looked at again that another node should make, or that failed.
_AGAIN_S: Final = 1
_AHEAD: Final = (
    "The last occurrence lies in the future by the clock of this node, which no other node confirms"
)


class ActiveSchedule:
    """One schedule in force. ``done_s``: up to which time its occurrences are done with.
    ``next_s``: its next one, 0 while that is not worked out. ``pending``: the ID of the job that
    waits for its copies, or empty. ``made_up``: how many missed ones were made at a stretch.
    ``error``: why the last attempt failed."""

    __slots__ = ("definition", "done_s", "error", "look_s", "made_up", "name", "next_s", "pending")

    def __init__(self, name: bytes, definition: Definition, done_s: i64) -> None:
        self.name: bytes = name
        self.definition: Definition = definition
        self.done_s: i64 = done_s
        self.next_s: i64 = 0
        self.look_s: i64 = NEVER
        self.pending: bytes = b""
        self.made_up: i64 = 0
        self.error: str = ""


class Recurring(Part, CopiesWatcher):
    """``calendar``: what reads cron expressions. ``made``, ``missed``: occurrences, counted by this
    node; a gap that is skipped is one. ``failed``: attempts. ``exchange``: sends changes."""

    def __init__(self, state: State, adding: Adding) -> None:
        self._turn = state.turn
        self.calendar: Calendar = Calendar()
        self._clocks = state.clocks
        self.made: i64 = 0
        self.missed: i64 = 0
        self.failed: i64 = 0
        self._table = state.timetable
        self.exchange = state.exchanges.schedules
        self._membership = state.membership
        self._waiters = state.waiters
        self._jobs = state.jobs
        self._outbox = state.outbox
        self._occurrences = Occurrences(adding)
        self._active: dict[bytes, ActiveSchedule] = {}
        # When to look at which schedule; entries that are out of date are skipped.
        self._heap: list[tuple[int, bytes]] = []
        self._pending: dict[bytes, ActiveSchedule] = {}
        self._ready_ms: i64 = NEVER
        # The time of day of the last run, to notice a clock that is set back.
        self._ran_s: i64 = 0

    def begin(self) -> None:
        """The node has loaded its files and its log."""
        alone = self._membership.size == 1
        self._ready_ms = self._turn.now_ms + (0 if alone else SETTLE_MS)

    def find(self, name: bytes) -> ActiveSchedule | None:
        """What this node knows of a schedule that it has taken up."""
        return self._active.get(name)

    def maker(self, name: bytes) -> bytes:
        """The ID of the node that makes the occurrences of a schedule now."""
        membership, clocks = self._membership, self._clocks
        able = [] if membership.leaving or clocks.ahead_ms else [membership.myself.id]
        for entry in membership.reachable:
            link = entry.link
            if link is not None and link.features & CAN_TABLES and entry.id not in clocks.apart:
                able.append(entry.id)
        return ranking(b"cron:" + name, able)[0] if able else b""

    def check_skip(self) -> None:
        """``CommandError`` if a node that may be the next maker makes what is to be left out. There
        is no release that knows ``CAN_SETTLE`` and does not know that."""
        for entry in self._membership.reachable:
            link = entry.link
            if link is not None and link.features & CAN_TABLES and not link.features & CAN_SETTLE:
                raise CommandError("ERR", "A node of an earlier version would not leave it out")

    def position_s(self, name: bytes) -> i64:
        """Behind which time the next occurrence of a schedule lies."""
        wall_s = self._time_s()
        done_s = self._table.position_s(name)
        wrong = done_s * 1_000 > wall_s * 1_000 + APART_MS and self._clocks.confirmed
        return wall_s if wrong else max(done_s, wall_s)

    # -- time --------------------------------------------------------------------------------

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for never."""
        now_ms = self._turn.now_ms
        wall_us = self._turn.wall_us
        if self._ready_ms < 0:
            return NEVER
        if self._table.changed:
            return now_ms + 1
        if not self._heap:
            return NEVER
        due_us = i64(self._heap[0][0]) * 1_000_000
        if due_us <= wall_us:
            return max(now_ms + 1, self._ready_ms)
        return max(now_ms + (due_us - wall_us + 999) // 1000, self._ready_ms)

    def run_due(self) -> None:
        """Make what is due, a bounded part of it."""
        now_ms = self._turn.now_ms
        if self._ready_ms < 0 or not (self._table.changed or self._heap):
            return
        if self._turn.wall_us // 1000 + APART_MS < self._ran_s * 1000:
            self._set_back()
        self._ran_s = self._time_s()
        self._clocks.update(now_ms)
        self._apply_changes()
        if now_ms < self._ready_ms:
            return
        for _ in range(PER_TURN):
            if not self._heap or self._heap[0][0] > self._time_s():
                break
            look_s, name = heappop(self._heap)
            active = self._active.get(name)
            if active is not None and active.look_s == look_s and self._is_in_force(active):
                active.look_s = NEVER
                self._check(active)

    def _time_s(self) -> i64:
        return self._turn.wall_us // 1_000_000

    def _set_back(self) -> None:
        """The clock was set back: what was planned by it is looked at again."""
        for active in self._active.values():
            if not active.pending:
                self._check_at(active, self._time_s())

    def _apply_changes(self) -> None:
        """See what has become of schedules that changed, a bounded number of them."""
        table = self._table
        for _ in range(min(len(table.changed), 10 * PER_TURN)):
            name, _nothing = table.changed.popitem(last=False)
            definition = table.definitions.get(name)
            active = self._active.get(name)
            if definition is None or definition.paused:
                if active is not None:
                    self._drop(active)
                continue
            done_s = table.position_s(name)
            if active is None or active.definition is not definition:
                if active is not None:
                    self._drop(active)
                active = ActiveSchedule(name, definition, done_s)
                self._active[name] = active
                self._check_at(active, self._time_s())
            elif done_s > active.done_s or self._is_ahead(active.done_s):
                # Another node has added this occurrence; drop ours.
                self._give_up(active)
                self._done(active, done_s)

    def _is_in_force(self, active: ActiveSchedule) -> bool:
        """Whether it was not deleted or replaced, which may still be to be taken up."""
        return self._table.definitions.get(active.name) is active.definition

    def _drop(self, active: ActiveSchedule) -> None:
        """The schedule is gone, or is another one now. A job that is under way is made still."""
        self._pending.pop(active.pending, None)
        self._waiters.watched.pop(active.pending, None)
        del self._active[active.name]

    def _give_up(self, active: ActiveSchedule) -> None:
        """Forget the job that waits for its copies: another node has made the same one. Copies of
        it are the other's, too, so none is deleted."""
        job_id = active.pending
        if not job_id:
            return
        active.pending = b""
        self._pending.pop(job_id, None)
        self._waiters.watched.pop(job_id, None)
        job = self._jobs.get(job_id)
        if job is not None and job.state == WAIT_REPL:
            self._waiters.copies.pop(job_id, None)
            self._jobs.discard(job)

    def _check_at(self, active: ActiveSchedule, time_s: i64) -> None:
        """Look at it then, and not before."""
        active.look_s = time_s
        heappush(self._heap, (int(time_s), active.name))

    def _done(self, active: ActiveSchedule, time_s: i64) -> None:
        """Record that the occurrences up to this time have been handled."""
        active.done_s = time_s
        active.next_s = 0
        self._check_at(active, self._time_s())

    # -- occurrences -------------------------------------------------------------------------

    def _check(self, active: ActiveSchedule) -> None:
        if active.pending:
            return
        ahead = self._is_ahead(active.done_s)
        if active.next_s == 0:
            recurrence = active.definition.recurrence
            behind_s = self._time_s() if ahead and self._clocks.confirmed else active.done_s
            active.next_s = recurrence.after(self.calendar, behind_s)
        if active.next_s == NEVER:
            return
        if ahead and active.next_s > active.done_s:
            active.error = _AHEAD
            active.next_s = 0
            self._check_at(active, self._time_s() + _AGAIN_S)
        elif active.next_s > self._time_s():
            self._check_at(active, active.next_s)
        elif active.next_s <= self._table.skipped_s(active.name):
            self._done(active, active.next_s)
        elif self.maker(active.name) != self._membership.myself.id:
            self._check_at(active, self._time_s() + _AGAIN_S)
        elif active.next_s >= self._time_s() - LATE_S:
            active.made_up = 0
            self._make(active)
        else:
            self._late(active)

    def _is_ahead(self, time_s: i64) -> bool:
        """Whether a time lies so far in the future that it is from a clock which was wrong."""
        return time_s * 1_000 > self._time_s() * 1_000 + APART_MS

    def _late(self, active: ActiveSchedule) -> None:
        """Handle a schedule whose next occurrence, and perhaps others, were missed."""
        missed = active.definition.missed
        if missed == ALL and active.made_up < MADE_UP_MAX:
            active.made_up += 1
            self._make(active)
            return
        end_s = self._time_s() - LATE_S
        if missed == ONE and active.made_up == 0:
            last_s = active.definition.recurrence.before(self.calendar, end_s)
            active.next_s = max(active.next_s, last_s)
            active.made_up = 1
            self._make(active)
            return
        self.missed += 1
        self._done(active, max(active.done_s, end_s - 1))

    def _make(self, active: ActiveSchedule) -> None:
        definition = active.definition
        key = occurrence_key(active.name, active.next_s)
        request = definition.new_request()
        try:
            job = self._occurrences.add(request, key, definition.node)
        except CommandError as error:
            self._failed(active, f"{error.code} {error.text}")
            return
        if job.state == WAIT_REPL and not request.asynchronous:
            active.pending = job.id
            self._pending[job.id] = active
            self._waiters.watched[job.id] = self
        else:
            self._made(active, job)

    def _failed(self, active: ActiveSchedule, error: str) -> None:
        self.failed += 1
        active.error = error
        active.made_up -= active.made_up > 0
        self._check_at(active, self._time_s() + _AGAIN_S)

    def _made(self, active: ActiveSchedule, job: Job | None) -> None:
        """The job of its next occurrence is there: tell all nodes so."""
        self.made += 1
        active.error = ""
        time_s = active.next_s
        if job is not None:
            self._outbox.record_event_text(
                events.SCHEDULED, job, events.NO_REASON, time_s, active.name
            )
        mine = self._membership.myself.id
        self.exchange.announce(self._table.made(active.name, time_s, mine, self._time_s()))
        self._table.changed.pop(active.name, None)
        self._done(active, time_s)

    def copies_settled(self, job_id: bytes, made: bool) -> None:
        """Go on with a job that has its copies by now, or will not have them."""
        active = self._pending.pop(job_id, None)
        if active is None:
            return
        active.pending = b""
        if not self._is_in_force(active):
            return
        if made:
            self._made(active, self._jobs.get(job_id))
        else:
            self._failed(active, "NOREPL The copies could not be made")

    def needs_copies(self) -> bool:
        return False

    def forget_all(self) -> None:
        """All jobs are gone; what was under way is made anew."""
        for active in list(self._pending.values()):
            active.pending = b""
            self._check_at(active, self._time_s() + _AGAIN_S)
        self._pending.clear()

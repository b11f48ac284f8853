"""Adding a job once: its key is reserved first, then the job is made.

1. The keepers of the key are asked, at once. All of them must grant it; nodes whose views differ by
   one node have a keeper in common.
2. If a job has the key, the answer is its ID. If one is being made with it, the keeper that ranks
   first decides, in an order that is the same for all nodes: who has its grant goes on to ask the
   other one; who has not gives all back, and asks again a moment later, or, if the job is made
   here, when that is done.
3. Once the key is granted the job is made, and the request is checked like any other. If that fails
   the key is given back; if it succeeds, the keepers get to know in the same turn as the client.
4. A client whose time is over, or that is gone, withdraws the job, and the key is given back; but
   not if others have queued the job meanwhile, since somebody may have it.
5. A keeper that does not answer is asked again, until it does or is not reachable any more; then
   another one is keeper in its place.
6. A node on its own needs no messages: it looks for the key, and adds the job.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, u8

from disque_tx.core.adding.adding import Adding
from disque_tx.core.base.client import Client
from disque_tx.core.base.schedule import Schedule, earlier
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.addrequest import AddRequest, Unique
from disque_tx.core.jobs.job import Job
from disque_tx.core.keys.keepermap import KeeperMap
from disque_tx.core.keys.reservation import Reservations
from disque_tx.core.queues.copieswait import CopiesWatcher
from disque_tx.core.queues.waiters import NO_TIMEOUT_MS
from disque_tx.core.state.state import State
from disque_tx.core.unique.claim import Claim, KeyReceiver, NoReceiver, timeout
from disque_tx.core.unique.keeper import Keeper
from disque_tx.core.unique.questions import KeyQuestions
from disque_tx.errors import CommandError
from disque_tx.messages.keys import BUSY, FREE, GRANTED, HELD, RESERVED, TAKEN, KeyMessage
from disque_tx.messages.records import WAIT_REPL

#: A key that is reserved for another job is tried again after this time, and up to as much more.
_BUSY_MS: Final = 40
#: How often a keeper that has reserved the key for a job that will not get it is asked again at
#: once, and after what time then.
_AT_ONCE: Final = 3
_SOON_MS: Final = 20
_NOT_MADE: Final = "job removed before the requested replication level was achieved"
_NO_MEMORY: Final = "a node that looks after the key is out of memory"


class Claims(CopiesWatcher):
    """ADDJOB UNIQUE requests of this node that have no answer yet."""

    def __init__(self, state: State, delivery: Delivery, adding: Adding, keeper: Keeper) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._membership = state.membership
        self._totals = state.totals
        self._waiters = state.waiters
        self._random: Callable[[], float] = state.random
        self._delivery = delivery
        self._adding = adding
        self._keeper = keeper
        self._existence = keeper.existence
        self._reservations: Reservations = state.reservations
        self._view: KeeperMap = state.key_view
        self._by_job: dict[bytes, Claim] = {}
        self._timers: Schedule[Claim] = Schedule()
        self._questions = KeyQuestions(state.turn, state.peers)

    # -- beginning ---------------------------------------------------------------------------

    def begin(
        self, receiver: KeyReceiver, request: AddRequest, unique: Unique, timeout_ms: i64
    ) -> Claim | None:
        """Add a job once; the claim, if it is not done at once. ``timeout_ms``: after what time it
        is given up, 0 for never."""
        self._view.refresh()
        claim = Claim(receiver, request, unique)
        claim.born_ms = self._turn.wall_us // 1000
        if 0 < timeout_ms < NO_TIMEOUT_MS:
            claim.deadline_ms = self._turn.now_ms + timeout_ms
        if self._view.alone() and self._view.ready():
            found = self._reservations.get(unique.key)
            if found is None:
                return self._add_alone(claim)
            if found.state != RESERVED:
                self._taken(claim, found.job_id)
                return None
        claim.job_id = self._adding.draw_id(request)
        unique.job_id = claim.job_id
        self._existence.claimed.add(claim.job_id)
        self._by_job[claim.job_id] = claim
        self._go_on(claim)
        return claim if self._by_job.get(claim.job_id) is claim else None

    def _add_alone(self, claim: Claim) -> Claim | None:
        """Add the job at once, as no other node has to be asked about its key."""
        now_ms = self._turn.now_ms
        request = claim.request
        try:
            job = self._adding.add_for(claim.receiver.client_id(), request)
        except CommandError as error:
            claim.receiver.refused(error)
            return None
        claim.job_id = job.id
        if job.state == WAIT_REPL:
            self._existence.claimed.add(claim.job_id)
            self._by_job[claim.job_id] = claim
            self._reservations.new(claim.entry(RESERVED), now_ms)
            self._wait(claim)
            return claim
        self._reservations.new(claim.entry(HELD), now_ms)
        claim.receiver.added(claim.job_id, True)
        return None

    # -- reserving ---------------------------------------------------------------------------

    def _go_on(self, claim: Claim) -> None:
        """Ask the next keeper, or make the job."""
        self._timers.remove(claim)
        if claim.making:
            return
        view = self._view
        view.refresh()
        if not view.ready():
            self._later(claim, self._busy_ms())
            return
        status, job_id = self._keeper.known_here(claim.unique.key, claim.job_id)
        if status != GRANTED:
            self._answered(claim, status, job_id)
            return
        mine = self._membership.myself.id
        waits = False
        for node_id in view.keepers(claim.unique.key):
            if node_id in claim.granted:
                continue
            if node_id != mine:
                self._questions.ask(claim, node_id)
                waits = True
            elif not waits:
                status, job_id = self._keeper.reserve(claim.entry(RESERVED))
                if status != GRANTED:
                    self._refused(claim, mine, status, job_id)
                    return
                claim.granted.append(mine)
        if not waits:
            self._make(claim)
        elif claim.deadline_ms:
            self._timers.add(claim, claim.deadline_ms)

    def send(self) -> None:
        """The turn ends: ask other nodes for the keys that are wanted."""
        self._questions.send()

    def _later(self, claim: Claim, pause_ms: i64) -> None:
        self._timers.remove(claim)
        self._timers.add(claim, claim.sooner(self._turn.now_ms + pause_ms))

    def _busy_ms(self) -> i64:
        return _BUSY_MS + int(self._random() * _BUSY_MS)

    def answer(self, sender: bytes, message: KeyMessage) -> None:
        """KEY ANSWER."""
        for claim, status, job_id in self._questions.answered(sender, message):
            if claim.making:
                continue  # others are the keepers by now
            if status == GRANTED:
                claim.granted.append(sender)
                self._go_on(claim)
            else:
                self._refused(claim, sender, status, job_id)

    def _refused(self, claim: Claim, keeper: bytes, status: i64, job_id: bytes) -> None:
        """A keeper does not grant the key."""
        if status != BUSY or keeper == self._view.keepers(claim.unique.key)[0]:
            self._answered(claim, status, job_id)
        elif not claim.questions:
            # The job for which it is reserved there will not get it, unless that is made already.
            if claim.repeats < _AT_ONCE and keeper != self._membership.myself.id:
                claim.repeats += 1
                self._go_on(claim)
            else:
                self._behind(claim, job_id)
                self._later(claim, _SOON_MS)

    def _behind(self, claim: Claim, job_id: bytes) -> None:
        if job_id in self._by_job:
            self._by_job[job_id].behind.append(claim)

    def _answered(self, claim: Claim, status: i64, job_id: bytes) -> None:
        """The key is not to be had now."""
        if status == TAKEN and job_id:
            self._finish(claim)
            self._give_back(claim)
            self._taken(claim, job_id)
        elif status == BUSY:
            self._give_back(claim)
            self._behind(claim, job_id)
            self._later(claim, self._busy_ms())
        else:
            self._fail(claim, CommandError("OOM", _NO_MEMORY))

    def _taken(self, claim: Claim, job_id: bytes) -> None:
        self._totals.keys_refused += 1
        claim.receiver.added(job_id, False)

    def _give_back(self, claim: Claim) -> None:
        """The key is not needed for this job."""
        found = self._reservations.get(claim.unique.key)
        if found is not None and found.job_id == claim.job_id:
            self._reservations.drop(found)
        nodes = claim.granted + self._questions.withdraw(claim)
        mine = self._membership.myself.id
        entry = claim.entry(FREE)
        for node_id in nodes:
            if node_id != mine:
                self._keeper.copies.add(node_id, 0, entry)
        claim.granted = []

    # -- making the job ----------------------------------------------------------------------

    def _make(self, claim: Claim) -> None:
        found = self._reservations.get(claim.unique.key)
        if found is None or found.job_id != claim.job_id:
            if found is not None:
                self._reservations.drop(found)  # of a time when this node was keeper
            self._reservations.new(claim.entry(RESERVED), self._turn.now_ms)
        client_id = claim.receiver.client_id()
        try:
            job = self._adding.add_for(client_id, claim.request)
        except CommandError as error:
            self._fail(claim, error)
            return
        if job.state == WAIT_REPL:
            self._wait(claim)
        else:
            self._made(claim)

    def _wait(self, claim: Claim) -> None:
        claim.making = True
        self._waiters.watched[claim.job_id] = self
        if claim.deadline_ms:
            self._timers.add(claim, claim.deadline_ms)

    def copies_settled(self, job_id: bytes, made: bool) -> None:
        """A job has its copies by now, or will not have them."""
        claim = self._by_job.get(job_id)
        if claim is None:
            return
        if made:
            self._made(claim)
        else:
            self._fail(claim, CommandError("NOREPL", _NOT_MADE))

    def _made(self, claim: Claim) -> None:
        self._finish(claim)
        self._questions.withdraw(claim)
        found = self._reservations.get(claim.unique.key)
        if found is not None and found.job_id == claim.job_id:
            found.state = u8(HELD)
            self._reservations.check_at(found, 0)
            self._reservations.changed(found)
            self._keeper.job_made(found, claim.granted)
        claim.receiver.added(claim.job_id, True)

    # -- the end -----------------------------------------------------------------------------

    def _finish(self, claim: Claim) -> None:
        """The claim is not under way any more."""
        self._timers.remove(claim)
        self._by_job.pop(claim.job_id, None)
        self._existence.claimed.discard(claim.job_id)
        for other in claim.behind:
            self._again(other)

    def _again(self, claim: Claim) -> None:
        """Ask the keepers again by the end of the turn, unless the claim is further by now."""
        if self._by_job.get(claim.job_id) is claim and not claim.questions and not claim.making:
            self._timers.remove(claim)
            self._timers.add(claim, self._turn.now_ms)

    def _fail(self, claim: Claim, error: CommandError) -> None:
        self._finish(claim)
        self._give_back(claim)
        claim.receiver.refused(error)

    def gone(self, client: Client) -> None:
        """A blocked client is gone: its jobs are not made."""
        for claim in self._of(client):
            claim.receiver = NoReceiver()
            self._withdraw(claim)

    def give_up(self, client: Client, error: CommandError) -> None:
        """Refuse what a blocked client waits for."""
        for claim in self._of(client):
            self._refuse(claim, error)

    def _of(self, client: Client) -> list[Claim]:
        return [self._by_job[job] for job in client.awaited_jobs() if job in self._by_job]

    def _refuse(self, claim: Claim, error: CommandError) -> None:
        receiver = claim.receiver
        if self._withdraw(claim):
            receiver.refused(error)

    def _withdraw(self, claim: Claim) -> bool:
        """Give the claim up; ``False`` if its job has just been made, which is about to settle."""
        job: Job | None = self._jobs.get(claim.job_id) if claim.making else None
        if job is not None and job.state != WAIT_REPL:
            return False
        self._waiters.watched.pop(claim.job_id, None)
        if job is not None and job.deliveries > 0:
            self._leave(claim)
            return True
        self._finish(claim)
        if job is not None:
            self._delivery.take_back(job, timeout())
        self._give_back(claim)
        return True

    def _leave(self, claim: Claim) -> None:
        """Others have queued the job, and somebody may have it: it stays, and has the key at the
        end of this turn."""
        claim.receiver = NoReceiver()
        self._waiters.settled.append((self, claim.job_id, True))

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for never."""
        return earlier(self._timers.next_ms(), self._questions.next_due_ms())

    def run_due(self, limit: i64) -> None:
        """Ask again, or give up."""
        now_ms = self._turn.now_ms
        for claim in self._questions.unanswered(limit):
            if self._by_job.get(claim.job_id) is claim:
                self._go_on(claim)
        for claim in self._timers.due(now_ms, limit):
            if 0 < claim.deadline_ms <= now_ms:
                self._refuse(claim, timeout())
            else:
                self._go_on(claim)

    def forget_all(self) -> None:
        """All jobs are gone, and all clients have their answers."""
        for claim in list(self._by_job.values()):
            self._finish(claim)
        self._questions.clear()

"""Adding a job once: its key is reserved first, then the job is made.

1. The keepers of the key are asked one after the other, in the order in which they rank, which is
   the same for all nodes. All of them must grant it; nodes whose views differ by one node have a
   keeper in common.
2. If a job has the key, the answer is its ID. If one is being made with it, all is given back, and
   the keepers are asked again a moment later, or, if it is made here, when it is done.
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
from disque_tx.core.base.schedule import Schedule
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.addrequest import AddRequest, Unique
from disque_tx.core.jobs.job import Job
from disque_tx.core.keys.keepermap import KeeperMap
from disque_tx.core.keys.keysbyjob import Reservation
from disque_tx.core.keys.reservation import Reservations, left
from disque_tx.core.queues.copieswait import CopiesWatcher
from disque_tx.core.queues.waiters import NO_TIMEOUT_MS
from disque_tx.core.state.state import State
from disque_tx.core.unique.claim import Claim, KeyReceiver, NoReceiver, timeout
from disque_tx.core.unique.keeper import Keeper
from disque_tx.errors import CommandError
from disque_tx.messages.bustypes import KEY_RESERVE
from disque_tx.messages.keys import BUSY, FREE, GRANTED, HELD, RESERVED, TAKEN, KeyMessage
from disque_tx.messages.records import WAIT_REPL

_ASK_AGAIN_MS: Final = 200
_ASK_AGAIN_MS_MAX: Final = 1_600
#: A key that is reserved for another job is tried again after this time, and up to as much more.
_BUSY_MS: Final = 40
_DOUBLINGS_MAX: Final = 3
_NOT_MADE: Final = "job removed before the requested replication level was achieved"
_NO_MEMORY: Final = "a node that looks after the key is out of memory"


class Claims(CopiesWatcher):
    """ADDJOB UNIQUE requests of this node that have no answer yet."""

    def __init__(self, state: State, delivery: Delivery, adding: Adding, keeper: Keeper) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._membership = state.membership
        self._peers = state.peers
        self._totals = state.totals
        self._waiters = state.waiters
        self._random: Callable[[], float] = state.random
        self._delivery = delivery
        self._adding = adding
        self._keeper = keeper
        self._existence = keeper.existence
        self._reservations: Reservations = state.reservations
        self._view: KeeperMap = state.key_view
        self._by_number: dict[int, Claim] = {}
        self._by_job: dict[bytes, Claim] = {}
        self._timers: Schedule[Claim] = Schedule()
        self._last: i64 = 0

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
            self._later(claim)
            return
        status, job_id = self._keeper.known_here(claim.unique.key, claim.job_id)
        if status != GRANTED:
            self._answered(claim, status, job_id)
            return
        mine = self._membership.myself.id
        for node_id in view.keepers(claim.unique.key):
            if node_id in claim.granted:
                continue
            if node_id != mine:
                self._ask(claim, node_id)
                return
            status, job_id = self._keeper.reserve(claim.entry(RESERVED))
            if status != GRANTED:
                self._answered(claim, status, job_id)
                return
            claim.granted.append(mine)
        self._make(claim)

    def _ask(self, claim: Claim, node_id: bytes) -> None:
        if claim.asked != node_id:
            self._by_number.pop(int(claim.number), None)
            self._last += 1
            claim.asked = node_id
            claim.number = self._last
            claim.attempts = 0
            self._by_number[int(claim.number)] = claim
        entries = [claim.entry(RESERVED)]
        self._peers.send(node_id, KeyMessage(KEY_RESERVE, claim.number, 0, entries))
        pause_ms = min(_ASK_AGAIN_MS * (i64(1) << claim.attempts), _ASK_AGAIN_MS_MAX)
        claim.attempts = min(claim.attempts + 1, _DOUBLINGS_MAX)
        self._timers.add(claim, claim.sooner(self._turn.now_ms + pause_ms))

    def _later(self, claim: Claim) -> None:
        pause_ms = _BUSY_MS + int(self._random() * _BUSY_MS)
        self._timers.add(claim, claim.sooner(self._turn.now_ms + pause_ms))

    def answer(self, sender: bytes, message: KeyMessage) -> None:
        """KEY ANSWER."""
        claim = self._by_number.get(int(message.number))
        if claim is None or claim.asked != sender or claim.making:
            return
        del self._by_number[int(message.number)]
        self._timers.remove(claim)
        claim.asked = b""
        if message.status == GRANTED:
            claim.granted.append(sender)
            self._go_on(claim)
            return
        job_id = message.entries[0].job_id if message.entries else b""
        self._answered(claim, message.status, job_id)

    def _answered(self, claim: Claim, status: i64, job_id: bytes) -> None:
        """A keeper did not grant the key."""
        if status == TAKEN and job_id:
            self._finish(claim)
            self._give_back(claim)
            self._taken(claim, job_id)
        elif status == BUSY:
            self._give_back(claim)
            if job_id in self._by_job:
                self._by_job[job_id].behind.append(claim)
            self._later(claim)
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
        nodes = [*claim.granted, claim.asked] if claim.asked else claim.granted
        mine = self._membership.myself.id
        entry = claim.entry(FREE)
        for node_id in nodes:
            if node_id != mine:
                self._keeper.copies.add(node_id, 0, entry)
        claim.granted = []
        claim.asked = b""

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
        found = self._reservations.get(claim.unique.key)
        if found is not None and found.job_id == claim.job_id:
            found.state = u8(HELD)
            self._reservations.check_at(found, 0)
            self._reservations.changed(found)
            self._spread(found, claim.granted)
        claim.receiver.added(claim.job_id, True)

    def _spread(self, found: Reservation, granted: list[bytes]) -> None:
        """Let the keepers know that the job exists."""
        mine = self._membership.myself.id
        nodes = dict.fromkeys([*granted, *self._view.keepers(found.key)])
        entry = left(found, self._turn.now_ms)
        for node_id in nodes:
            if node_id != mine:
                self._keeper.copies.add(node_id, 0, entry)

    # -- the end -----------------------------------------------------------------------------

    def _finish(self, claim: Claim) -> None:
        """The claim is not under way any more."""
        self._timers.remove(claim)
        self._by_number.pop(int(claim.number), None)
        self._by_job.pop(claim.job_id, None)
        self._existence.claimed.discard(claim.job_id)
        for other in claim.behind:
            self._again(other)

    def _again(self, claim: Claim) -> None:
        """Ask the keepers again by the end of the turn, unless the claim is further by now."""
        if self._by_job.get(claim.job_id) is claim and not claim.asked and not claim.making:
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
        return self._timers.next_ms()

    def run_due(self, limit: i64) -> None:
        """Ask again, or give up."""
        now_ms = self._turn.now_ms
        for claim in self._timers.due(now_ms, limit):
            if 0 < claim.deadline_ms <= now_ms:
                self._refuse(claim, timeout())
            else:
                self._go_on(claim)

    def forget_all(self) -> None:
        """All jobs are gone, and all clients have their answers."""
        for claim in list(self._by_job.values()):
            self._finish(claim)

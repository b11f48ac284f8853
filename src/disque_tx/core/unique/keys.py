"""Keys of jobs: what the node does with them (beyond the original; cluster protocol, 21.6).

A job that is added with a key is added once: while it is not done, or for FOR seconds if that is
longer, whoever adds a job with the key gets the ID of the first one. ``claims`` adds jobs, ``view``
knows the keepers of each key, ``keeper`` does that, ``audit`` finds what was missed, and
``conflicts`` settles which of two jobs keeps a key.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.adding import Adding
from disque_tx.core.base.client import Client
from disque_tx.core.base.part import Part
from disque_tx.core.base.schedule import earlier
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.addrequest import AddRequest, Unique
from disque_tx.core.keys.done import DoneJobs
from disque_tx.core.keys.keepermap import KeeperMap
from disque_tx.core.keys.keysbyjob import ANNOUNCED, DOUBTFUL
from disque_tx.core.keys.reservation import Reservations
from disque_tx.core.nodes.duplicateids import identity_conflict_error
from disque_tx.core.state.state import State
from disque_tx.core.unique.audit import KeyAudit
from disque_tx.core.unique.claim import KeyClient, KeyReceiver
from disque_tx.core.unique.claims import Claims
from disque_tx.core.unique.conflicts import Conflicts
from disque_tx.core.unique.existence import Existence
from disque_tx.core.unique.keeper import Keeper
from disque_tx.errors import CommandError
from disque_tx.messages.bustypes import KEY_ANSWER, KEY_CHECK, KEY_RESERVE
from disque_tx.messages.keys import BUSY, DONE, EACH, FREE, GRANTED, HELD, KeyMessage
from disque_tx.messages.nodes import NodeEntry
from disque_tx.messages.records import NO_JOB_ID, KeyEntry

_PER_TURN: Final = 1_000
#: How long a node tries to add a job for which no client waits.
_GIVE_UP_MS: Final = 10_000
#: When is looked for jobs that are not known here any more, after the start among others.
_AGAIN_MS: Final = 1_000
_NO_ROOM: Final = (
    "This node keeps no jobs at present (it leaves the cluster, or is short of memory), and can"
    " add none with UNIQUE"
)


class Keys(Part):
    """Adds jobs once, and keeps keys for other nodes. ``reservations``: the keys that this node
    knows of. ``view``: which nodes keep them. ``done_jobs``: jobs that are done, of which others
    may not know."""

    def __init__(self, state: State, delivery: Delivery, adding: Adding) -> None:
        self._turn = state.turn
        self._keys_by_job = state.keys_by_job
        self._membership = state.membership
        self._memory = state.memory
        self._peers = state.peers
        self._waiters = state.waiters
        self.reservations: Reservations = state.reservations
        self.view: KeeperMap = state.key_view
        self.done_jobs: DoneJobs = state.done_jobs
        self._existence = Existence(state)
        self._conflicts = Conflicts(state, delivery, self._existence)
        self._keeper = Keeper(state, self._existence, self._conflicts)
        self._claims = Claims(state, delivery, adding, self._keeper)
        self._audit = KeyAudit(
            state.turn,
            state.membership,
            state.reservations,
            state.key_view,
            self._existence,
            self._keeper,
        )

    def __len__(self) -> int:
        return len(self.reservations)

    # -- adding ------------------------------------------------------------------------------

    def add_job(self, client: Client, request: AddRequest, unique: Unique) -> None:
        """ADDJOB with UNIQUE: answer the client at once, or block it. Raises ``CommandError``."""
        self._refuse_if_full()
        self.process_ended()  # of requests of this turn
        receiver = KeyClient(self._waiters, client, unique.with_new)
        claim = self._claims.begin(receiver, request, unique, request.timeout_ms)
        if claim is not None:
            receiver.wait(claim)

    def add(self, receiver: KeyReceiver, request: AddRequest) -> None:
        """Add a job once, for a part of the node. ``request.unique`` is its key.

        The receiver gets to know what became of it, now or within :data:`_GIVE_UP_MS` (or
        ``request.timeout_ms``, if that is not 0): the ID of the job that has the key, and whether
        that is new, or why there is none. Whoever adds again with the same key after an error, on
        this node or on another one, gets one job.
        """
        unique = request.unique
        assert unique is not None
        try:
            self._refuse_if_full()
        except CommandError as error:
            receiver.refused(error)
            return
        self._claims.begin(receiver, request, unique, request.timeout_ms or _GIVE_UP_MS)

    def _refuse_if_full(self) -> None:
        if self._membership.identity.suspended:
            raise identity_conflict_error()
        if self._membership.leaving or self._memory.level() > 0:
            raise CommandError("NOREPL", _NO_ROOM)

    # -- other nodes -------------------------------------------------------------------------

    def receive(self, sender: NodeEntry, message: KeyMessage) -> None:
        """A message about keys."""
        if message.type == KEY_RESERVE:
            self._reserve(sender, message)
        elif message.type == KEY_ANSWER:
            self._claims.answer(sender.id, message)
        elif message.type == KEY_CHECK:
            self._existence.receive(sender.id, message)
        else:
            for entry in message.entries:
                if message.status & DONE:
                    self._keeper.merge_done(entry)
                else:
                    self._keeper.merge(sender.id, entry)
            if message.status:
                self.view.refresh()
                self.view.received_all(sender.id, message.status)

    def _reserve(self, sender: NodeEntry, message: KeyMessage) -> None:
        entries = message.entries
        if not entries or b"" in [entry.key for entry in entries]:
            return
        self.view.refresh()
        ready = self.view.ready()
        answers: list[KeyEntry] = []
        granted = True
        for entry in entries:
            status, job_id = self._keeper.reserve(entry) if ready else (BUSY, NO_JOB_ID)
            granted = granted and status == GRANTED
            answers.append(KeyEntry(b"", job_id or NO_JOB_ID, status, 0, 0, 0))
        answer = KeyMessage(KEY_ANSWER, message.number, GRANTED, [])
        if not granted:
            answer.status = answers[0].state if len(entries) == 1 else EACH
            answer.entries = answers
        self._peers.send(sender.id, answer)

    def finish(self) -> None:
        """The turn ends: let others know what became of keys, and ask them for those of jobs that
        are to be added."""
        self._keeper.copies.send()
        self._claims.send()

    # -- jobs, clients and time --------------------------------------------------------------

    def process_ended(self) -> None:
        """Go on with jobs that have their copies, and keys whose jobs have ended."""
        if self._waiters.settled:
            self._waiters.notify_watchers()
        if self._keys_by_job.ended:
            self._process_ended()

    def _process_ended(self) -> None:
        now_ms = self._turn.now_ms
        ended, self._keys_by_job.ended = self._keys_by_job.ended, []
        announced: list[bytes] = []
        for job_id, certainty in ended:
            if certainty == ANNOUNCED:
                announced.append(job_id)
            found = self._keys_by_job.by_job.get(job_id)
            if found is None or self._existence.verdict(job_id) != FREE:
                continue  # it was only replaced by a later state of the same job
            if certainty == DOUBTFUL:
                self.reservations.check_at(found, now_ms + _AGAIN_MS)
            else:
                self._keeper.job_done(found)
        if announced:
            self._keeper.announce(announced)

    def client_gone(self, client: Client) -> None:
        """A client is gone: what it waits for is not added."""
        self._claims.gone(client)

    def give_up(self, client: Client, error: CommandError) -> None:
        """Refuse what a blocked client waits to add with keys."""
        self._claims.give_up(client, error)

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for never."""
        if self._keys_by_job.ended:
            return self._turn.now_ms
        due_ms = self.reservations.next_due_ms()
        due_ms = earlier(due_ms, self._claims.next_due_ms())
        due_ms = earlier(due_ms, self._existence.next_due_ms())
        return earlier(due_ms, self._conflicts.next_due_ms())

    def run_due(self) -> None:
        """Handle what is due by now, a bounded part of it; the rest stays due."""
        self.process_ended()
        due = self.reservations.due(self._turn.now_ms, _PER_TURN)
        if due:
            self.view.refresh()
            self._audit.check(due)
        self._existence.run_due(_PER_TURN)
        self._conflicts.run_due(_PER_TURN)
        self._claims.run_due(_PER_TURN)

    # -- the log -----------------------------------------------------------------------------

    def load(self, entry: KeyEntry) -> None:
        """A key from the log."""
        now_ms = self._turn.now_ms
        found = self.reservations.load(entry, now_ms)
        if found is not None:
            sure = found.maker and self._existence.verdict(found.job_id) == HELD
            self.reservations.check_at(found, 0 if sure else now_ms + _AGAIN_MS)

    def load_free(self, key: bytes) -> None:
        """The log says that the key is free."""
        found = self.reservations.get(key)
        if found is not None:
            self.reservations.drop(found)

    def forget_all(self) -> None:
        """All jobs are gone."""
        self._claims.forget_all()
        self._conflicts.forget_all()
        self.done_jobs.clear()
        self._keys_by_job.ended.clear()
        self.reservations.clear()

"""Keys whose end was missed: nodes ask each other whether the jobs still exist.

1. A keeper looks at each key from time to time: soon at one whose job is being made, less and less
   often at one whose job exists. So does the node that made a job that may live on elsewhere.
2. All nodes of ours that can be reached are asked. The node that made the job knows best; of the
   others it is enough if one holds the job.
3. If no node holds it, twice in a row, and every member of the cluster was asked, the key is free.
   With a member that cannot be asked (an original, or a node that is away) the job may exist there,
   and the key ends by its time; but not one that is only reserved, which is free after a minute.
4. A key that was only reserved is free at once then, for its job was never made. One whose job is
   done is kept for what is left of FOR; so is a reserved one, if a node knows that its job is done.
5. A job that others hold counts as made only if the node that makes it cannot withdraw it any more:
   it says so, or does not have it, or cannot be reached.
6. Who neither looks after a key nor made its job forgets it: that was so before other nodes came.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, u8

from disque_tx.busmessages import KEY_CHECK
from disque_tx.core.keys.bonds import Reservation
from disque_tx.core.keys.keeper import Keeper
from disque_tx.core.keys.reservation import Reservations, ends_ms, left, made_by
from disque_tx.core.keys.view import View
from disque_tx.core.membership import Membership
from disque_tx.core.peers import Peers
from disque_tx.core.schedule import Schedule
from disque_tx.keymessages import ANSWER, ENDED, ENTRIES_MAX, FREE, HELD, RESERVED, KeyMessage
from disque_tx.messages import KeyEntry, Linked

#: How often is looked for a job that is being made, until its key is free.
_LOOKS_MAX: Final = 30
_ANSWER_MS: Final = 1_000
_AGAIN_MS: Final = 2_000
_PAUSE_MS: Final = 30_000
_PAUSE_MS_MAX: Final = 600_000
_DOUBLINGS_MAX: Final = 5
_MISSES: Final = 2


class _Check(Linked):
    """A question under way. ``waiting``: who has not answered; ``complete``: all members were
    asked, and those that answered did so in time; ``found``: what was answered, by job ID;
    ``makers``: jobs about which the node that made them has answered."""

    __slots__ = ("complete", "found", "keys", "makers", "number", "waiting")

    def __init__(self, number: i64, keys: list[Reservation], complete: bool) -> None:
        super().__init__()
        self.number: i64 = number
        self.keys: list[Reservation] = keys
        self.complete: bool = complete
        self.waiting: set[bytes] = set()
        self.found: dict[bytes, int] = {}
        self.makers: set[bytes] = set()


class Audit:
    """Looks whether the jobs of keys exist."""

    __slots__ = (
        "_keeper",
        "_last",
        "_membership",
        "_open",
        "_peers",
        "_reservations",
        "_timeouts",
        "_view",
    )

    def __init__(
        self,
        membership: Membership,
        peers: Peers,
        reservations: Reservations,
        view: View,
        keeper: Keeper,
    ) -> None:
        self._membership: Membership = membership
        self._peers: Peers = peers
        self._reservations: Reservations = reservations
        self._view: View = view
        self._keeper: Keeper = keeper
        self._open: dict[int, _Check] = {}
        self._timeouts: Schedule[_Check] = Schedule()
        self._last: i64 = 0

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for never."""
        return self._timeouts.next_ms()

    def run_due(self, now_ms: i64, limit: i64) -> None:
        """Wait no longer for answers that are late."""
        for check in self._timeouts.due(now_ms, limit):
            del self._open[int(check.number)]
            check.complete = False
            self._judge(check, now_ms)

    def look(self, keys: list[Reservation], now_ms: i64) -> None:
        """These are due."""
        doubtful: list[Reservation] = []
        for found in keys:
            if ends_ms(found) <= now_ms:
                self._reservations.drop(found)
            elif self._concerns(found):
                doubtful.append(found)
            else:
                self._reservations.drop(found)
        for at in range(0, len(doubtful), ENTRIES_MAX):
            self._ask(doubtful[at : at + ENTRIES_MAX], now_ms)

    def _concerns(self, found: Reservation) -> bool:
        return found.maker or self._membership.myself.id in self._view.keepers(found.key)

    def _ask(self, keys: list[Reservation], now_ms: i64) -> None:
        self._last += 1
        check = _Check(self._last, keys, not self._view.missing())
        mine = self._membership.myself.id
        for found in keys:
            self._note(check, mine, found.job_id, self._keeper.verdict(found.job_id))
        others = self._view.others()
        if not others:
            self._judge(check, now_ms)
            return
        entries = [left(found, now_ms) for found in keys]
        for node_id in others:
            check.waiting.add(node_id)
            self._peers.send(node_id, KeyMessage(KEY_CHECK, check.number, 0, entries))
        self._open[int(check.number)] = check
        self._timeouts.add(check, now_ms + _ANSWER_MS)

    def receive(self, sender: bytes, message: KeyMessage, now_ms: i64) -> None:
        """KEY CHECK: a question or an answer."""
        if not message.status & ANSWER:
            self._answer(sender, message)
            return
        check = self._open.get(int(message.number))
        if check is None or sender not in check.waiting:
            return
        check.waiting.remove(sender)
        known = {entry.job_id: int(entry.state) for entry in message.entries}
        for found in check.keys:
            self._note(check, sender, found.job_id, known.get(found.job_id, FREE))
        if not check.waiting:
            self._timeouts.remove(check)
            del self._open[int(check.number)]
            self._judge(check, now_ms)

    def _answer(self, sender: bytes, message: KeyMessage) -> None:
        entries: list[KeyEntry] = []
        for entry in message.entries:
            state = self._keeper.verdict(entry.job_id)
            if state == FREE and self._reservations.ended(entry.key, entry.job_id):
                state = ENDED
            if state != FREE:
                entries.append(KeyEntry(b"", entry.job_id, state, 0, 0, 0))
        self._peers.send(sender, KeyMessage(KEY_CHECK, message.number, ANSWER, entries))

    def _note(self, check: _Check, node_id: bytes, job_id: bytes, state: i64) -> None:
        if state == FREE:
            return
        if state == ENDED:
            check.found.setdefault(job_id, int(state))
        elif made_by(node_id, job_id):
            check.makers.add(job_id)
            check.found[job_id] = int(state)
        elif job_id not in check.makers:
            check.found[job_id] = int(state)

    def _judge(self, check: _Check, now_ms: i64) -> None:
        for found in check.keys:
            if self._reservations.get(found.key) is found:
                state = check.found.get(found.job_id, FREE)
                if state == FREE:
                    self._missed(found, check.complete, now_ms)
                elif state == ENDED:
                    self._ended(found, now_ms)
                else:
                    self._exists(found, state == HELD and self._settled(check, found), now_ms)

    def _settled(self, check: _Check, found: Reservation) -> bool:
        """Whether the node that makes the job cannot withdraw it any more."""
        if found.job_id in self._keeper.claimed:
            return False
        return not any(made_by(node_id, found.job_id) for node_id in check.waiting)

    def _exists(self, found: Reservation, made: bool, now_ms: i64) -> None:
        found.misses = 0
        if made and found.state == RESERVED:
            found.state = u8(HELD)
            found.checks = 0
            self._reservations.changed(found)
        self._again(found, now_ms)

    def _again(self, found: Reservation, now_ms: i64) -> None:
        pause_ms: i64 = _AGAIN_MS
        if found.state != RESERVED:
            pause_ms = min(
                _PAUSE_MS * (i64(1) << min(i64(found.checks), _DOUBLINGS_MAX)), _PAUSE_MS_MAX
            )
        found.checks = u8(min(i64(found.checks) + 1, _LOOKS_MAX))
        self._reservations.look_at(found, now_ms + pause_ms)

    def _missed(self, found: Reservation, complete: bool, now_ms: i64) -> None:
        """No node has the job, of those that answered."""
        if complete:
            found.misses = u8(i64(found.misses) + 1)
            if found.misses >= _MISSES:
                self._free(found, now_ms)
            else:
                self._reservations.look_at(found, now_ms + _AGAIN_MS)
        elif found.state == RESERVED and found.checks >= _LOOKS_MAX:
            self._free(found, now_ms)
        else:
            found.misses = 0
            self._again(found, now_ms)

    def _free(self, found: Reservation, now_ms: i64) -> None:
        if found.state != RESERVED:
            self._ended(found, now_ms)
            return
        self._reservations.drop(found)
        self._keeper.notify(found, now_ms)

    def _ended(self, found: Reservation, now_ms: i64) -> None:
        self._keeper.job_ended(found, now_ms)
        if not found.maker:
            self._keeper.notify(found, now_ms)

"""Asking other nodes for keys: one KEY RESERVE for all that one node is asked in a turn (cluster
protocol, section 21.6).

What is not answered is asked again after 200 ms, and then after more and more. A node of an earlier
version gets a question for each key.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.part import Turn
from disque_tx.core.base.schedule import Schedule
from disque_tx.core.nodes.peers import Peers
from disque_tx.core.unique.claim import Claim, KeyQuestion
from disque_tx.messages.bustypes import CAN_SETTLE, KEY_RESERVE
from disque_tx.messages.keys import EACH, ENTRIES_MAX, RESERVED, KeyMessage
from disque_tx.messages.records import NO_JOB_ID

_AGAIN_MS: Final = 200
_AGAIN_MS_MAX: Final = 1_600
_DOUBLINGS_MAX: Final = 3


class KeyQuestions:
    """What other nodes are asked, and have not answered yet."""

    def __init__(self, turn: Turn, peers: Peers) -> None:
        self._turn = turn
        self._peers = peers
        # By node, what it is asked at the end of the turn.
        self._gathered: dict[bytes, list[KeyQuestion]] = {}
        self._sent: dict[int, KeyQuestion] = {}
        self._timers: Schedule[KeyQuestion] = Schedule()
        self._last: i64 = 0

    def ask(self, claim: Claim, node_id: bytes) -> None:
        """Ask a node to reserve the key of the claim, by the end of the turn, if it is not to
        answer that anyway."""
        for question in claim.questions:
            if question.node_id == node_id:
                if question.unanswered:
                    question.unanswered = False
                    self._gather(question)
                return
        gathered = self._gathered.get(node_id)
        last = gathered[-1] if gathered else None
        if last is None or last.number > 0 or len(last.claims) >= self._most(node_id):
            last = KeyQuestion(node_id)
            self._gather(last)
        last.claims.append(claim)
        claim.questions.append(last)

    def _gather(self, question: KeyQuestion) -> None:
        gathered = self._gathered.get(question.node_id)
        if gathered is None:
            gathered = self._gathered[question.node_id] = []
        gathered.append(question)

    def _most(self, node_id: bytes) -> i64:
        """How many keys a node takes at once. There is no release that knows ``CAN_SETTLE`` and
        takes but one."""
        return ENTRIES_MAX if self._peers.knows(node_id, CAN_SETTLE) else 1

    def withdraw(self, claim: Claim) -> list[bytes]:
        """The claim needs no answer any more; returns the nodes that may have reserved its key, or
        are about to."""
        if not claim.questions:
            return []
        asked = [question.node_id for question in claim.questions if question.number > 0]
        claim.questions = []
        return asked

    def send(self) -> None:
        """Ask what was gathered."""
        gathered, self._gathered = self._gathered, {}
        for node_id, questions in gathered.items():
            for question in questions:
                self._send(node_id, question)

    def _send(self, node_id: bytes, question: KeyQuestion) -> None:
        claims = question.claims = question.waiting()
        if not claims:
            return
        if question.number == 0:
            self._last += 1
            question.number = self._last
        self._sent[int(question.number)] = question
        entries = [claim.entry(RESERVED) for claim in claims]
        self._peers.send(node_id, KeyMessage(KEY_RESERVE, question.number, 0, entries))
        pause_ms = min(_AGAIN_MS * (i64(1) << question.attempts), _AGAIN_MS_MAX)
        question.attempts = min(question.attempts + 1, _DOUBLINGS_MAX)
        self._timers.add(question, self._turn.now_ms + pause_ms)

    def answered(self, sender: bytes, message: KeyMessage) -> list[tuple[Claim, i64, bytes]]:
        """KEY ANSWER: the claims that wait for it, what the node answers, and the job that has the
        key."""
        question = self._sent.get(int(message.number))
        if question is None or question.node_id != sender:
            return []
        entries = message.entries
        each = message.status == EACH
        if each and len(entries) != len(question.claims):
            return []
        del self._sent[int(message.number)]
        self._timers.remove(question)
        found: list[tuple[Claim, i64, bytes]] = []
        for place, claim in enumerate(question.claims):
            if question not in claim.questions:
                continue
            claim.questions.remove(question)
            status: i64 = entries[place].state if each else message.status
            job_id = entries[place if each else 0].job_id if entries else b""
            found.append((claim, status, b"" if job_id == NO_JOB_ID else job_id))
        question.claims = []
        return found

    def next_due_ms(self) -> i64:
        """When :meth:`unanswered` has something next, -1 for never."""
        return self._timers.next_ms()

    def unanswered(self, limit: i64) -> list[Claim]:
        """The claims whose questions, up to ``limit``, were not answered for too long; what is
        asked again is sent again."""
        found: list[Claim] = []
        for question in self._timers.due(self._turn.now_ms, limit):
            del self._sent[int(question.number)]
            question.unanswered = True
            found += question.waiting()
        return found

    def clear(self) -> None:
        """Forget all of them; no claim waits any more."""
        self._gathered = {}
        self._sent = {}
        self._timers.clear()

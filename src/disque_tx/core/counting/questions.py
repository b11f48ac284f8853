"""Questions to other nodes: sent to those that can answer, for a second (cluster protocol, section
21.4).

A node that has not shown that it knows these messages is never sent one; it counts as missing, like
one that did not answer in time.

A question that changes something must not be acted on after its time: it may have waited in a
connection that was cut off, while clients went on. The node that gets it answers ``TIME`` and what
its own clock shows, and gets the question again with the time until which it holds, by that clock.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.schedule import Schedule
from disque_tx.core.counting.counts import number_of
from disque_tx.core.counting.dialects import question_for, widened
from disque_tx.core.counting.task import Asker
from disque_tx.core.state.state import State
from disque_tx.messages.bus import QueryMessage
from disque_tx.messages.bustypes import CAN_ASK, CAN_LOADED, CAN_QUERY, QUERY
from disque_tx.messages.nodes import HANDSHAKE, NodeEntry
from disque_tx.messages.records import Linked

#: For how long answers are waited for.
TIMEOUT_MS: Final = 1_000
#: Who is asked: nobody else, all other nodes, the other processes of this daemon; or one other node
#: instead of this one.
HERE: Final = 0
EVERYWHERE: Final = 1
PROCESSES: Final = 2
ELSEWHERE: Final = 3
#: The answer of a node that wants to know how long the question holds: this and a time.
TIME: Final = b"TIME"


class Question(Linked):
    """A question in progress. ``waiting``: nodes that have not answered; ``missing``: those that
    cannot, or answered nonsense; ``limited``: those that know until when it holds; ``older``: those
    that do not count loaded jobs."""

    __slots__ = ("asker", "end_ms", "limited", "missing", "number", "older", "waiting", "words")

    def __init__(self, number: i64, words: list[bytes], asker: Asker, end_ms: i64) -> None:
        super().__init__()
        self.number: i64 = number
        self.words: list[bytes] = words
        self.asker: Asker = asker
        self.end_ms: i64 = end_ms
        self.limited: set[bytes] = set()
        self.older: set[bytes] = set()
        self.waiting: set[bytes] = set()
        self.missing: list[bytes] = []


class Questions:
    """Questions of this node to others, in progress."""

    def __init__(self, state: State) -> None:
        self._turn = state.turn
        self._membership = state.membership
        self._peers = state.peers
        self._open: dict[int, Question] = {}
        self._timeouts: Schedule[Question] = Schedule()
        self._last: i64 = 0

    def ask(self, words: list[bytes], asker: Asker, scope: i64, one: bytes) -> None:
        """Ask the other nodes of this scope that can answer. ``one``: the ID of the node that is
        asked ``ELSEWHERE``."""
        self._last += 1
        question = Question(self._last, words, asker, self._turn.now_ms + TIMEOUT_MS)
        wanted = [one] if scope == ELSEWHERE else self._membership.siblings
        for entry in self._membership.nodes.values():
            if entry is self._membership.myself or entry.flags & HANDSHAKE:
                continue
            if scope == EVERYWHERE or entry.id in wanted:
                self._send(question, entry)
        if scope != EVERYWHERE:
            question.missing += [node for node in wanted if not self._is_asked(node)]
        if question.waiting:
            self._open[int(question.number)] = question
            self._timeouts.add(question, question.end_ms)
        else:
            asker.all_answered(sorted(question.missing))

    def _is_asked(self, node_id: bytes) -> bool:
        """Whether this node is one that is asked, if it can answer."""
        entry = self._membership.nodes.get(node_id)
        return entry is not None and not entry.flags & HANDSHAKE

    def _send(self, question: Question, entry: NodeEntry) -> None:
        words = question.words
        shared = self._shared_features(entry)
        form: list[bytes] = []
        if shared & CAN_QUERY and (words[0] != b"ASK" or shared & CAN_ASK):
            form = question_for(words, shared & CAN_LOADED != 0)
        if not form:
            question.missing.append(entry.id)
            return
        question.waiting.add(entry.id)
        if not shared & CAN_LOADED:
            question.older.add(entry.id)
        self._peers.send(entry.id, QueryMessage(QUERY, question.number, form))

    def _shared_features(self, entry: NodeEntry) -> i64:
        """What this node can do, and the other one has shown on the link to it."""
        link = entry.link
        return 0 if link is None else link.features & self._membership.features

    def answered(self, sender: bytes, message: QueryMessage) -> None:
        """REPORT: the answer of one node."""
        question = self._open.get(int(message.number))
        if question is None or sender not in question.waiting:
            return
        if self._asked_for_time(question, sender, message.words):
            return
        question.waiting.remove(sender)
        words = message.words
        if sender in question.older:
            words = widened(question.words[0], words)
        if not question.asker.answer(words, sender):
            question.missing.append(sender)
        if not question.waiting:
            self._timeouts.remove(question)
            self._close(question)

    def _asked_for_time(self, question: Question, sender: bytes, words: list[bytes]) -> bool:
        """Whether the answer is ``TIME``; the node gets the question again, once."""
        if len(words) != 2 or words[0] != TIME or sender in question.limited:
            return False
        there_ms = number_of(words[1])
        if there_ms < 0:
            return False
        question.limited.add(sender)
        until_ms = there_ms + question.end_ms - self._turn.now_ms
        form = question_for(question.words, sender not in question.older)
        again = [*form, b"%d" % until_ms]
        self._peers.send(sender, QueryMessage(QUERY, question.number, again))
        return True

    def _close(self, question: Question) -> None:
        del self._open[int(question.number)]
        question.asker.all_answered(sorted([*question.missing, *question.waiting]))

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for never."""
        return self._timeouts.next_ms()

    def run_due(self, limit: i64) -> None:
        """Wait no longer for answers that are late."""
        now_ms = self._turn.now_ms
        for question in self._timeouts.due(now_ms, limit):
            self._close(question)

"""QCOUNT, QLIST, QFLUSH and WAITJOB on the node: at once, in slices, or with other nodes.

A question is a list of words, the same for this node and for others:

1. ``COUNT`` name …: the numbers of these queues.
2. ``LIST`` pattern, order, number of rows, key and name of the row before (empty: none).
3. ``FLUSH`` name, bits of states; from another node with the time until which it may begin.
4. ``ASK`` and a question of :mod:`disque_tx.core.counting.asked`.

What nodes that do not count loaded jobs understand instead is in
:mod:`disque_tx.core.counting.dialects`.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.client import NOT_BLOCKED, Client
from disque_tx.core.base.part import Part
from disque_tx.core.counting.answers import (
    Answer,
    CountAnswer,
    FlushAnswer,
    JobCount,
    ListAnswer,
)
from disque_tx.core.counting.asked import (
    CHANGES,
    NO_QUESTION,
    Answering,
    AskAnswer,
    Respondent,
    ask_words,
    asked_words,
    reply_words,
)
from disque_tx.core.counting.counts import QueueCounter, number_of
from disque_tx.core.counting.dialects import narrowed, understood
from disque_tx.core.counting.flushing import FLUSH_ANY, Flushing
from disque_tx.core.counting.gathering import AnswerGathering
from disque_tx.core.counting.listing import ListRequest, QueueListing, page_of
from disque_tx.core.counting.questions import ELSEWHERE, HERE, TIME, Questions
from disque_tx.core.counting.rankings import SORTS, Rankings
from disque_tx.core.counting.task import Asker, Performer, ResultReceiver
from disque_tx.core.delivery.acks import Acks
from disque_tx.core.state.state import State
from disque_tx.errors import CommandError
from disque_tx.messages.bus import QueryMessage
from disque_tx.messages.bustypes import CAN_LOADED, QUERY, REPORT
from disque_tx.messages.nodes import NodeEntry
from disque_tx.messages.records import ACKED
from disque_tx.messages.tables import PATTERN_BYTES_MAX

#: Rows of one QLIST, and thus queues of one question.
ROWS_MAX: Final = 1_000
#: Long requests under way at one node, those of other nodes included.
_TASKS_MAX: Final = 1_000
#: And of one other node: the rest of them gets its turn.
TASKS_OF_ONE_MAX: Final = 200
_QUESTIONS_PER_TURN: Final = 1_000
_DIGITS_MAX: Final = 19


class QueueQueries(Part, Performer):
    """Answers questions about queues. ``counts``: those of this node. ``respondent``: answers what
    is asked by ASK."""

    def __init__(self, state: State, acks: Acks) -> None:
        self._turn = state.turn
        self._state = state
        self._acks = acks
        self._jobs = state.jobs
        self._waiters = state.waiters
        self._peers = state.peers
        self._slices = state.slices
        self.counts = QueueCounter(state)
        self._rankings = Rankings(state.queues)
        self.respondent: Respondent = Respondent()
        self._myself = state.membership.myself
        self._questions = Questions(state)
        self._asked_by: dict[bytes, int] = {}

    # -- commands ----------------------------------------------------------------------------

    def count_jobs(self, client: Client, name: bytes, scope: i64) -> None:
        """QCOUNT: how many jobs of a queue there are, and where they stand."""
        self._begin(client, CountAnswer(name), [b"COUNT", name], scope)

    def list_queues(self, client: Client, request: ListRequest, scope: i64) -> None:
        """QLIST: the queues, a page of them."""
        words = [b"LIST", request.pattern, b"%d" % request.sort, b"%d" % request.count]
        if request.after is not None:
            words += [b"%d" % request.after[0], request.after[1]]
        self._begin(client, ListAnswer(request, scope != HERE), words, scope)

    def flush_queue(
        self,
        client: Client,
        name: bytes,
        states: i64,
        scope: i64,
        details: bool,
        count: JobCount | None = None,
    ) -> None:
        """QFLUSH: end the jobs of a queue. ``count``: gets how many they were."""
        words = [b"FLUSH", name, b"%d" % states]
        self._begin(client, FlushAnswer(details, count), words, scope)

    def ask(self, client: Client, question: list[bytes], scope: i64, one: bytes) -> None:
        """ASK: a question that each node of the scope answers for itself, or the one with the ID
        ``one``, if this is given."""
        mine = self._myself.id
        if one:
            scope = HERE if one == mine else ELSEWHERE
        self._begin(client, AskAnswer(mine), ask_words(question), scope, one)

    def wait_for_job(self, client: Client, job_id: bytes, timeout_ms: i64) -> None:
        """WAITJOB: answer once a job has ended. Raises ``CommandError`` NOJOB for one that is not
        known here."""
        job = self._jobs.get(job_id)
        if job is None:
            maker = job_id[2:10].decode("latin-1")
            raise CommandError(
                "NOJOB",
                "Job not known in the context of this node."
                f" It was made by the node whose ID begins with {maker}.",
            )
        if job.state == ACKED:
            client.replies.status(b"ACKED")
        else:
            self._waiters.wait_for_ending(client, job_id, timeout_ms)

    def wait_longer(self, client: Client, timeout_ms: i64) -> None:
        """Let a client of :meth:`wait_for_job` wait for so long from now on."""
        self._waiters.wait_longer(client, timeout_ms)

    def _begin(
        self,
        client: Client,
        answer: Answer,
        words: list[bytes],
        scope: i64,
        one: bytes = b"",
    ) -> None:
        if self._slices.count() >= _TASKS_MAX:
            raise CommandError("ERR", "Too many long requests are under way, try again later")
        AnswerGathering(self, self._waiters, client, answer, scope, one).begin(words)

    # -- work --------------------------------------------------------------------------------

    def ask_others(self, words: list[bytes], asker: Asker, scope: i64, one: bytes) -> None:
        """Ask the other nodes of this scope."""
        self._questions.ask(words, asker, scope, one)

    def perform(self, words: list[bytes], receiver: ResultReceiver) -> bool:
        """Answer a question of this node or of another one; ``False`` if it is none."""
        kind = words[0] if words else b""
        if kind == b"ASK":
            self._answer(asked_words(words), receiver)
            return True
        if kind == b"COUNT" and len(words) <= ROWS_MAX + 1:
            rows: list[bytes] = []
            for name in words[1:]:
                rows += self.counts.of(name).words()
            receiver.result(rows)
            return True
        if kind == b"LIST" and len(words) in (4, 6):
            request = _list_request(words)
            if request is None:
                return False
            self._list(request, receiver)
            return True
        if kind == b"FLUSH" and len(words) == 3:
            states = _number(words[2], FLUSH_ANY)
            if states < 1:
                return False
            self._slices.add(Flushing(self._state, self._acks, words[1], states, receiver))
            return True
        return False

    def _list(self, request: ListRequest, receiver: ResultReceiver) -> None:
        rankings = self._rankings
        rows = rankings.first(request.sort, request.count) if request.is_ranked() else []
        if rows:
            receiver.result(page_of(rows, request.count, self.counts))
        else:
            self._slices.add(QueueListing(self._state, self.counts, rankings, request, receiver))

    def _answer(self, question: list[bytes], receiver: ResultReceiver) -> None:
        """Answer a question of a client of this node."""
        client = self.respondent.begin(question)
        if client.blocked == NOT_BLOCKED:
            receiver.result(reply_words(client))
        else:
            self._slices.add(Answering(self.respondent, question, 0, receiver, client))

    def now_ms(self) -> i64:
        """The time of the turn."""
        return self._turn.now_ms

    # -- other nodes, and time ---------------------------------------------------------------

    def receive(self, sender: NodeEntry, message: QueryMessage) -> None:
        """QUERY, REPORT."""
        if message.type != QUERY:
            self._questions.answered(sender.id, message)
        elif (
            self._slices.count() < _TASKS_MAX
            and self._asked_by.get(sender.id, 0) < TASKS_OF_ONE_MAX
        ):
            tasks = self._slices.count()
            link = sender.link
            older = link is not None and link.features != 0 and not link.features & CAN_LOADED
            words, narrow = understood(message.words, older)
            kind = words[0] if narrow else b""
            self._asked(words, _Reporting(self, sender.id, message.number, kind))
            if self._slices.count() > tasks:
                self._asked_by[sender.id] = self._asked_by.get(sender.id, 0) + 1

    def _asked(self, words: list[bytes], receiver: ResultReceiver) -> None:
        """A question of another node. One that changes something needs a time."""
        if words[:1] == [b"ASK"]:
            self._asked_question(words, receiver)
            return
        if words[:1] == [b"FLUSH"]:
            if len(words) == 3:
                receiver.result([TIME, b"%d" % self._turn.now_ms])
                return
            if len(words) != 4 or number_of(words[3]) < self._turn.now_ms:
                return
            words = words[:3]
        self.perform(words, receiver)

    def _asked_question(self, words: list[bytes], receiver: ResultReceiver) -> None:
        question = asked_words(words)
        kind = self.respondent.kind(question) if question else NO_QUESTION
        if kind == NO_QUESTION:
            return
        timed = len(words) == len(question) + 3
        until_ms: i64 = 0
        if kind == CHANGES:
            if not timed:
                receiver.result([TIME, b"%d" % self._turn.now_ms])
                return
            until_ms = number_of(words[len(words) - 1])
            if until_ms < self._turn.now_ms:
                return
        elif timed:
            return
        self._slices.add(Answering(self.respondent, question, until_ms, receiver))

    def report(self, node_id: bytes, number: i64, words: list[bytes]) -> None:
        """Send the answer to a question of another node."""
        self._peers.send(node_id, QueryMessage(REPORT, number, words))

    def answered(self, node_id: bytes) -> None:
        """A long request of another node is over."""
        left = self._asked_by.get(node_id, 0) - 1
        if left > 0:
            self._asked_by[node_id] = left
        else:
            self._asked_by.pop(node_id, None)

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, -1 for never."""
        now_ms = self._turn.now_ms
        due_ms = self._questions.next_due_ms()
        if self._slices.busy() and (due_ms < 0 or due_ms > now_ms):
            return now_ms + 1
        return due_ms

    def run_due(self) -> None:
        """Go on with long requests, and end questions that took too long."""
        now_ms = self._turn.now_ms
        if self._slices.busy():
            self._slices.run(now_ms)
        self._questions.run_due(_QUESTIONS_PER_TURN)


def _list_request(words: list[bytes]) -> ListRequest | None:
    sort, count = _number(words[2], len(SORTS) - 1), _number(words[3], ROWS_MAX)
    if sort < 0 or count < 1 or len(words[1]) > PATTERN_BYTES_MAX:
        return None
    after: tuple[int, bytes] | None = None
    if len(words) == 6:
        digits = words[4].removeprefix(b"-")
        if not digits.isdigit() or len(digits) > _DIGITS_MAX:
            return None
        after = (int(words[4]), words[5])
    return ListRequest(words[1], sort, count, after)


def _number(word: bytes, most: i64) -> i64:
    """A number from 0 to ``most``, -1 for anything else."""
    if not word.isdigit() or len(word) > 9:
        return -1
    number = int(word)
    return number if number <= most else -1


class _Reporting(ResultReceiver):
    """Sends the result to the node that asked. ``narrow``: the kind of the question, if the rows
    must have no number of loaded jobs."""

    __slots__ = ("_narrow", "_node", "_number", "_overview")

    def __init__(self, overview: QueueQueries, node: bytes, number: i64, narrow: bytes) -> None:
        self._narrow = narrow
        self._overview = overview
        self._node = node
        self._number = number

    def result(self, words: list[bytes]) -> None:
        if self._narrow:
            words = narrowed(self._narrow, words)
        self._overview.report(self._node, self._number, words)

    def ended(self) -> None:
        self._overview.answered(self._node)

    def gone(self) -> bool:
        return False

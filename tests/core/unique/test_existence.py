"""Whether jobs with keys exist: the question, its answers, and what they come to."""

from __future__ import annotations

from disque_tx.core.unique.existence import ExistenceAsker, ExistenceQuestion
from disque_tx.messages.bus import BusSink
from disque_tx.messages.bustypes import GOTJOB, KEY_CHECK, KEY_COPY
from disque_tx.messages.keys import ANSWER, DONE, ENDED, FREE, HELD, RESERVED, KeyMessage
from disque_tx.messages.nodes import Link
from disque_tx.messages.records import KeyEntry
from disque_tx.wire.bus.parser import BusParser
from tests.core.unique.keybench import A, B, C, D, KeyCase


class Asker(ExistenceAsker):
    """Collects the questions that were answered."""

    def __init__(self) -> None:
        self.answers: list[ExistenceQuestion] = []

    def answered(self, question: ExistenceQuestion) -> None:
        self.answers.append(question)


class ExistenceCase(KeyCase):
    """A asks; B and C answer what the test says."""

    def setUp(self) -> None:
        super().setUp()
        self.node = self.cluster.up[A]
        self.existence = self.node.keys._existence
        self.asker = Asker()
        self.cluster.lost = {KEY_CHECK}

    def job_id(self, maker: bytes) -> bytes:
        """The ID of a job that this node makes."""
        return self.cluster.ids.next_id(maker, 3_600, 60)

    def entry(self, job_id: bytes, state: int = HELD) -> KeyEntry:
        """A key for a job."""
        return KeyEntry(b"k", job_id, state, 10_000, 0, 1)

    def receive(self, sender: bytes, status: int, number: int, *entries: KeyEntry) -> None:
        """A gets a question or an answer."""
        message = KeyMessage(KEY_CHECK, number, status, list(entries))
        message.sender = sender
        link = Link(BusSink(), None, b"10.0.0.9", b"", self.cluster.now_ms, 1)
        link.peer_id = sender
        self.node.receive(link, message)

    def sent(self) -> list[tuple[bytes, KeyMessage]]:
        """The messages that A has just sent, by receiver."""
        found = []
        for way, data in self.cluster.waiting:
            parser = BusParser(1 << 20)
            parser.feed(data)
            message = parser.next()
            if way.by == A and isinstance(message, KeyMessage):
                found.append((way.to, message))
        self.cluster.waiting.clear()
        return found


class QuestionTests(ExistenceCase):
    """What several answers come to."""

    def state(self, *answers: tuple[bytes, int], maker: bytes = C) -> int:
        """The state of a job after these answers."""
        job_id = self.job_id(maker)
        question = ExistenceQuestion(self.asker, 1, [], True)
        for node_id, state in answers:
            question.record(node_id, job_id, state)
        self.assertEqual((FREE, False), (int(question.state(b"?")), question.done(b"?")))
        found = int(question.state(job_id))
        self.assertEqual(found == HELD, question.lives(job_id))
        return found

    def test_nobody_knows_it(self) -> None:
        """A job that no node names is not there."""
        self.assertEqual(FREE, self.state())

    def test_done_counts_most(self) -> None:
        """One node that knows that the job is done is believed, before and after others that hold
        it still, and its maker, too."""
        for answers in (
            ((A, HELD), (B, FREE), (C, HELD)),
            ((B, FREE), (A, HELD)),
            ((C, HELD), (B, FREE)),
        ):
            self.assertEqual(ENDED, self.state(*answers))

    def test_maker_knows_best(self) -> None:
        """What the maker says counts, before and after what others say."""
        self.assertEqual(RESERVED, self.state((C, RESERVED), (A, HELD)))
        self.assertEqual(RESERVED, self.state((A, HELD), (C, RESERVED)))
        self.assertEqual(HELD, self.state((C, HELD), (A, RESERVED)))

    def test_one_holder_is_enough(self) -> None:
        """While the maker says nothing, a node that keeps its copy counts, whoever answers first:
        another one may reach the maker, and wait for what that does."""
        self.assertEqual(HELD, self.state((A, HELD), (B, RESERVED)))
        self.assertEqual(HELD, self.state((B, RESERVED), (A, HELD)))
        self.assertEqual(RESERVED, self.state((B, RESERVED)))

    def test_holder_and_kept_key(self) -> None:
        """A node that holds the job counts more than one that only kept its key."""
        self.assertEqual(HELD, self.state((A, ENDED), (B, HELD)))
        self.assertEqual(HELD, self.state((A, HELD), (B, ENDED)))
        self.assertEqual(ENDED, self.state((A, ENDED)))


class AskingTests(ExistenceCase):
    """Who is asked, and when it is over."""

    def ask(self, *job_ids: bytes) -> int:
        """Ask about jobs; the number of the question."""
        self.existence.ask(self.asker, [self.entry(job_id) for job_id in job_ids])
        sent = self.sent()
        self.assertEqual([B, C], [to for to, _ in sent])
        for _, message in sent:
            self.assertEqual((KEY_CHECK, 0), (message.type, message.status))
            self.assertEqual(list(job_ids), [entry.job_id for entry in message.entries])
        return int(sent[0][1].number)

    def test_all_answer(self) -> None:
        """It is over when the last one has answered, and it is known that all have."""
        first, second = self.job_id(B), self.job_id(B)
        number = self.ask(first, second)
        self.receive(B, ANSWER, number, self.entry(second))
        self.assertEqual([], self.asker.answers)
        self.receive(C, ANSWER, number)
        (question,) = self.asker.answers
        self.assertTrue(question.complete)
        self.assertEqual((FREE, HELD), (question.state(first), question.state(second)))
        self.cluster.run(2_000)
        self.assertEqual((1, 0), (len(self.asker.answers), len(self.existence._open)))

    def test_two_at_a_time(self) -> None:
        """Each answer counts for its own question, and a question of another node, which may have
        the same number, is no answer."""
        job_id = self.job_id(B)
        first, second = self.ask(job_id), self.ask(job_id)
        for node_id in (B, C):
            self.receive(node_id, 0, first, self.entry(job_id))
            self.receive(node_id, ANSWER, second, self.entry(job_id))
        (question,) = self.asker.answers
        self.assertEqual((second, HELD), (question.number, question.state(job_id)))
        for node_id in (B, C):
            self.receive(node_id, ANSWER, first)
        self.assertEqual([second, first], [one.number for one in self.asker.answers])
        self.assertEqual(FREE, self.asker.answers[1].state(job_id))

    def test_one_is_silent(self) -> None:
        """After a second it is over all the same, and known that not all have answered; a late
        answer has no effect."""
        job_id = self.job_id(B)
        number = self.ask(job_id)
        self.receive(C, ANSWER, number, self.entry(job_id))
        self.cluster.run(980)
        self.assertEqual([], self.asker.answers)
        self.cluster.run(40)
        (question,) = self.asker.answers
        self.assertEqual((False, HELD), (question.complete, question.state(job_id)))
        self.receive(B, ANSWER, number, self.entry(job_id, FREE))
        self.assertEqual((1, HELD), (len(self.asker.answers), question.state(job_id)))

    def test_strange_answers(self) -> None:
        """Answers of others, to other questions, for the second time, or about jobs that nobody
        asked about, have no effect."""
        job_id, other = self.job_id(B), self.job_id(B)
        number = self.ask(job_id)
        self.receive(C, ANSWER, number + 1, self.entry(job_id))
        self.existence.receive(D, KeyMessage(KEY_CHECK, number, ANSWER, [self.entry(job_id)]))
        self.receive(C, ANSWER, number, self.entry(other))
        self.receive(C, ANSWER, number, self.entry(job_id))
        self.assertEqual([], self.asker.answers)
        self.receive(B, ANSWER, number)
        (question,) = self.asker.answers
        self.assertEqual((FREE, FREE), (question.state(job_id), question.state(other)))

    def test_member_that_cannot_be_asked(self) -> None:
        """With a member that cannot be reached not all are asked, and without any other the answer
        is there at once: what this node knows itself."""
        self.cluster.part(A)
        self.cluster.run(100)
        held, _ = self.add(A, replicate=1)
        done, unknown = self.job_id(A), self.job_id(A)
        self.node.keys.done_jobs.add(done, self.cluster.now_ms)
        entries = [self.entry(job_id) for job_id in (unknown, done, held)]
        self.existence.ask(self.asker, entries)
        self.cluster.run(2_000)
        (question,) = self.asker.answers
        self.assertFalse(question.complete)
        self.assertEqual([FREE, ENDED, HELD], [question.state(e.job_id) for e in entries])
        self.assertTrue(question.done(done))


class AnswerTests(ExistenceCase):
    """What A answers."""

    def answers(self, *entries: KeyEntry) -> list[tuple[bytes, int]]:
        """What A answers B about these jobs."""
        self.cluster.waiting.clear()
        self.receive(B, 0, 77, *entries)
        ((to, message),) = self.sent()
        self.assertEqual((B, KEY_CHECK), (to, message.type))
        self.assertEqual((ANSWER, 77), (message.status, message.number))
        for entry in message.entries:
            times = int(entry.life_ms), int(entry.keep_ms), int(entry.born_ms)
            self.assertEqual((b"", (0, 0, 0)), (entry.key, times))
        return [(entry.job_id, int(entry.state)) for entry in message.entries]

    def test_each(self) -> None:
        """Jobs that it holds, that are done, and that are done with a kept key; it does not name
        others, nor a kept key of another job."""
        held, _ = self.add(A, b"held", replicate=1)
        acked, _ = self.add(A, b"acked", replicate=1)
        self.node.acknowledge([acked])
        self.cluster.run(100)
        ended = self.job_id(B)
        kept = KeyEntry(b"k", ended, ENDED, 10_000, 10_000, 1)
        self.node.keys._keeper.merge(C, kept)
        entries = [self.entry(one) for one in (held, acked, ended, self.job_id(B))]
        self.assertEqual([(held, HELD), (acked, FREE), (ended, ENDED)], self.answers(*entries))

    def test_copy(self) -> None:
        """A copy does not show that the job was made while its maker can be reached; when it
        cannot, the copy stays from then on. To who knows that it was made it shows that it is
        there."""
        self.cluster.lost = {GOTJOB, KEY_CHECK}
        self.begin_add(C, replicate=3, retry_s=300, timeout_ms=60_000)
        self.cluster.settle()
        (job,) = self.node.jobs.table.values()
        self.assertEqual([(job.id, HELD)], self.answers(self.entry(job.id)))
        self.assertEqual([(job.id, RESERVED)], self.answers(self.entry(job.id, RESERVED)))
        self.assertFalse(job.promised)
        self.cluster.part(C)
        self.cluster.run(100)
        self.assertEqual([(job.id, HELD)], self.answers(self.entry(job.id, RESERVED)))
        self.assertTrue(job.promised)


class CorrectionTests(ExistenceCase):
    """Who names a job that is done gets to know."""

    def corrected(self, job_id: bytes) -> tuple[int, int, int]:
        """State and times that B gets."""
        self.cluster.waiting.clear()
        entry = KeyEntry(b"k", job_id, HELD, 9_000, 8_000, 5)
        self.existence.correct(B, entry)
        ((to, message),) = self.sent()
        self.assertEqual((B, KEY_COPY, DONE), (to, message.type, message.status))
        (known,) = message.entries
        self.assertEqual((b"k", job_id, 5), (known.key, known.job_id, known.born_ms))
        return int(known.state), int(known.life_ms), int(known.keep_ms)

    def test_free(self) -> None:
        """The key is free, also if this node has it still for the job."""
        job_id = self.job_id(C)
        self.assertEqual((FREE, 0, 0), self.corrected(job_id))
        self.node.keys._keeper.merge(C, KeyEntry(b"k", job_id, HELD, 10_000, 10_000, 5))
        self.assertEqual((FREE, 0, 0), self.corrected(job_id))

    def test_kept(self) -> None:
        """With FOR the key is kept for what is left of that here."""
        job_id = self.job_id(C)
        self.node.keys._keeper.merge(C, KeyEntry(b"k", job_id, ENDED, 10_000, 7_000, 5))
        self.cluster.run(1_000)
        self.assertEqual((ENDED, 9_000, 6_000), self.corrected(job_id))

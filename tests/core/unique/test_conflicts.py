"""Two jobs with one key: which of them keeps it, once nodes have said which of them exist."""

from __future__ import annotations

from disque_tx.core.keys.reservation import left
from disque_tx.core.unique.existence import ExistenceQuestion
from disque_tx.messages.bus import BusSink
from disque_tx.messages.bustypes import DELJOB, KEY_CHECK, KEY_COPY
from disque_tx.messages.keys import ANSWER, DONE, ENDED, FREE, HELD, KeyMessage
from disque_tx.messages.nodes import Link
from disque_tx.messages.records import KeyEntry
from disque_tx.wire.bus.parser import BusParser
from tests.core.unique.keybench import STEP_MS, A, B, C, KeyCase


class ConflictCase(KeyCase):
    """A knows a job with the key, and C reports another one; no node answers by itself."""

    members = (A, B, C)

    def setUp(self) -> None:
        super().setUp()
        self.node = self.cluster.up[A]
        self.conflicts = self.node.keys._conflicts
        self.reservations = self.node.keys.reservations
        self.cluster.lost = {KEY_CHECK}

    def entry(self, maker: bytes, born_ms: int, keep_ms: int = 0, life_ms: int = 10**6) -> KeyEntry:
        """The key for a new job of this node."""
        job_id = self.cluster.ids.next_id(maker, 3_600, 60)
        return KeyEntry(b"k", job_id, HELD, life_ms, keep_ms, born_ms)

    def report(self, by: bytes, entry: KeyEntry) -> None:
        """Another node lets A know which job has the key."""
        self.cluster.up[by].state.peers.send(A, KeyMessage(KEY_COPY, 0, 0, [entry]))
        self.cluster.settle()

    def born_ms(self) -> int:
        """When the key was reserved that A knows."""
        return int(self.reservations.by_key[b"k"].born_ms)

    def begin(self, entry: KeyEntry) -> None:
        """C reports another job, and A asks."""
        self.other = entry
        self.report(C, entry)
        self.cluster.run(2 * STEP_MS)
        self.assertEqual(1, len(self.conflicts))
        self.cluster.waiting.clear()

    def answer(self, *known: tuple[bytes, bytes, int], complete: bool = True) -> None:
        """What nodes know of the jobs: node, job ID, state."""
        found = self.reservations.by_key[b"k"]
        entries = [left(found, self.cluster.now_ms), self.other]
        question = ExistenceQuestion(self.conflicts, 0, entries, complete)
        for node_id, job_id, state in known:
            question.record(node_id, job_id, state)
        self.conflicts.answered(question)

    def sent(self, kind: int) -> list[tuple[bytes, int, list[tuple[bytes, int]]]]:
        """Messages about keys that A has just sent: to whom, status, jobs and their states."""
        found = []
        for way, data in self.cluster.waiting:
            parser = BusParser(1 << 20)
            parser.feed(data)
            message = parser.next()
            if way.by == A and isinstance(message, KeyMessage) and message.type == kind:
                jobs = [(entry.job_id, int(entry.state)) for entry in message.entries]
                found.append((way.to, int(message.status), jobs))
        return found

    def holder(self) -> bytes:
        """The job that has the key as far as A knows."""
        return self.reservations.by_key[b"k"].job_id


class AskingTests(ConflictCase):
    """When nodes are asked."""

    def test_reported_again(self) -> None:
        """The same report of the same node changes nothing; one of another node shows that this
        has found out by now, so all are asked again at once."""
        self.add(A, replicate=1)
        other = self.entry(C, self.born_ms() + 1)
        self.begin(other)
        asked = self.cluster.log.count(KEY_CHECK)
        self.report(C, other)
        self.cluster.run(5 * STEP_MS)
        self.assertEqual(asked, self.cluster.log.count(KEY_CHECK))
        self.report(B, other)
        self.cluster.run(5 * STEP_MS)
        self.assertEqual(asked + 2, self.cluster.log.count(KEY_CHECK))
        self.report(B, other)
        self.cluster.run(5 * STEP_MS)
        self.assertEqual(asked + 2, self.cluster.log.count(KEY_CHECK))
        self.assertEqual(1, len(self.conflicts))

    def test_third_job(self) -> None:
        """A report of a third job with the key takes the place of that of the second one: what was
        asked about that counts for nothing."""
        job_id, _ = self.add(A, replicate=1)
        second = self.entry(C, self.born_ms() - 2)
        self.begin(second)
        third = self.entry(C, self.born_ms() - 1)
        self.begin(third)
        self.other = second
        self.answer((A, job_id, HELD), (C, second.job_id, HELD))
        self.assertEqual((1, job_id), (len(self.conflicts), self.holder()))
        self.other = third
        self.answer((A, job_id, HELD), (C, third.job_id, HELD))
        self.assertEqual((0, third.job_id), (len(self.conflicts), self.holder()))

    def test_freed_meanwhile(self) -> None:
        """A key that is free before the answers come, or goes to another job, is in question no
        more."""
        for again in (False, True):
            self.setUp()
            self.add(A, replicate=1)
            self.begin(self.entry(C, self.born_ms() + 1))
            question = ExistenceQuestion(
                self.conflicts, 0, [self.other, self.other], not self.node.keys.view.missing()
            )
            self.reservations.drop(self.reservations.by_key[b"k"])
            if again:
                self.report(C, self.entry(C, self.cluster.now_ms))
            self.conflicts.answered(question)
            self.assertEqual(0, len(self.conflicts), again)

    def test_other_keys(self) -> None:
        """Of two keys in question the other one is asked about when one is free by then, and both
        are named in one message otherwise."""
        for freed in (False, True):
            self.setUp()
            named: list[tuple[bytes, int]] = []
            for name in (b"k", b"k2"):
                job_id, _ = self.add(A, name, replicate=1)
                other = self.entry(C, self.cluster.now_ms + 1)
                other.key = name
                named += [(job_id, HELD), (other.job_id, HELD)]
                self.report(C, other)
            if freed:
                self.reservations.drop(self.reservations.by_key[b"k"])
                del named[:2]
            self.cluster.now_ms += STEP_MS
            self.cluster.begin()
            self.node.run_due()
            self.assertEqual([(B, 0, named), (C, 0, named)], self.sent(KEY_CHECK))
            self.assertEqual(1 if freed else 2, len(self.conflicts))

    def times_s(self, answer: bool) -> list[int]:
        """After how many seconds A asks, until it gives up. B never answers; C says that it holds
        the other job, or does not answer either."""
        begun_ms, found = self.cluster.now_ms, []
        self.report(C, self.other)
        while len(self.conflicts):
            self.cluster.now_ms += STEP_MS
            self.cluster.begin()
            self.node.run_due()
            if self.sent(KEY_CHECK):
                found.append((self.cluster.now_ms - begun_ms) // 1_000)
                if answer:
                    self.confirm(len(found))
            self.cluster.waiting.clear()
        return found

    def confirm(self, number: int) -> None:
        """C answers that it holds the other job."""
        entry = KeyEntry(b"", self.other.job_id, HELD, 0, 0, 0)
        message = KeyMessage(KEY_CHECK, number, ANSWER, [entry])
        message.sender = C
        link = Link(BusSink(), None, b"10.0.0.3", b"", self.cluster.now_ms, 1)
        link.peer_id = C
        self.node.receive(link, message)

    def test_again_and_again(self) -> None:
        """While a member does not answer, nodes are asked less and less often, eight times at the
        most; nothing has changed in the end if the other job was not found."""
        job_id, _ = self.add(A, replicate=1)
        self.other = self.entry(C, self.born_ms() - 1)
        self.assertEqual([0, 2, 5, 10, 19, 36, 69, 134], self.times_s(False))
        self.assertEqual(job_id, self.holder())
        self.assertIsNotNone(self.node.jobs.get(job_id))
        self.assertEqual(0, self.node.totals.keys_doubled + self.node.totals.keys_dropped)

    def test_not_all_asked(self) -> None:
        """If the other job was found, and was first, it gets the key in the end, but the job here
        stays: who did not answer may know that the first one is done."""
        job_id, _ = self.add(A, replicate=1)
        self.other = self.entry(C, self.born_ms() - 1)
        self.assertEqual([0, 2, 5, 10, 19, 36, 69, 134], self.times_s(True))
        self.assertEqual(self.other.job_id, self.holder())
        self.assertIsNotNone(self.node.jobs.get(job_id))
        self.assertEqual((1, 0), (self.node.totals.keys_doubled, self.node.totals.keys_dropped))


class OneLivesTests(ConflictCase):
    """One of the two jobs exists, or none."""

    def test_other_one(self) -> None:
        """The other job gets the key for what is left of its times since it was reported, also if
        these are over by now."""
        for keep_ms, life_ms in ((600_000, 900_000), (0, 900_000), (200, 200)):
            self.setUp()
            job_id, _ = self.add(A, replicate=1)
            self.begin(self.entry(C, self.born_ms() + 1, keep_ms, life_ms))
            begun_ms = self.cluster.now_ms - 2 * STEP_MS
            self.cluster.run(500)
            self.cluster.waiting.clear()
            now_ms = self.cluster.now_ms
            self.answer((C, self.other.job_id, HELD))
            found = self.reservations.by_key[b"k"]
            self.assertEqual((self.other.job_id, HELD), (found.job_id, int(found.state)))
            self.assertEqual(max(now_ms, begun_ms + life_ms), int(found.expire_ms))
            kept_ms = begun_ms + keep_ms
            self.assertEqual(kept_ms if kept_ms > now_ms else 0, int(found.keep_ms))
            self.assertEqual(int(self.other.born_ms), int(found.born_ms))
            self.assertEqual(0, len(self.conflicts))
            self.assertFalse(self.node.keys.done_jobs.has(job_id))

    def test_ours_is_done(self) -> None:
        """That the job here is done is remembered, so that its key is not taken for it again."""
        job_id, _ = self.add(A, replicate=1)
        self.begin(self.entry(C, self.born_ms() + 1))
        self.answer((B, job_id, FREE), (C, self.other.job_id, HELD))
        self.assertTrue(self.node.keys.done_jobs.has(job_id))
        self.assertEqual((self.other.job_id, 0), (self.holder(), len(self.conflicts)))
        self.assertEqual(0, self.node.totals.keys_doubled)

    def test_other_one_is_done(self) -> None:
        """Who reported a job that is done gets to know, and the job here keeps its key. It is
        counted once that there were two if the key was kept for the first one then."""
        for keep_ms, counted in ((0, 0), (200, 0), (10_000, 1)):
            self.setUp()
            job_id, _ = self.add(A, replicate=1)
            self.begin(self.entry(C, self.born_ms() - 1, keep_ms))
            self.cluster.run(500)
            self.cluster.waiting.clear()
            self.answer((A, job_id, HELD), (B, self.other.job_id, FREE))
            self.assertEqual([(C, DONE, [(self.other.job_id, FREE)])], self.sent(KEY_COPY))
            self.assertEqual((job_id, 0), (self.holder(), len(self.conflicts)))
            self.assertTrue(self.node.keys.done_jobs.has(self.other.job_id))
            self.assertEqual(counted, self.node.totals.keys_doubled, keep_ms)
            self.assertEqual(0, self.node.totals.keys_dropped)

    def test_neither(self) -> None:
        """When no node has either job the key is looked at soon, and is free then; meanwhile
        nothing changes."""
        made = self.entry(B, self.cluster.now_ms)
        self.report(B, made)
        self.begin(self.entry(C, self.born_ms() + 1))
        self.answer()
        found = self.reservations.by_key[b"k"]
        self.assertEqual((made.job_id, 0), (found.job_id, len(self.conflicts)))
        self.assertEqual(self.cluster.now_ms, int(found.check_ms))

    def test_ours_only(self) -> None:
        """If only the job here exists, nothing is to be done, and no check is due."""
        made = self.entry(B, self.cluster.now_ms)
        self.report(B, made)
        self.begin(self.entry(C, self.born_ms() + 1))
        due_ms = int(self.reservations.by_key[b"k"].check_ms)
        self.answer((B, made.job_id, HELD))
        found = self.reservations.by_key[b"k"]
        self.assertEqual((made.job_id, due_ms), (found.job_id, int(found.check_ms)))
        self.assertEqual(([], 0), (self.sent(KEY_COPY), len(self.conflicts)))


class BothLiveTests(ConflictCase):
    """Both jobs exist."""

    def test_ours_is_first(self) -> None:
        """The job here keeps the key, and the node that reported the other one gets to know, as
        does the one that made it."""
        for maker, informed in ((C, [C]), (B, [C, B])):
            self.setUp()
            job_id, _ = self.add(A, replicate=1)
            self.begin(self.entry(maker, self.born_ms() + 1))
            self.answer((A, job_id, HELD), (C, self.other.job_id, HELD))
            expected = [(to, 0, [(job_id, HELD)]) for to in informed]
            self.assertEqual(expected, self.sent(KEY_COPY))
            self.assertEqual((job_id, 0), (self.holder(), len(self.conflicts)))
            self.assertEqual(0, self.node.totals.keys_doubled + self.node.totals.keys_dropped)

    def test_made_elsewhere(self) -> None:
        """A later job that another node made loses the key here, and that node gets to know: only
        there it may end."""
        made = self.entry(B, self.cluster.now_ms)
        self.report(B, made)
        self.begin(self.entry(C, self.born_ms() - 1))
        self.answer((B, made.job_id, HELD), (C, self.other.job_id, HELD))
        self.assertEqual([(B, 0, [(self.other.job_id, HELD)])], self.sent(KEY_COPY))
        self.assertEqual((self.other.job_id, 0), (self.holder(), len(self.conflicts)))
        self.assertEqual(0, self.node.totals.keys_doubled + self.node.totals.keys_dropped)

    def test_later_one_ends(self) -> None:
        """A later job of this node that was never delivered ends, here and at its other holders,
        once all nodes have answered, and not before."""
        job_id, _ = self.add(A, replicate=3, retry_s=300)
        self.begin(self.entry(C, self.born_ms() - 1))
        known = ((A, job_id, HELD), (C, self.other.job_id, HELD))
        self.answer(*known, complete=False)
        self.assertEqual((1, job_id), (len(self.conflicts), self.holder()))
        self.assertIsNotNone(self.node.jobs.get(job_id))
        self.answer(*known)
        self.assertEqual((0, self.other.job_id), (len(self.conflicts), self.holder()))
        self.assertIsNone(self.node.jobs.get(job_id))
        self.assertEqual((0, 1), (self.node.totals.keys_doubled, self.node.totals.keys_dropped))
        self.cluster.log.clear()
        self.cluster.settle()
        self.assertEqual(2, self.cluster.log.count(DELJOB))
        for node in self.cluster.up.values():
            self.assertIsNone(node.jobs.get(job_id))

    def test_returned_one_stays(self) -> None:
        """A later job that a client got, or that was returned or delivered again, does not end,
        but is counted."""
        for nacks, deliveries in ((1, 0), (0, 1)):
            self.setUp()
            job_id, _ = self.add(A, replicate=1)
            job = self.node.jobs.get(job_id)
            assert job is not None
            job.nacks, job.deliveries = nacks, deliveries
            self.begin(self.entry(C, self.born_ms() - 1))
            self.answer((A, job_id, HELD), (C, self.other.job_id, HELD))
            self.assertIsNotNone(self.node.jobs.get(job_id))
            totals = self.node.totals
            self.assertEqual((1, 0), (totals.keys_doubled, totals.keys_dropped), nacks)

    def test_done_with_for(self) -> None:
        """A job of this node that is done, while its key was kept for it, counts once as one of
        two, however often that is found."""
        for born in (-1, 1):
            self.setUp()
            job_id, _ = self.add(A, replicate=1, for_s=600)
            self.node.acknowledge([job_id])
            self.cluster.run(100)
            found = self.reservations.by_key[b"k"]
            self.assertEqual(ENDED, int(found.state))
            other = self.entry(C, self.born_ms() + born)
            self.cluster.waiting.clear()
            for _ in range(3):
                self.conflicts.doubled(found, other)
            totals = self.node.totals
            self.assertEqual((int(born < 0), 0), (totals.keys_doubled, totals.keys_dropped), born)
            kept = [(C, 0, [(job_id, ENDED)])] if born > 0 else []
            self.assertEqual(3 * kept, self.sent(KEY_COPY))

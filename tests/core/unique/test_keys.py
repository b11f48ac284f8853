"""Adding a job once, on one node and on several."""

from __future__ import annotations

from typing import Any

from disque_tx.core.jobs.addrequest import Unique
from disque_tx.core.keys.reservation import KEY_BYTES
from disque_tx.core.unique.claim import KeyReceiver
from disque_tx.errors import CommandError
from disque_tx.messages.bustypes import KEY_ANSWER, KEY_CHECK, KEY_COPY, KEY_RESERVE
from tests.core.bench import MemoryLog, add_request
from tests.core.unique.keybench import A, B, C, D, KeyCase


class AloneTests(KeyCase):
    """One node."""

    members = (A,)

    def test_second_adds_nothing(self) -> None:
        """A producer that repeats an ADDJOB gets the ID of the first job."""
        job_id, fresh = self.add(A)
        self.assertEqual(1, fresh)
        self.assertEqual((job_id, 0), self.add(A))
        self.assertEqual(1, len(self.cluster.up[A].jobs))
        self.assertEqual(1, self.cluster.up[A].totals.keys_refused)

    def test_other_keys(self) -> None:
        """Jobs with different keys have nothing to do with each other."""
        self.assertNotEqual(self.add(A, b"k1")[0], self.add(A, b"k2")[0])

    def test_free_when_done(self) -> None:
        """Once the job is acknowledged, the next one with its key is a new one."""
        node = self.cluster.up[A]
        empty = node.used_memory()
        job_id, _ = self.add(A)
        self.assertGreaterEqual(node.used_memory() - empty, KEY_BYTES)
        node.acknowledge([job_id])
        node.serve()
        self.assertEqual(0, len(node.keys))
        self.assertEqual(1, self.add(A)[1])

    def test_free_when_deleted_or_expired(self) -> None:
        """However a job ends, its key is free."""
        node = self.cluster.up[A]
        job_id, _ = self.add(A)
        node.delete([job_id])
        self.assertEqual(1, self.add(A, ttl_s=2)[1])
        self.cluster.run(2_100)
        self.assertEqual(0, len(node.keys))
        self.assertEqual(1, self.add(A)[1])

    def test_kept_for(self) -> None:
        """With FOR the key is kept for so long, even if its job is done before."""
        node = self.cluster.up[A]
        job_id, _ = self.add(A, for_s=10)
        node.acknowledge([job_id])
        self.cluster.run(9_900)
        self.assertEqual((job_id, 0), self.add(A))
        self.cluster.run(200)
        self.assertEqual(1, self.add(A)[1])

    def test_job_lives_longer_than_for(self) -> None:
        """FOR never makes a key end before its job."""
        job_id, _ = self.add(A, for_s=1)
        self.cluster.run(2_000)
        self.assertEqual((job_id, 0), self.add(A))

    def test_refused_job_leaves_no_key(self) -> None:
        """A request that is refused can be repeated with the same key, once it is right."""
        with self.assertRaises(CommandError):
            self.add(A, delay_s=9_000)
        self.assertEqual(0, len(self.cluster.up[A].keys))

    def test_known_key_comes_first(self) -> None:
        """A repeated request gets its job's ID even if the queue takes no more."""
        job_id, _ = self.add(A, maxlen=1)
        self.assertEqual((job_id, 0), self.add(A, maxlen=1))

    def test_out_of_memory(self) -> None:
        """A node that is short of memory takes no more keys, and says so."""
        self.cluster.up[A].memory.limit = 1
        self.cluster.up[A].memory.add(100)
        with self.assertRaises(CommandError) as caught:
            self.add(A)
        self.assertEqual("NOREPL", caught.exception.code)

    def test_flushed(self) -> None:
        """After DEBUG FLUSHALL no key is left."""
        self.add(A, for_s=100)
        self.cluster.up[A].flush_all()
        self.assertEqual(0, len(self.cluster.up[A].keys))
        self.assertEqual(0, len(self.cluster.up[A].state.keys_by_job.by_job))

    def test_million_keys_need_no_timers(self) -> None:
        """A key that ends with its job costs no wake-up of the node."""
        self.add(A, ttl_s=10_000)
        self.assertEqual(-1, self.cluster.up[A].keys.next_due_ms())

    def test_logged(self) -> None:
        """The log has each key as long as it is taken, and no other."""
        node = self.cluster.up[A]
        log = node.outbox.log = MemoryLog()
        job_id, _ = self.add(A)
        self.assertEqual(job_id, log.keys[b"k"].job_id)
        node.acknowledge([job_id])
        node.serve()
        self.assertEqual({}, log.keys)


class ThreeTests(KeyCase):
    """Three nodes."""

    def test_every_node_agrees(self) -> None:
        """Whichever node a producer asks, there is one job."""
        for number, first in enumerate((A, B, C)):
            key = b"key-%d" % number
            job_id, fresh = self.add(first, key, replicate=1)
            self.assertEqual(1, fresh)
            for node_id in (A, B, C):
                self.assertEqual((job_id, 0), self.add(node_id, key, replicate=1))

    def test_with_copies(self) -> None:
        """The client gets the ID once the job has its copies, and the key is taken from then on."""
        job_id, fresh = self.add(A, replicate=3, retry_s=60)
        self.assertEqual(1, fresh)
        self.assertEqual((job_id, 0), self.add(C, replicate=3, retry_s=60))

    def test_done_elsewhere(self) -> None:
        """An acknowledgement on any node frees the key on all."""
        job_id, _ = self.add(A, replicate=3, retry_s=60)
        self.cluster.up[B].acknowledge([job_id])
        self.cluster.settle()
        self.cluster.run(100)
        self.assertEqual([0, 0, 0], [len(node.keys) for node in self.cluster.up.values()])

    def test_two_at_once(self) -> None:
        """Of two producers that add with one key at the same time, one makes a job."""
        clients = [self.begin_add(node_id, replicate=2, retry_s=60) for node_id in (A, B, C)]
        self.cluster.run(2_000)
        answers = [self.reply(client) for client in clients]
        self.assertEqual([0, 0, 1], sorted(answer[1] for answer in answers))  # type: ignore
        self.assertEqual(1, len({answer[0] for answer in answers}))  # type: ignore

    def test_two_at_one_node(self) -> None:
        """So it is on one node, while the first job waits for its copies."""
        clients = [self.begin_add(A, replicate=3, retry_s=60) for _ in range(3)]
        self.cluster.run(2_000)
        answers = [self.reply(client) for client in clients]
        self.assertEqual([0, 0, 1], sorted(answer[1] for answer in answers))  # type: ignore

    def test_owner_dies(self) -> None:
        """When a node that looks after the key dies, the key is still taken, also if the next one
        dies after the first came back without its memory."""
        first, second = self.keepers()
        asker = next(n for n in (A, B, C) if n not in (first, second))
        job_id, _ = self.add(asker, replicate=2, retry_s=60)
        for gone in (first, second, first, second):
            self.cluster.kill(gone)
            self.cluster.run(100)
            for node_id in self.cluster.up:
                self.assertEqual((job_id, 0), self.add(node_id))
            self.cluster.start(gone)
            self.cluster.run(200)

    def test_dies_while_asked(self) -> None:
        """A producer does not wait for a node that dies: the next one is asked instead."""
        first, _ = self.keepers()
        asker = next(n for n in (A, B, C) if n not in self.keepers())
        client = self.begin_add(asker, replicate=1)
        self.cluster.kill(first)
        self.cluster.run(1_000)
        self.assertEqual(1, self.reply(client)[1])  # type: ignore

    def test_lost_messages(self) -> None:
        """What gets lost is asked again."""
        asker = next(n for n in (A, B, C) if n not in self.keepers())
        for kind in (KEY_RESERVE, KEY_ANSWER, KEY_COPY):
            self.cluster.lost = {kind}
            client = self.begin_add(asker, b"k")
            self.cluster.run(100)
            self.cluster.lost = set()
            self.cluster.run(2_000)
            answer: Any = self.reply(client)
            job_id, fresh = answer
            self.assertEqual(1, fresh)
            self.cluster.up[asker].acknowledge([job_id])
            self.cluster.up[asker].serve()
            self.cluster.run(100)


class PartitionTests(KeyCase):
    """A partition, and its end."""

    members = (A, B, C, D)

    def test_later_one_is_dropped(self) -> None:
        """Each side may have a job with the key; afterwards one is left."""
        self.cluster.part(A, B)
        self.cluster.run(100)
        first, _ = self.add(A, replicate=1)
        self.cluster.run(100)
        second, _ = self.add(C, replicate=1)
        self.cluster.heal()
        self.cluster.run(500)
        self.assertIsNone(self.cluster.up[C].jobs.get(second))
        self.assertIsNotNone(self.cluster.up[A].jobs.get(first))
        self.assertEqual(1, self.cluster.up[C].totals.keys_dropped)
        for node_id in self.members:
            self.assertEqual((first, 0), self.add(node_id))

    def test_delivered_one_stays(self) -> None:
        """A job that may be in somebody's hands is not taken away, but counted."""
        self.cluster.part(A, B)
        self.cluster.run(100)
        self.add(A, replicate=1)
        self.cluster.run(100)
        second, _ = self.add(C, replicate=1)
        self.begin_get(C)
        self.cluster.heal()
        self.cluster.run(500)
        self.assertIsNotNone(self.cluster.up[C].jobs.get(second))
        self.assertEqual(1, self.cluster.up[C].totals.keys_doubled)

    def test_counted_when_both_are_done(self) -> None:
        """With FOR it is counted, once, that each side had a job, also if both are done by then."""
        for first_done, second_done in ((True, True), (True, False), (False, True)):
            self.setUp()
            self.cluster.part(A, B)
            self.cluster.run(100)
            first, _ = self.add(A, replicate=1, for_s=600)
            self.cluster.run(100)
            second, _ = self.add(C, replicate=1, for_s=600)
            for done, at, job_id in ((first_done, A, first), (second_done, C, second)):
                self.begin_get(at)
                if done:
                    self.cluster.up[at].acknowledge([job_id])
                    self.cluster.up[at].serve()
            self.cluster.heal()
            self.cluster.run(5_000)
            counted = [int(node.totals.keys_doubled) for node in self.cluster.up.values()]
            self.assertEqual([0, 0, 1, 0], counted, (first_done, second_done))

    def test_counted_when_they_end_meanwhile(self) -> None:
        """The same if both jobs end just when the partition does, while nodes ask each other about
        them."""
        for ask_again in (False, True):
            self.setUp()
            self.cluster.part(A, B)
            self.cluster.run(100)
            jobs = [(A, self.add(A, replicate=1, for_s=600)[0])]
            self.cluster.run(100)
            jobs.append((C, self.add(C, replicate=1, for_s=600)[0]))
            for at, _ in jobs:
                self.begin_get(at)
            self.cluster.lost = {KEY_CHECK}  # so that no answer comes before they have ended
            self.cluster.heal()
            self.cluster.run(200)
            for at, job_id in jobs:
                self.cluster.up[at].acknowledge([job_id])
                self.cluster.up[at].serve()
            self.cluster.settle()
            self.cluster.lost = set()
            if ask_again:
                self.cluster.part(A, B)
                self.cluster.heal()
            self.cluster.run(10_000)
            counted = [int(node.totals.keys_doubled) for node in self.cluster.up.values()]
            self.assertEqual([0, 0, 1, 0], counted, ask_again)


class _Notes(KeyReceiver):
    def __init__(self) -> None:
        self.notes: list[tuple[bytes, bool] | str] = []

    def added(self, job_id: bytes, fresh: bool) -> None:
        self.notes.append((job_id, fresh))

    def refused(self, error: CommandError) -> None:
        self.notes.append(error.code)


class InsideTests(KeyCase):
    """Adding for a part of the node."""

    def add_inside(self, at: bytes) -> _Notes:
        """Add without a client."""
        notes = _Notes()
        request = add_request(ttl_s=3_600, replicate=2, retry_s=60)
        request.unique = Unique(b"k")
        node = self.cluster.up[at]
        node.keys.add(notes, request)
        return notes

    def test_once(self) -> None:
        """All nodes may add the same occurrence: there is one job."""
        found = [self.add_inside(node_id) for node_id in (A, B, C)]
        self.cluster.run(2_000)
        (ids,) = {tuple(one[0] for one in notes.notes) for notes in found}
        self.assertEqual(1, len(ids))
        self.assertEqual([False, False, True], sorted(n.notes[0][1] for n in found))

    def test_given_up(self) -> None:
        """It gets an error in the end, never nothing."""
        self.cluster.lost = {KEY_ANSWER}
        asker = next(n for n in (A, B, C) if n not in self.keepers())
        notes = self.add_inside(asker)
        self.cluster.run(10_100)
        self.assertEqual(["NOREPL"], notes.notes)

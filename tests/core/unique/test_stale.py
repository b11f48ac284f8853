"""Keys of jobs that are done, in the hands of nodes that do not know it."""

from __future__ import annotations

from disque_tx.core.jobs.memory import Memory
from disque_tx.core.keys.done import DONE_BYTES, DONE_MAX, DoneJobs
from disque_tx.messages.bustypes import KEY_ANSWER, KEY_COPY
from disque_tx.messages.keys import ENDED, KeyMessage
from disque_tx.messages.records import KeyEntry
from tests.core.unique.keybench import A, B, C, D, KeyCase, KeyCluster

_KEYS = 20
_NAMES = [b"k%d" % number for number in range(_KEYS)]


class ReturningTests(KeyCase):
    """A node is away while jobs end and others are added with their keys."""

    members: tuple[bytes, ...] = (A, B, C)

    def add_all(self, at: bytes, **options: int) -> list[bytes]:
        """The IDs of new jobs, one with each key."""
        answers = [self.add(at, key, **options) for key in _NAMES]
        self.assertEqual({1}, {fresh for _, fresh in answers})
        return [job_id for job_id, _ in answers]

    def acknowledge(self, at: bytes, job_ids: list[bytes]) -> None:
        """Acknowledge jobs at a node."""
        node = self.cluster.up[at]
        node.acknowledge(job_ids)
        node.serve()
        self.cluster.settle()

    def check_kept(self, job_ids: list[bytes], at: bytes = A) -> None:
        """None of the jobs has ended, and each has its key still, whichever node is asked."""
        node = self.cluster.up[at]
        self.assertEqual(job_ids, [job_id for job_id in job_ids if node.jobs.get(job_id)])
        for asked in self.cluster.up:
            answers = [self.add(asked, key) for key in _NAMES]
            self.assertEqual([(job_id, 0) for job_id in job_ids], answers)
        totals = [other.totals for other in self.cluster.up.values()]
        self.assertEqual(0, sum(int(one.keys_dropped + one.keys_doubled) for one in totals))

    def test_cut_off(self) -> None:
        """A node that was cut off comes back with keys of jobs that were acknowledged meanwhile:
        the jobs that were added with these keys since stay."""
        first = self.add_all(A, replicate=3, retry_s=300)
        self.cluster.part(C)
        self.cluster.run(100)
        self.acknowledge(A, first)
        second = self.add_all(A, replicate=2, retry_s=300)
        self.cluster.heal()
        self.cluster.run(10_000)
        self.check_kept(second)

    def test_cut_off_unnoticed(self) -> None:
        """Nor do jobs end when the others noticed only later that the node was not there."""
        first = self.add_all(A, replicate=3, retry_s=300)
        self.cluster.deaf = {C}
        self.acknowledge(A, first)
        self.cluster.part(C)
        self.cluster.deaf = set()
        self.cluster.run(100)
        second = self.add_all(A, replicate=2, retry_s=300)
        self.cluster.heal()
        self.cluster.run(10_000)
        self.check_kept(second)

    def test_leaving_and_back(self) -> None:
        """A node that was told to leave, and then to stay, passes on nothing out of date."""
        for leaver in (A, B, C):
            self.cluster = KeyCluster(*self.members)
            at = next(node for node in self.members if node != leaver)
            first = self.add_all(at, replicate=3, retry_s=300)
            self.leave(leaver, True)
            self.acknowledge(at, first)
            second = self.add_all(at, replicate=2, retry_s=300)
            self.leave(leaver, False)
            self.cluster.run(10_000)
            self.check_kept(second, at)

    def test_back_before_another_one_leaves(self) -> None:
        """A node that leaves, and then stays after all, looks after keys again from then on: so the
        others can leave."""
        first = [node for node in self.members if node != B]
        self.leave(B, True)
        for node in first[1:]:
            self.leave(node, True)
        done = self.add_all(A, replicate=1, retry_s=300)
        self.leave(B, False)
        self.cluster.run(4_000)
        self.leave(A, True)
        self.cluster.run(4_000)
        self.assertEqual([(one, 0) for one in done], [self.add(B, key) for key in _NAMES])

    def leave(self, leaver: bytes, leaving: bool) -> None:
        """CLUSTER LEAVING at one node, of which the others get to know."""
        self.cluster.up[leaver].membership.set_leaving(leaving)
        for other in self.members:
            if other != leaver:
                membership = self.cluster.up[other].membership
                entry = membership.nodes[leaver]
                entry.flags = self.cluster.up[leaver].membership.myself.flags & ~4
                membership.refresh()
        self.cluster.run(500)

    def test_leaving_when_it_is_made(self) -> None:
        """A job that was begun by a node that leaves before it is made is on another one, and
        keeps its key there."""
        for leaver in (A, B, C):
            for key in _NAMES:
                self.cluster = KeyCluster(*self.members)
                self.cluster.lost = {KEY_ANSWER}
                client = self.begin_add(leaver, key, replicate=1, retry_s=300)
                self.cluster.settle()
                self.leave(leaver, True)
                self.cluster.lost = set()
                self.cluster.run(3_000)
                answer = self.reply(client)
                assert isinstance(answer, list)
                at = next(node for node in self.members if node != leaver)
                self.assertEqual((answer[0], 0), self.add(at, key), (leaver, key))

    def test_stood_still(self) -> None:
        """A node that stood still for some seconds, which no other one has noticed, answers nobody
        by what it knew before."""
        first = self.add_all(A, replicate=1, retry_s=300)
        sleeper = self.cluster.up.pop(C)
        self.acknowledge(A, first)
        self.cluster.run(3_000)
        self.cluster.up[C] = sleeper
        self.cluster.begin()
        self.assertEqual({1}, {self.add(C, key)[1] for key in _NAMES})

    def test_maker_is_away(self) -> None:
        """A key is free when its job is acknowledged, even while the node that made the job is
        away; when it is back, nobody gets the ID of the job that is done."""
        first = self.add_all(C, replicate=3, retry_s=300)
        self.cluster.part(C)
        self.cluster.run(100)
        self.acknowledge(A, first)
        self.cluster.run(100)
        second = self.add_all(B, replicate=2, retry_s=300)
        self.cluster.heal()
        self.cluster.run(3_000)
        self.check_kept(second, B)

    def test_maker_deleted_it(self) -> None:
        """A key is free when its job is acknowledged at another holder, after DELJOB at the node
        that made the job."""
        first = self.add_all(C, replicate=3, retry_s=300)
        self.cluster.up[C].delete(first)
        self.cluster.run(5_000)
        self.assertEqual((first[0], 0), self.add(B, _NAMES[0], replicate=2, retry_s=300))
        self.acknowledge(A, first)
        self.cluster.run(100)
        self.add_all(B, replicate=2, retry_s=300)

    def test_maker_has_forgotten_it(self) -> None:
        """So it is when the node that made the job was started again and knows nothing of it."""
        first = self.add_all(C, replicate=3, retry_s=300)
        self.cluster.kill(C)
        self.cluster.run(100)
        self.cluster.start(C)
        self.cluster.heal()
        self.cluster.run(5_000)
        self.acknowledge(A, first)
        self.cluster.run(100)
        self.add_all(B, replicate=2, retry_s=300)

    def test_maker_vanishes_afterwards(self) -> None:
        """So it is when the node that made the job did not get the acknowledgement, and was found
        to be away only then."""
        first = self.add_all(C, replicate=3, retry_s=300)
        self.cluster.deaf = {C}
        self.acknowledge(A, first)
        self.cluster.run(500)
        self.cluster.part(C)
        self.cluster.run(10_000)
        self.add_all(B, replicate=2, retry_s=300)

    def test_kept_for(self) -> None:
        """With FOR the key stays taken by the job that is done, also at the end of an outage of
        the node that made it."""
        first = [self.add(C, key, for_s=600, replicate=3)[0] for key in _NAMES]
        self.cluster.part(C)
        self.cluster.run(100)
        self.acknowledge(A, first)
        self.cluster.run(100)
        self.cluster.heal()
        self.cluster.run(5_000)
        for node in self.members:
            self.assertEqual([(one, 0) for one in first], [self.add(node, key) for key in _NAMES])

    def test_lies(self) -> None:
        """A key that another node names is not taken from the job that has it, as long as no node
        holds the other job."""
        job_id, _ = self.add(A, replicate=3, retry_s=300)
        stale = KeyEntry(b"k", b"D-cccccccc-" + b"9" * 24 + b"-003d", 2, 10**6, 0, 1)
        for node in self.cluster.up.values():
            node.keys._keeper.merge(C, stale)
        self.cluster.run(10_000)
        for at in self.members:
            self.assertEqual((job_id, 0), self.add(at))


class FiveTests(ReturningTests):
    """More nodes than look after a key, or hold a job."""

    members = (A, B, C, D, b"e" * 40)

    def test_maker_is_away_and_no_keeper_holds_the_job(self) -> None:
        """A holder that does not look after the key frees it all the same."""
        first = self.add_all(C, replicate=3, retry_s=300)
        self.cluster.part(C)
        self.cluster.run(100)
        for job_id in first:
            holder = next(
                name
                for name, node in self.cluster.up.items()
                if name != C and node.jobs.get(job_id)
            )
            self.acknowledge(holder, [job_id])
        self.cluster.run(100)
        self.add_all(A, replicate=2, retry_s=300)


class StartTests(KeyCase):
    """A node that has just started."""

    members = (A, B)

    def test_waits_for_the_others(self) -> None:
        """It answers nobody about keys before it has reached the members that it knows: they may
        have jobs with these keys."""
        job_id, _ = self.add(B, for_s=10, replicate=1)
        self.cluster.up[B].acknowledge([job_id])
        self.cluster.kill(A)
        self.cluster.start(A, linked=False)
        client = self.begin_add(A, replicate=1)
        self.cluster.run(500)
        self.assertEqual([], client.replies.values)  # type: ignore[attr-defined]
        self.cluster.heal()
        self.cluster.run(500)
        self.assertEqual([job_id, 0], self.reply(client))

    def test_does_not_wait_for_ever(self) -> None:
        """A member that cannot be reached for seconds does not stop it."""
        self.cluster.kill(B)
        self.cluster.kill(A)
        self.cluster.start(A)
        client = self.begin_add(A, replicate=1)
        self.cluster.run(6_000)
        self.assertEqual(1, self.reply(client)[1])  # type: ignore[index]


class OtherOpinionTests(KeyCase):
    """A node that believes that another job has the key, with FOR."""

    def test_corrected(self) -> None:
        """It learns which job was first, also when both are done: so all nodes give producers the
        same answer, whichever of them they ask first."""
        job_id, _ = self.add(A, for_s=600, replicate=1)
        self.cluster.up[A].acknowledge([job_id])
        self.cluster.run(100)
        keeper = self.keepers()[0]
        other, maker = [node_id for node_id in self.members if node_id != keeper]
        reservations = self.cluster.up[other].keys.reservations
        born_ms = int(reservations.by_key[b"k"].born_ms) + 1
        later = self.cluster.ids.next_id(maker, 600, 60)
        entry = KeyEntry(b"k", later, ENDED, 600_000, 600_000, born_ms)
        reservations.clear()
        for sender, receiver in ((keeper, other), (other, keeper)):
            message = KeyMessage(KEY_COPY, 0, 0, [entry])
            self.cluster.up[sender].state.peers.send(receiver, message)
            self.cluster.settle()
        self.assertEqual(job_id, reservations.by_key[b"k"].job_id)
        for node_id in self.members:
            self.assertEqual((job_id, 0), self.add(node_id, replicate=1))

    def test_job_is_here(self) -> None:
        """Whoever believes that a job is done does not end its key while this node holds the
        job."""
        keeper, other = self.keepers()
        job_id, _ = self.add(keeper, for_s=1, replicate=1)
        for node_id in (keeper, other):
            done = KeyEntry(b"k", job_id, ENDED, 600_000, 1_000, 0)
            message = KeyMessage(KEY_COPY, 0, 0, [done])
            sender = next(one for one in self.members if one != node_id)
            self.cluster.up[sender].state.peers.send(node_id, message)
        self.cluster.run(3_000)
        for node_id in self.members:
            self.assertEqual((job_id, 0), self.add(node_id, replicate=1))


class DoneJobsTests(KeyCase):
    """What is remembered of jobs that are done."""

    members = (A,)

    def test_bounded(self) -> None:
        """However many jobs end, it takes no more memory than so much; the oldest are forgotten."""
        memory = Memory()
        done = DoneJobs(memory)
        for number in range(DONE_MAX + 10):
            done.add(b"%d" % number, number)
            self.assertLessEqual(memory.used, DONE_MAX * DONE_BYTES)
        self.assertEqual(DONE_MAX // 2 + 10, len(done))
        self.assertFalse(done.has(b"%d" % (DONE_MAX // 2 - 1)))
        self.assertTrue(done.has(b"%d" % (DONE_MAX // 2)))
        self.assertEqual([b"%d" % (DONE_MAX + 9)], done.since(DONE_MAX + 9))
        done.add(b"%d" % (DONE_MAX + 9), 0)
        self.assertEqual(DONE_BYTES * len(done), memory.used)
        done.clear()
        self.assertEqual(0, memory.used)

    def test_nobody_to_tell(self) -> None:
        """A node by itself remembers nothing."""
        job_id, _ = self.add(A)
        self.cluster.up[A].acknowledge([job_id])
        self.cluster.up[A].serve()
        self.assertEqual(0, len(self.cluster.up[A].keys.done_jobs))

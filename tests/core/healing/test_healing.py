"""Copies of jobs are made again when their holders are lost (cluster protocol, section 21.11)."""

from __future__ import annotations

from collections import Counter

from disque_tx.core.healing.healing import NO_ANSWER
from disque_tx.core.jobs.job import PRIORITY, Job
from disque_tx.core.queues.queues import PAUSE_IN
from disque_tx.messages.bustypes import CAN_LIST, DELJOB, HOLDERS, REPLJOB
from disque_tx.messages.holders import HoldersMessage
from disque_tx.messages.nodes import FAIL
from disque_tx.messages.records import ACKED
from tests.core.flowbench import Direction
from tests.core.healing.healbench import AFTER_MS, LONG_MS, HealCase

_PAST_MS = AFTER_MS + 5_000


class LostTests(HealCase):
    """A holder is lost."""

    def test_made_again(self) -> None:
        """A job whose holder has failed for long enough has as many copies as before."""
        job_id = self.add_job(0)
        self.kill(self.other_holder(0, job_id))
        self.pass_ms(_PAST_MS)
        self.assertEqual(2, len(self.holders(job_id)))
        self.assertEqual(1, sum(self.made()))

    def test_not_before(self) -> None:
        """A node that fails for a shorter time may come back with its copies."""
        job_id = self.add_job(0)
        self.kill(self.other_holder(0, job_id))
        self.pass_ms(AFTER_MS - 5_000)
        self.assertEqual(1, len(self.holders(job_id)))

    def test_maker_is_lost(self) -> None:
        """The job survives when first one holder is lost, then the other: copies are made of
        copies."""
        job_id = self.add_job(0)
        self.kill(0)
        self.pass_ms(_PAST_MS)
        first = self.holders(job_id)
        self.assertEqual(2, len(first))
        self.kill(first[0])
        self.pass_ms(_PAST_MS)
        self.assertEqual(2, len(self.holders(job_id)))

    def test_every_copy(self) -> None:
        """Two of three copies that are lost at once are both made again, by one node."""
        job_id = self.add_job(0, replicate=3)
        for node in self.holders(job_id)[1:]:
            self.kill(node)
        self.pass_ms(_PAST_MS)
        self.assertEqual(3, len(self.holders(job_id)))
        self.assertEqual([2], [made for made in self.made() if made])

    def test_forgotten(self) -> None:
        """A node that was removed from the cluster is lost at once."""
        job_id = self.add_job(0)
        lost = self.other_holder(0, job_id)
        self.kill(lost)
        for node in self.flow.running():
            node.cluster.forget(self.flow.ids[lost])
        self.pass_ms(5_000)
        self.assertEqual(2, len(self.holders(job_id)))

    def test_never(self) -> None:
        """With ``replicate-again-after 0`` no node is lost by failing."""
        job_id = self.add_job(0)
        for node in self.flow.nodes:
            node.healing.nodes.after_ms = 0
        self.kill(self.other_holder(0, job_id))
        self.pass_ms(LONG_MS)
        self.assertEqual(1, len(self.holders(job_id)))

    def test_back(self) -> None:
        """A holder that is back before its time keeps what it has, and no copy is made."""
        job_id = self.add_job(0)
        holder = self.other_holder(0, job_id)
        for here in range(self.nodes):
            if here != holder:
                self.flow.entry(here, holder).flags |= FAIL
                self.flow.entry(here, holder).failed_ms = self.flow.now_ms
        self.pass_ms(AFTER_MS // 2)
        for here in range(self.nodes):
            if here != holder:
                self.flow.entry(here, holder).flags &= ~FAIL
        self.pass_ms(LONG_MS)
        self.assertEqual([0] * self.nodes, self.made())

    def test_smallest_id(self) -> None:
        """Of the nodes that have a copy, the one with the smallest ID makes the missing one, and
        the others none."""
        job_id = self.add_job(0, replicate=4)
        self.kill(0)
        maker = self.holders(job_id)[0]
        self.pass_ms(_PAST_MS)
        self.assertEqual([maker], [at for at, made in enumerate(self.made()) if made])

    def test_next_one(self) -> None:
        """The next holder makes the copies when the first one makes none for ten seconds."""
        job_id = self.add_job(0, replicate=3)
        first, second, lost = sorted(self.holders(job_id))
        self.flow.nodes[first].healing.rate.per_s = 0
        self.kill(lost)
        self.pass_ms(AFTER_MS + 6_000)
        self.assertEqual(2, len(self.holders(job_id)))
        self.pass_ms(20_000)
        self.assertEqual(3, len(self.holders(job_id)))
        self.assertEqual([second], [at for at, made in enumerate(self.made()) if made])

    def test_too_few_nodes(self) -> None:
        """Where there are not enough nodes for all copies, none is missing; a new node gets
        them."""
        job_id = self.add_job(0, replicate=5)
        self.kill(4)
        self.pass_ms(_PAST_MS)
        self.assertEqual(0, self.flow.nodes[0].healing.lacking)
        self.flow.join()
        self.pass_ms(30_000)
        self.assertEqual(5, len(self.holders(job_id)))

    def test_nowhere_to(self) -> None:
        """A job that lacks a copy while no node can be reached gets it once one can be."""
        job_id = self.add_job(0, replicate=2)
        holder = self.other_holder(0, job_id)
        others = [at for at in range(1, self.nodes) if at != holder]
        for at in others:
            self.refuse(at)
        self.kill(holder)
        self.pass_ms(_PAST_MS + 20_000)
        self.assertEqual([0], self.holders(job_id))
        healing = self.flow.nodes[0].healing
        self.assertEqual((1, NO_ANSWER), (healing.lacking, healing.obstacle))
        for at in others:
            self.flow.nodes[at].memory.limit = 0
        self.pass_ms(30_000)
        self.assertEqual(2, len(self.holders(job_id)))

    def refuse(self, at: int) -> None:
        """A node has no memory for jobs."""
        memory = self.flow.nodes[at].memory
        memory.limit = 1_000
        memory.add(2_000)

    def test_pending(self) -> None:
        """It is known when a node may be forgotten: when all its copies have been made again."""
        job_id = self.add_job(0)
        lost = self.other_holder(0, job_id)
        healing, lost_id = self.flow.nodes[0].healing, self.flow.ids[lost]
        healing.rate.set(0)
        self.kill(lost)
        self.assertTrue(healing.copies_pending(lost_id))
        self.pass_ms(_PAST_MS)
        self.assertTrue(healing.copies_pending(lost_id))
        healing.rate.set(100)
        self.pass_ms(25_000)
        self.assertFalse(healing.copies_pending(lost_id))

    def test_given_up(self) -> None:
        """The copies of a node that is to be forgotten are made again at once, however long nodes
        may fail otherwise; unless it is back."""
        job_id = self.add_job(0)
        lost = self.other_holder(0, job_id)
        for node in self.flow.nodes:
            node.healing.set_after(3_600_000)
        self.kill(lost)
        self.pass_ms(5_000)
        self.assertEqual(1, len(self.holders(job_id)))
        for node in self.flow.running():
            node.healing.copies_pending(self.flow.ids[lost])
        self.pass_ms(5_000)
        self.assertEqual(2, len(self.holders(job_id)))
        healing = self.flow.nodes[0].healing
        self.assertFalse(healing.copies_pending(self.flow.ids[lost]))
        self.flow.entry(0, lost).flags &= ~FAIL
        self.pass_ms(1_000)
        self.assertEqual({}, healing.nodes.lost)

    def test_never_pending(self) -> None:
        """Where copies are never made again, a node may be forgotten at any time."""
        healing = self.flow.nodes[0].healing
        healing.set_after(0)
        self.kill(1)
        self.assertFalse(healing.copies_pending(self.flow.ids[1]))

    def test_rate_of_none(self) -> None:
        """With ``replicate-again-rate 0`` jobs that lack copies are counted, and wait until there
        is a rate again."""
        job_id = self.add_job(0)
        healing = self.flow.nodes[0].healing
        healing.rate.set(0)
        self.kill(self.other_holder(0, job_id))
        self.pass_ms(_PAST_MS)
        self.assertEqual(
            (1, "paused", 1), (healing.lacking, healing.why_not(), len(self.holders(job_id)))
        )
        healing.rate.set(100)
        self.pass_ms(15_000)
        self.assertEqual(
            (0, "", 2), (healing.lacking, healing.why_not(), len(self.holders(job_id)))
        )

    def test_rate_of_none_meanwhile(self) -> None:
        """A rate that becomes 0 while copies are made stops them, and the walk over the jobs, which
        keeps their table from becoming smaller."""
        for _ in range(50):
            self.add_job(0, replicate=2)
        for node in self.flow.nodes:
            node.healing.rate.set(2)
        self.kill(max(range(1, 5), key=lambda at: len(self.flow.nodes[at].jobs)))
        self.pass_ms(AFTER_MS + 2_000)
        healing = self.flow.nodes[0].healing
        healing.rate.set(0)
        self.pass_ms(3_000)
        self.assertEqual(1, healing.progress())
        self.assertEqual(0, self.flow.nodes[0].jobs.table.walks)
        made = sum(self.made())
        self.pass_ms(30_000)
        self.assertEqual(made, sum(self.made()))
        self.assertTrue(healing.lacking > 0)

    def test_idle(self) -> None:
        """Nodes whose jobs have all their copies, on nodes that are there, look at none of them."""
        self.add_job(0)
        self.pass_ms(5_000)
        self.assertEqual([-1] * 5, [int(node.healing.next_due_ms()) for node in self.flow.nodes])

    def test_once_only(self) -> None:
        """A job with RETRY 0 is kept by one node, and never copied."""
        self.add(0, replicate=1, retry_s=0)
        self.kill(1)
        self.pass_ms(_PAST_MS)
        self.assertEqual([0] * self.nodes, self.made())

    def test_many(self) -> None:
        """Copies are made at the configured rate, and no faster."""
        for _ in range(500):
            self.add_job(0)
        for node in self.flow.nodes:
            node.healing.rate.per_s = 20
        victim = max(range(1, 5), key=lambda at: len(self.flow.nodes[at].jobs))
        missing = len(self.flow.nodes[victim].jobs)
        self.kill(victim)
        self.pass_ms(AFTER_MS + 2_000)
        self.assertTrue(sum(self.made()) <= 2 * 20 + 3 * 20, self.made())
        self.assertTrue(self.flow.nodes[0].healing.lacking > 0)
        self.pass_ms(30_000)
        self.assertEqual(missing, sum(self.made()))
        self.assertEqual(0, self.flow.nodes[0].healing.lacking)

    def test_slowly(self) -> None:
        """A rate of less than ten is kept as well: one copy a second makes ten in ten seconds, and
        no more than time has passed since the node was lost, and than a part of a walk holds."""
        for _ in range(20):
            self.add_job(0, replicate=5)
        self.flow.nodes[0].healing.rate.set(1)
        self.kill(4)
        self.flow.join()
        self.pass_ms(AFTER_MS + 12_000)
        self.assertTrue(9 <= self.made()[0] <= 13 + 6, self.made())

    def test_counted_down(self) -> None:
        """Who waits for another node to make copies knows how many are lacking at any time, and
        looks through its jobs only when that one has made none for ten seconds."""
        for _ in range(40):
            self.add_job(0, replicate=4)
        self.flow.nodes[0].healing.rate.set(2)
        self.kill(4)
        self.pass_ms(AFTER_MS + 2_000)
        for _ in range(12):
            self.pass_ms(500)
            for node in self.flow.nodes[1:4]:
                of = node.healing.shortages.of
                lacking = [job for job in node.jobs.table.values() if of(job) is not None]
                self.assertEqual(len(lacking), node.healing.lacking)
                self.assertEqual(1.0, node.healing.progress())
        self.assertTrue(0 < self.flow.nodes[1].healing.lacking < 30)
        self.flow.nodes[0].healing.rate.set(100)
        self.pass_ms(15_000)
        self.assertEqual([0] * 4, [int(node.healing.lacking) for node in self.flow.nodes[:4]])
        self.assertEqual([0, 0, 0], self.made()[1:4])

    def test_passed(self) -> None:
        """A job that lacks a copy while it is watched whether another one is confirmed late gets it
        after that, although nothing else is lacking."""
        job_id = self.add_job(0)
        self.kill(self.other_holder(0, job_id))
        self.pass_ms(AFTER_MS - 1_000)
        self.flow.nodes[0].healing.repairs.watch(self.job(0, job_id), {b"f" * 40})
        self.pass_ms(3_000)
        self.assertEqual((1, 1), (len(self.holders(job_id)), self.flow.nodes[0].healing.lacking))
        self.pass_ms(15_000)
        self.assertEqual((2, 0), (len(self.holders(job_id)), self.flow.nodes[0].healing.lacking))


class WhatTravelsTests(HealCase):
    """What the new copy is like."""

    def lose_other(self, job_id: bytes) -> int:
        """The other holder of a job of node 0 is lost; returns who has the new copy."""
        self.kill(self.other_holder(0, job_id))
        self.pass_ms(_PAST_MS)
        return self.other_holder(0, job_id)

    def test_list(self) -> None:
        """All holders know all holders, so that an acknowledgement reaches every copy."""
        job_id = self.add_job(0, replicate=3)
        self.kill(self.other_holder(0, job_id))
        self.pass_ms(_PAST_MS)
        lists = [set(self.job(at, job_id).nodes) for at in self.holders(job_id)]
        self.assertEqual(lists, [lists[0]] * 3)

    def test_one_list_for_many(self) -> None:
        """Jobs of a turn with the same holders share a list: each holder gets it once, and knows
        the new holders of each job."""
        jobs = [self.add_job(0, replicate=4) for _ in range(60)]
        self.kill(4)
        self.flow.sent.clear()
        self.pass_ms(_PAST_MS)
        lists = [m for _, _, m in self.flow.sent if isinstance(m, HoldersMessage)]
        named = Counter(job_id for message in lists for job_id in message.job_ids)
        made_again = sum(self.made())
        self.assertEqual({job_id: 2 for job_id in jobs if named[job_id]}, dict(named))
        self.assertEqual((len(named), True), (made_again, len(lists) <= 12), len(lists))
        for job_id in jobs:
            kept = [set(self.job(at, job_id).nodes) for at in self.holders(job_id)]
            self.assertEqual([kept[0]] * 4, kept)
            self.assertEqual(0, self.flow.nodes[1].healing.lacking)

    def test_one_list_each(self) -> None:
        """A holder of a former version, which takes no list of several jobs, gets one for each."""
        jobs = [self.add_job(0, replicate=4) for _ in range(20)]
        for at in range(1, 5):
            link = self.flow.entry(0, at).link
            assert link is not None
            link.features &= ~CAN_LIST
        self.kill(4)
        self.flow.sent.clear()
        self.pass_ms(_PAST_MS)
        lists = [m for _, _, m in self.flow.sent if isinstance(m, HoldersMessage)]
        self.assertEqual(2 * sum(self.made()), len(lists))
        self.assertEqual({1}, {len(message.job_ids) for message in lists})
        for job_id in jobs:
            kept = [set(self.job(at, job_id).nodes) for at in self.holders(job_id)]
            self.assertEqual([kept[0]] * 4, kept)

    def test_large_bodies(self) -> None:
        """Copies of large jobs are spread over turns: a node does not write hundreds of megabytes
        at once."""
        self.body = b"x" * 256 * 1024
        for _ in range(120):
            self.add_job(0)
        healing = self.flow.nodes[0].healing
        healing.rate.set(100_000)
        lost = max(range(1, 5), key=lambda at: len(self.flow.nodes[at].jobs))
        missing = len(self.flow.nodes[lost].jobs)
        self.kill(lost)
        self.pass_ms(AFTER_MS - 1_000)
        most = made = 0
        while made < missing:
            self.flow.tick()
            self.flow.run(1)
            most = max(most, self.made()[0] - made)
            made = self.made()[0]
        a_turn = 200 * 16 // 256 + 1 + 7  # the budget, one more, and the rest of a bucket
        self.assertTrue(0 < most <= 2 * a_turn < missing, (most, missing))

    def test_list_alone(self) -> None:
        """A holder that has forgotten the job, because it is done, does not get it back."""
        job_id = self.add_job(0, replicate=3)
        lost, other = [at for at in self.holders(job_id) if at != 0]
        self.flow.sent.clear()
        self.kill(lost)
        self.pass_ms(_PAST_MS)
        kinds = [
            m.type for _, to, m in self.flow.sent if to == other and m.type in (HOLDERS, REPLJOB)
        ]
        self.assertEqual([HOLDERS], kinds)

    def test_acknowledged(self) -> None:
        """The acknowledgement by any holder ends the new copy."""
        job_id = self.add_job(0)
        new = self.lose_other(job_id)
        self.flow.nodes[0].acknowledge([job_id])
        self.flow.settle()
        self.assertEqual(ACKED, self.job(new, job_id).state)

    def test_acknowledged_at_new(self) -> None:
        """An acknowledgement at the node with the new copy ends the others."""
        job_id = self.add_job(0)
        new = self.lose_other(job_id)
        self.flow.nodes[new].acknowledge([job_id])
        self.flow.settle()
        self.assertEqual(ACKED, self.job(0, job_id).state)

    def test_not_delivered_again(self) -> None:
        """A new copy of a queued job waits for RETRY: the job is delivered once."""
        job_id = self.add_job(0)
        self.lose_other(job_id)
        self.assertEqual(1, sum(self.length(at) for at in range(self.nodes)))

    def test_delay(self) -> None:
        """A new copy of a delayed job waits for the rest of the delay, and a RETRY: never less."""
        job_id = self.add_job(0, delay_s=300, ttl_s=86_400)
        due_ms = int(self.job(0, job_id).qtime_ms)
        new = self.lose_other(job_id)
        self.assertEqual([0] * self.nodes, [self.length(at) for at in range(self.nodes)])
        late_ms = int(self.job(new, job_id).qtime_ms) - due_ms
        self.assertTrue(600_000 - 500 <= late_ms <= 600_000 + 500, late_ms)

    def test_counters_and_priority(self) -> None:
        """NACKs, deliveries and the priority are those of the job."""
        job_id = self.add_job(0)
        self.take(0, 1)
        self.flow.nodes[0].enqueue([job_id], True)
        self.take(0, 1)
        self.job(0, job_id).priority = 7
        new = self.lose_other(job_id)
        copy = self.job(new, job_id)
        self.assertEqual((1, 7), (copy.nacks, copy.priority))
        self.assertNotEqual(7, PRIORITY)

    def test_priority_on_a_new_connection(self) -> None:
        """A node that is asked again on a new connection gets all of that, too."""
        job_id = self.add_job(0)
        self.job(0, job_id).priority = 7
        lost = self.other_holder(0, job_id)
        others = [at for at in range(1, 5) if at != lost]
        for at in others:
            link = self.flow.entry(0, at).link
            assert link is not None and isinstance(link.sink, Direction)
            link.sink.cut = True
        self.kill(lost)
        self.pass_ms(_PAST_MS)
        self.assertEqual([0], self.holders(job_id))
        for at in others:
            self.flow.disconnect(0, at)
            self.flow.connect(0, at)
        self.pass_ms(15_000)
        found = self.holders(job_id)
        self.assertTrue(len(found) >= 2, found)
        self.assertEqual({7}, {int(self.job(at, job_id).priority) for at in found})

    def test_paused(self) -> None:
        """A queue that takes no new jobs still gets its lost copies back."""
        job_id = self.add_job(0)
        for node in self.flow.nodes:
            node.pause(b"q", PAUSE_IN)
        self.lose_other(job_id)
        self.assertEqual(2, len(self.holders(job_id)))

    def test_life(self) -> None:
        """A new copy lives as long as the job, and no longer."""
        job_id = self.add_job(0, ttl_s=3_600)
        new = self.lose_other(job_id)
        earlier_ms = int(self.job(0, job_id).expire_ms - self.job(new, job_id).expire_ms)
        self.assertTrue(0 <= earlier_ms < 1_000, earlier_ms)


class LeavingTests(HealCase):
    """A holder leaves the cluster."""

    def test_others_get_copies(self) -> None:
        """As soon as a node says that it leaves, others get the copies that it has."""
        job_id = self.add_job(0)
        self.announce_leaving(self.other_holder(0, job_id))
        self.pass_ms(5_000)
        self.assertEqual(3, len(self.holders(job_id)))

    def test_only_holder(self) -> None:
        """A node that leaves makes copies of the jobs that nobody else has."""
        job_id = self.add_job(0, replicate=1)
        self.announce_leaving(0)
        self.pass_ms(5_000)
        self.assertEqual(2, len(self.holders(job_id)))


class UnconfirmedTests(HealCase):
    """A node was asked for a copy, and did not confirm it in time."""

    nodes = 4

    def begin(self, silent: int) -> bytes:
        """A job with two copies; a third node was asked first, and said nothing."""
        node = self.flow.nodes[0]
        others = [self.flow.entry(0, at) for at in range(1, 4)]
        node.membership.reachable = [self.flow.entry(0, silent)]
        link = self.flow.entry(0, silent).link
        assert link is not None and isinstance(link.sink, Direction)
        link.sink.cut = True
        self.add(0, replicate=2, retry_s=600)
        node.membership.reachable = others
        self.flow.run(100)
        link.sink.cut = False
        (job,) = node.jobs.table.values()
        self.assertEqual((3, 2), (len(job.nodes), len(self.holders(job.id))))
        return job.id

    def test_not_a_holder(self) -> None:
        """A node that answers pings and did not confirm has no copy: when another holder is lost,
        the missing one is made."""
        job_id = self.begin(1)
        self.pass_ms(10_000)
        self.kill(self.other_holder(0, job_id))
        self.pass_ms(_PAST_MS)
        self.assertEqual(2, len(self.holders(job_id)))

    def test_soon(self) -> None:
        """A node that confirms in the turn after that, as nearly all do, is a holder."""
        node = self.flow.nodes[0]
        job_id = self.add_job(0)
        job = self.job(0, job_id)
        third = next(at for at in range(1, 4) if self.flow.ids[at] not in job.nodes)
        node.jobs.set_holders(job, (*job.nodes, self.flow.ids[third]))
        node.replication.unconfirmed[job] = {self.flow.ids[third]}
        self.flow.nodes[third].replication.keep(self.flow.entry(third, 0), job, 3_600, 0)
        self.flow.settle()
        self.assertEqual({}, node.healing.repairs.by_job)
        self.pass_ms(10_000)
        self.assertIn(self.flow.ids[third], job.nodes)

    def test_connection_replaced(self) -> None:
        """A node whose connection broke while it was asked is asked again: it may have a copy or
        not, and would count as a holder for ever."""
        job_id = self.begin(1)
        self.flow.disconnect(0, 1)
        self.pass_ms(8_000)
        self.flow.connect(0, 1)
        self.pass_ms(8_000)
        listed = {self.flow.ids.index(node_id) for node_id in self.job(0, job_id).nodes}
        self.assertEqual(sorted(listed), self.holders(job_id))

    def test_done_meanwhile(self) -> None:
        """A job that is done before all have confirmed is not under way for ever: INFO would say
        so, and the node would make fewer copies of others."""
        job_id = self.begin(1)
        self.assertEqual([job_id], [*self.flow.nodes[0].healing.repairs.by_job])
        self.flow.nodes[0].fast_acknowledge([job_id])
        self.pass_ms(10_000)
        self.assertEqual({}, self.flow.nodes[0].healing.repairs.by_job)

    def test_late(self) -> None:
        """A node that confirms late is a holder: the acknowledgement reaches it."""
        job_id = self.begin(1)
        self.pass_ms(10_000)
        late = self.flow.nodes[1]
        late.replication.keep(self.flow.entry(1, 0), self.job(0, job_id), 3_600, 0)
        self.flow.settle()
        self.flow.nodes[0].acknowledge([job_id])
        self.flow.settle()
        self.assertEqual([], self.holders(job_id))

    def test_too_late(self) -> None:
        """When the job is done by then, the late copy ends."""
        job_id = self.begin(1)
        self.pass_ms(10_000)
        record = self.job(0, job_id)
        self.flow.nodes[0].acknowledge([job_id])
        self.flow.settle()
        self.assertIsNone(self.flow.nodes[0].jobs.get(job_id))
        self.late_copy(record)
        self.assertEqual([], self.holders(job_id))

    def test_forgotten_here(self) -> None:
        """DELJOB makes one node forget a job, which lives on elsewhere: the late copy is none of a
        job that is done, and does not end the others."""
        job_id = self.begin(1)
        self.pass_ms(10_000)
        record = self.job(0, job_id)
        other = self.other_holder(0, job_id)
        self.flow.nodes[0].acks.delete([job_id])
        self.late_copy(record)
        self.assertEqual(sorted([1, other]), self.holders(job_id))

    def test_given_away(self) -> None:
        """Nor does it when this node left empty, and others hold the job. (Seed 14001133.)"""
        job_id = self.begin(1)
        self.pass_ms(10_000)
        record = self.job(0, job_id)
        self.announce_leaving(0)
        self.flow.nodes[0].evacuation.begin()
        self.pass_ms(20_000)
        self.assertIsNone(self.flow.nodes[0].jobs.get(job_id))
        self.late_copy(record)
        self.assertIn(1, self.holders(job_id))
        self.assertLess(1, len(self.holders(job_id)))

    def late_copy(self, record: Job) -> None:
        """The node that was asked first has the copy now, and confirms it."""
        self.flow.nodes[1].replication.keep(self.flow.entry(1, 0), record, 3_600, 0)
        self.flow.settle()


class HostTests(HealCase):
    """Several nodes share a host: 0 and 1 one, 2 and 3 another; 4 has its own."""

    def setUp(self) -> None:
        super().setUp()
        hosts = {0: b"10.0.0.1", 1: b"10.0.0.1", 2: b"10.0.0.2", 3: b"10.0.0.2", 4: b"10.0.0.3"}
        for here, node in enumerate(self.flow.nodes):
            node.membership.myself.ip = hosts[here]
            for there, ip in hosts.items():
                if there != here:
                    self.flow.entry(here, there).ip = ip
            node.membership.refresh()

    def test_host_of_the_lost(self) -> None:
        """Another node on the host of the lost one is as good as one on a host without any."""
        job_ids = [self.add_job(0, replicate=3) for _ in range(20)]
        self.kill(2)
        self.kill(4)
        self.pass_ms(_PAST_MS)
        for job_id in job_ids:
            self.assertIn(3, self.holders(job_id))

    def test_only_copy_elsewhere(self) -> None:
        """A copy is missing when all that are left are on one host, although they are enough."""
        job_id = self.add_job(0, replicate=2)
        holder = self.other_holder(0, job_id)
        second = self.job(0, job_id)
        self.flow.nodes[1].replication.keep(self.flow.entry(1, 0), second, 3_600, 0)
        for at in (0, 1, holder):
            self.flow.nodes[at].jobs.merge_holders(self.job(at, job_id), (self.flow.ids[1],))
        self.kill(holder)
        self.pass_ms(_PAST_MS)
        self.assertEqual(3, len(self.holders(job_id)))


class WithdrawnTests(HealCase):
    """A job is gone while copies of it are being made."""

    def test_withdrawn(self) -> None:
        """The node that was adding a job gives up, while a holder has just sent the job to a third
        node: no copy stays there, which nobody else knows of."""
        job_id = self.add_job(0, replicate=3)
        holder, lost = [at for at in self.holders(job_id) if at != 0]
        self.kill(lost)
        healing = self.flow.nodes[holder].healing
        self.flow.nodes[0].healing.rate.per_s = 0
        while job_id not in healing.repairs.by_job:
            self.flow.now_ms += 100
            self.flow.begin()
            for node in self.flow.running():
                for watcher in node.cluster.watchers:
                    watcher.links_changed()
                node.run_due()
        self.flow.nodes[holder].receive_signal(self.flow.entry(holder, 0), DELJOB, job_id, 0)
        self.flow.nodes[0].delete([job_id])
        self.flow.settle()
        self.assertEqual([], self.holders(job_id))

"""Nodes that were started again get what they have lost (cluster protocol, section 21.14)."""

from __future__ import annotations

from disque_tx.core import recovery
from disque_tx.core.healing.restarts import BATCH_MAX
from disque_tx.messages.bustypes import HANDOVER, REPLJOB
from disque_tx.messages.handover import (
    ANSWER,
    FULL,
    NOT_HELD,
    RESTARTED,
    HandoverEntry,
    HandoverMessage,
)
from disque_tx.messages.nodes import LEAVING
from tests.core.bench import MemoryLog
from tests.core.flowbench import Direction
from tests.core.healing.healbench import AFTER_MS, HealCase

_SOON_MS = 4_000


class RestartTests(HealCase):
    """Nodes that are started again without what they had."""

    def restart(self, at: int) -> None:
        """A node comes back at once, empty."""
        self.flow.restart(at)
        self.flow.nodes[at].healing.nodes.after_ms = 12_000

    def test_empty(self) -> None:
        """A node that comes back without its copy has it again soon: it may be the only one left
        by tomorrow."""
        job_id = self.add_job(0)
        holder = self.other_holder(0, job_id)
        self.restart(holder)
        self.assertEqual([0], self.holders(job_id))
        self.pass_ms(_SOON_MS)
        self.assertEqual([0, holder], self.holders(job_id))
        self.assertEqual(1, sum(self.made()))

    def test_one_after_the_other(self) -> None:
        """All nodes can be started again in turn, without a log, and no job is lost."""
        ids = [self.add_job(at % 5) for at in range(20)]
        for at in range(self.nodes):
            self.restart(at)
            self.pass_ms(_SOON_MS)
        for job_id in ids:
            self.assertEqual(2, len(self.holders(job_id)))

    def test_added_there(self) -> None:
        """The node to which the client added the job is a holder like any other."""
        job_id = self.add_job(0)
        self.restart(0)
        self.pass_ms(_SOON_MS)
        self.assertEqual(2, len(self.holders(job_id)))
        self.assertIn(0, self.holders(job_id))

    def test_delay(self) -> None:
        """A delayed job that comes back to a node waits there for the rest of its DELAY."""
        job_id = self.add_job(0, delay_s=100)
        holder = self.other_holder(0, job_id)
        self.pass_ms(20_000)
        self.restart(holder)
        self.pass_ms(_SOON_MS)
        job = self.job(holder, job_id)
        left_ms = job.qtime_ms - job.retry_s * 1_000 - self.flow.now_ms
        self.assertTrue(70_000 < left_ms < 80_000, left_ms)

    def test_delay_after_two_starts(self) -> None:
        """A node that got a delayed job of its own back, and is started again with its log, does
        not deliver it before its DELAY is over: nobody has queued it yet."""
        job_id = self.add_job(0, delay_s=100, retry_s=1)
        self.pass_ms(20_000)
        self.restart(0)
        log = self.flow.nodes[0].outbox.log = MemoryLog()
        self.pass_ms(_SOON_MS)
        self.restart(0)
        self.assertTrue(recovery.load(self.flow.nodes[0], log.records[job_id], True))
        self.assertGreater(self.job(0, job_id).qtime_ms - self.flow.now_ms, 70_000)

    def test_given_to_another_node(self) -> None:
        """Only the node that gave a job to another one names that as a holder. When it forgot, the
        others learn of that copy all the same, so that it ends with theirs when the job is done."""
        job_id = self.add_job(0)
        holder = self.other_holder(0, job_id)
        receiver = next(at for at in range(1, self.nodes) if at != holder)
        self.wait(receiver, b"q")
        self.flow.settle()
        self.assertIn(receiver, self.holders(job_id))
        self.assertEqual(2, len(self.job(holder, job_id).nodes))
        self.restart(0)
        self.pass_ms(_SOON_MS)
        self.assertIn(self.flow.nodes[receiver].id, self.job(holder, job_id).nodes)
        self.flow.nodes[holder].acknowledge([job_id])
        self.pass_ms(_SOON_MS)
        self.assertEqual([], self.holders(job_id))

    def test_all_there(self) -> None:
        """A node that has all its copies is asked, and gets none."""
        job_id = self.add_job(0)
        holder = self.other_holder(0, job_id)
        job = self.job(holder, job_id)
        self.flow.nodes[holder].jobs.discard(job)
        self.restart(holder)
        self.flow.nodes[holder].jobs.add(job)
        self.flow.sent.clear()
        self.pass_ms(_SOON_MS)
        self.assertEqual([], [m for m in self.flow.sent if m[2].type == REPLJOB])
        self.assertTrue([m for m in self.flow.sent if m[2].type == HANDOVER])

    def test_asked_once(self) -> None:
        """Nodes are asked after a start, and not again when only a connection breaks."""
        self.add_job(0)
        self.pass_ms(_SOON_MS)
        self.flow.sent.clear()
        self.flow.disconnect(0, 1)
        self.flow.connect(0, 1)
        self.flow.disconnect(1, 0)
        self.flow.connect(1, 0)
        self.pass_ms(_SOON_MS)
        self.assertEqual([], [m for m in self.flow.sent if m[2].type == HANDOVER])

    def test_many(self) -> None:
        """More jobs than one message asks about all come back, a part per message."""
        count = 2 * BATCH_MAX + 10
        self.add(0, b"q", count, replicate=5, retry_s=600)
        self.restart(1)
        self.pass_ms(_SOON_MS)
        self.assertEqual(count, self.flow.nodes[1].jobs.table.count)
        asked = [m[2] for m in self.flow.sent if m[2].type == HANDOVER]
        sizes = [len(m.entries) for m in asked if isinstance(m, HandoverMessage)]
        self.assertLessEqual(max(sizes), BATCH_MAX)

    def test_rate(self) -> None:
        """Copies come back no faster than ``replicate-again-rate``, from all holders alike."""
        self.add(0, b"q", 200, replicate=2, retry_s=600)
        self.flow.nodes[0].healing.rate.set(20)
        held = [int(node.jobs.table.count) for node in self.flow.nodes]
        self.restart(1)
        self.pass_ms(1_000)
        self.assertLess(self.flow.nodes[1].jobs.table.count, 30)
        self.pass_ms(20_000)
        self.assertEqual(held, [int(node.jobs.table.count) for node in self.flow.nodes])

    def test_paused(self) -> None:
        """With ``replicate-again-rate 0`` nobody is asked until copies may be made again."""
        job_id = self.add_job(0)
        holder = self.other_holder(0, job_id)
        for node in self.flow.nodes:
            node.healing.rate.set(0)
        self.restart(holder)
        self.pass_ms(_SOON_MS)
        self.assertEqual([0], self.holders(job_id))
        for node in self.flow.nodes:
            node.healing.rate.set(100)
        self.pass_ms(_SOON_MS)
        self.assertEqual([0, holder], self.holders(job_id))

    def test_acknowledged(self) -> None:
        """A job that was acknowledged meanwhile does not come back."""
        job_id = self.add_job(0)
        holder = self.other_holder(0, job_id)
        self.flow.nodes[0].acknowledge([job_id])
        self.flow.settle()
        self.restart(holder)
        self.pass_ms(_SOON_MS)
        self.assertEqual([], self.holders(job_id))

    def test_full(self) -> None:
        """A node that has no memory for its copies any more is no holder: another node is."""
        job_id = self.add_job(0)
        holder = self.other_holder(0, job_id)
        self.restart(holder)
        self.flow.nodes[holder].memory.limit = 1_000
        self.flow.nodes[holder].memory.add(2_000)
        self.pass_ms(40_000)
        self.assertEqual(2, len(self.holders(job_id)))
        self.assertNotIn(holder, self.holders(job_id))

    def test_full_and_others(self) -> None:
        """A job that has ended meanwhile is not in the way of the others in the same answer, and
        what lacks is known soon."""
        ids = [self.add_job(0, replicate=5) for _ in range(3)]
        node, sender = self.flow.nodes[0], self.flow.entry(0, 1)
        self.restart(1)
        link = self.flow.entry(1, 0).link
        assert link is not None and isinstance(link.sink, Direction)
        link.sink.cut = True
        self.pass_ms(_SOON_MS)
        node.acknowledge(ids[:1])
        entries = [HandoverEntry(job_id, NOT_HELD) for job_id in ids]
        node.evacuation.receive(sender, HandoverMessage(RESTARTED, entries, ANSWER | FULL))
        self.assertEqual([4, 4], [len(self.job(0, job_id).nodes) for job_id in ids[1:]])
        self.pass_ms(_SOON_MS)
        self.assertEqual(2, node.healing.lacking)

    def never_got(self, job_id: bytes) -> int:
        """A node that the list of the job names at all holders, though it has no copy."""
        holders = self.holders(job_id)
        (silent,) = [at for at in range(self.nodes) if at not in holders][:1]
        for at in holders:
            job = self.job(at, job_id)
            self.flow.nodes[at].jobs.set_holders(job, (*job.nodes, self.flow.ids[silent]))
        return silent

    def test_never_got_its_copy(self) -> None:
        """A list that is longer than REPLICATE may name a node that never got its copy: when
        another node of the list is lost, it is asked as well."""
        job_id = self.add_job(0)
        self.pass_ms(_SOON_MS)
        silent = self.never_got(job_id)
        self.kill(0)
        self.pass_ms(30_000)
        self.assertEqual(2, len(self.holders(job_id)))
        self.assertIn(silent, self.holders(job_id))

    def test_settled(self) -> None:
        """When all nodes of a list have answered, nobody is asked again, however long the lost node
        stays a member: each time all jobs would be walked over."""
        job_id = self.add_job(0)
        self.pass_ms(_SOON_MS)
        self.never_got(job_id)
        self.kill(0)
        self.pass_ms(30_000)
        self.flow.sent.clear()
        self.pass_ms(60_000)
        self.assertEqual(0, sum(m[2].type == HANDOVER for m in self.flow.sent))

    def test_never_got_its_copy_and_link_breaks(self) -> None:
        """The same when the question to that node is lost with its connection, or there is none
        for a moment."""
        for connected in (True, False):
            self.setUp()
            job_id = self.add_job(0)
            self.pass_ms(_SOON_MS)
            silent = self.never_got(job_id)
            holder = self.other_holder(0, job_id)
            self.kill(0)
            if connected:
                self.lose_question(holder, silent)
            else:
                self.flow.disconnect(holder, silent)
                self.pass_ms(2 * AFTER_MS)
            self.flow.connect(holder, silent)
            self.pass_ms(30_000)
            self.assertEqual(2, len(self.holders(job_id)))
            self.assertIn(silent, self.holders(job_id))
            self.flow.sent.clear()
            self.pass_ms(60_000)
            self.assertEqual(0, sum(m[2].type == HANDOVER for m in self.flow.sent))

    def test_never_got_its_copy_and_fails(self) -> None:
        """The same when that node fails while the others are asked, and is back before it counts
        as lost, without a new start."""
        job_id = self.add_job(0)
        self.pass_ms(_SOON_MS)
        silent = self.never_got(job_id)
        self.kill(0)
        self.pass_ms(AFTER_MS - 2_000)
        self.mark_failed(silent)
        self.pass_ms(_SOON_MS)
        self.recover(silent)
        self.pass_ms(30_000)
        self.assertEqual(2, len(self.holders(job_id)))
        self.assertIn(silent, self.holders(job_id))

    def test_asked_seldom(self) -> None:
        """While a node of such a list cannot be asked, the others are asked every ten seconds, not
        all the time."""
        job_id = self.add_job(0)
        self.pass_ms(_SOON_MS)
        silent = self.never_got(job_id)
        holder = self.other_holder(0, job_id)
        self.restart(0)
        self.flow.disconnect(holder, silent)
        self.flow.sent.clear()
        self.pass_ms(60_000)
        asked = [m for m in self.flow.sent if m[0] == holder and m[2].type == HANDOVER]
        self.assertTrue(3 <= len(asked) <= 12, len(asked))

    def test_nearly_over(self) -> None:
        """A job whose life is nearly over is not sent again: by the clock of the node that lost it,
        it may be over, and lives travel in whole seconds, so two nodes could keep it alive."""
        job_id = self.add_job(0, ttl_s=30)
        self.pass_ms(28_500)
        holder = self.other_holder(0, job_id)
        self.restart(holder)
        self.pass_ms(1_000)
        self.assertEqual([0], self.holders(job_id))
        self.pass_ms(2_000)
        self.assertEqual([], self.holders(job_id))

    def lose_question(self, holder: int, silent: int) -> None:
        """A node asks another one about its jobs, and the connection breaks."""
        link = self.flow.entry(holder, silent).link
        assert link is not None and isinstance(link.sink, Direction)
        link.sink.cut = True
        while not self.flow.nodes[holder].healing.restarts.asked:
            self.pass_ms(1_000)
        self.flow.disconnect(holder, silent)

    def test_never_got_it_and_started_again(self) -> None:
        """The same when the other node comes back without its copy."""
        job_id = self.add_job(0)
        self.pass_ms(_SOON_MS)
        silent = self.never_got(job_id)
        self.restart(0)
        self.pass_ms(_SOON_MS)
        self.assertEqual(3, len(self.holders(job_id)))
        self.assertIn(silent, self.holders(job_id))

    def test_never_got_it_and_leaving(self) -> None:
        """The same when the other node leaves, and is started again meanwhile: nobody gives it
        copies, and it has none to give."""
        job_id = self.add_job(0)
        self.pass_ms(_SOON_MS)
        silent = self.never_got(job_id)
        self.announce_leaving(0)
        self.restart(0)
        self.pass_ms(30_000)
        self.assertEqual(2, len(self.holders(job_id)))
        self.assertIn(silent, self.holders(job_id))

    def test_leaving(self) -> None:
        """A node that leaves answers nothing, and is not asked."""
        job_id = self.add_job(0)
        holder = self.other_holder(0, job_id)
        self.restart(holder)
        for at in range(self.nodes):
            if at != holder:
                self.flow.entry(at, holder).flags |= LEAVING
        self.flow.sent.clear()
        self.pass_ms(1_000)
        asked = [m for m in self.flow.sent if m[1] == holder and m[2].type == HANDOVER]
        self.assertEqual([], asked)

    def test_link_breaks(self) -> None:
        """A question that is lost with its connection is asked again on the next one."""
        job_id = self.add_job(0)
        holder = self.other_holder(0, job_id)
        self.restart(holder)
        for watcher in self.flow.nodes[0].cluster.watchers:
            watcher.links_changed()
        self.flow.begin()
        self.flow.nodes[0].run_due()
        self.flow.disconnect(0, holder)
        self.flow.connect(0, holder)
        self.pass_ms(_SOON_MS)
        self.assertEqual([0, holder], self.holders(job_id))

    def test_at_most_once(self) -> None:
        """Jobs with RETRY 0 are never copied again."""
        self.add(0, b"q", 1, replicate=1, retry_s=0)
        self.flow.sent.clear()
        self.restart(1)
        self.pass_ms(_SOON_MS)
        self.assertEqual([], [m for m in self.flow.sent if m[2].type == REPLJOB])

    def test_strange_answers(self) -> None:
        """Answers that nobody asked for, about jobs that are not there or that the sender is no
        holder of, change nothing."""
        job_id = self.add_job(0)
        (stranger,) = [at for at in range(5) if at not in self.holders(job_id)][:1]
        self.pass_ms(_SOON_MS)
        before = self.job(0, job_id).nodes
        entries = [HandoverEntry(job_id, NOT_HELD), HandoverEntry(b"D-" + b"x" * 38, NOT_HELD)]
        for at in (stranger, self.other_holder(0, job_id)):
            sender = self.flow.entry(0, at)
            message = HandoverMessage(0, entries, ANSWER)
            self.flow.nodes[0].evacuation.receive(sender, message)
        self.pass_ms(_SOON_MS)
        self.assertEqual(before, self.job(0, job_id).nodes)
        self.assertEqual(0, sum(self.made()))

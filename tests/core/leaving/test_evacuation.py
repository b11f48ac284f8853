"""A node that leaves gives its jobs away (cluster protocol, section 21.12)."""

from __future__ import annotations

from disque_tx.core.healing.healing import NO_NODE
from disque_tx.core.leaving.evacuation import CLIENTS, COPIES
from disque_tx.messages.bustypes import HANDOVER, OWN_TYPES
from disque_tx.messages.handover import (
    ANSWER,
    HELD,
    KEEP,
    RELEASE,
    HandoverEntry,
    HandoverMessage,
)
from tests.core.healing.healbench import AFTER_MS
from tests.core.leaving.leavebench import LeaveCase


class QueuedTests(LeaveCase):
    """Jobs in queues."""

    def test_one_copy(self) -> None:
        """Jobs of which only the leaving node has a copy are all delivered elsewhere, once."""
        self.add(0, count=500)
        self.evacuate(0)
        self.until_empty(0)
        self.assertEqual(500, self.flow.nodes[0].evacuation.moved)
        self.stopped_for_good(0)
        self.pass_ms(1_000)
        taken = sum(self.take(at, 1_000) for at in (1, 2, 3))
        self.assertEqual(500, taken)

    def test_spread(self) -> None:
        """They go to all nodes that take jobs, not to one."""
        self.add(0, count=300)
        self.evacuate(0)
        self.until_empty(0)
        self.assertTrue(all(self.length(at) for at in (1, 2, 3)))

    def test_copies(self) -> None:
        """Every job has as many copies as before when the node is empty."""
        jobs = [self.add_job(0, replicate=2) for _ in range(20)]
        self.evacuate(0)
        self.until_empty(0)
        for job_id in jobs:
            holders = self.holders(job_id)
            self.assertNotIn(0, holders)
            self.assertGreaterEqual(len(holders), 2)

    def test_at_most_once(self) -> None:
        """Jobs with RETRY 0 move, and none is there twice."""
        self.add(0, count=50, retry_s=0)
        self.evacuate(0)
        self.until_empty(0)
        self.assertEqual(50, sum(self.length(at) for at in (1, 2, 3)))

    def test_not_queued_twice(self) -> None:
        """A job that moved is not queued by another holder when its RETRY is over there, although
        it waits in its new queue for longer."""
        for _ in range(20):
            self.add_job(0, replicate=2, retry_s=5)
        self.evacuate(0)
        self.until_empty(0)
        for _ in range(12):
            self.pass_ms(1_000)
            self.assertEqual(20, sum(self.length(at) for at in (1, 2, 3)))

    def test_lost_on_the_way(self) -> None:
        """A job that did not arrive where it was sent is queued here again, and sent again: it does
        not wait for its RETRY."""
        job_id = self.add_job(0, replicate=1, retry_s=3_600)
        for at in (1, 2, 3):
            self.hold_back(0, at, True)
        self.evacuate(0)
        self.pass_ms(1_000)
        self.assertEqual(0, self.length(0))
        for at in (1, 2, 3):
            self.hold_back(0, at, False)
        self.until_empty(0)
        self.assertEqual(1, sum(self.length(at) for at in (1, 2, 3)))
        self.assertNotIn(0, self.holders(job_id))

    def test_copy_without_a_place_in_the_queue(self) -> None:
        """Neither does one of which only a copy arrived there: the node that was to have it in its
        queue says that it has not."""
        job_id = self.add_job(0, replicate=4, retry_s=3_600)
        self.hold_back(0, 1, True)
        self.hold_back(0, 2, True)
        self.hold_back(0, 3, True)
        self.evacuate(0)
        self.pass_ms(1_000)
        for at in (1, 2, 3):
            self.hold_back(0, at, False)
        self.until_empty(0)
        self.assertEqual(3, len(self.holders(job_id)))
        self.assertEqual(1, sum(self.length(at) for at in (1, 2, 3)))

    def test_given_on_at_once(self) -> None:
        """A job that a client took where it had just come is not queued once more."""
        self.add(0, count=3, retry_s=3_600)
        self.evacuate(0)
        taken = 0
        for _ in range(10):
            self.pass_ms(100)
            taken += sum(self.take(at, 10) for at in (1, 2, 3))
        self.until_empty(0)
        taken += sum(self.take(at, 10) for at in (1, 2, 3))
        self.assertEqual(3, taken)

    def test_where_clients_wait(self) -> None:
        """A client that waits at another node gets a job of the leaving node at once."""
        client = self.wait(2)
        self.evacuate(0)
        self.add(1)
        self.assertEqual([True], self.served(client))

    def test_holders_forget(self) -> None:
        """The other holders do not count the node any more that dropped its copy."""
        job_id = self.add_job(0, replicate=3)
        self.evacuate(0)
        self.until_empty(0)
        for at in self.holders(job_id):
            self.assertNotIn(self.flow.ids[0], self.job(at, job_id).nodes)


class OtherTests(LeaveCase):
    """Jobs that are not in a queue."""

    def test_in_flight(self) -> None:
        """The node waits for a client that works on a job, and says so; then it is empty."""
        self.add_job(0)
        job_id = self.fetch(0)
        self.evacuate(0)
        self.pass_ms(10_000)
        self.assertEqual(1, self.left(0))
        self.assertEqual(CLIENTS, self.flow.nodes[0].evacuation.obstacle)
        self.flow.nodes[0].acknowledge([job_id])
        self.flow.settle()
        self.until_empty(0)
        self.assertEqual([], self.holders(job_id))

    def test_in_flight_until_retry(self) -> None:
        """A job whose client says nothing is queued elsewhere after its RETRY."""
        self.add_job(0, replicate=1, retry_s=5)
        self.fetch(0)
        self.evacuate(0)
        self.until_empty(0)
        self.assertEqual(1, sum(self.length(at) for at in (1, 2, 3)))

    def test_delayed(self) -> None:
        """The rest of a DELAY is waited for elsewhere: the job comes neither early nor a RETRY
        late."""
        for replicate in (1, 2):
            self.add_job(0, replicate=replicate, delay_s=60, retry_s=30)
        begun_ms = self.flow.now_ms
        self.evacuate(0)
        self.until_empty(0)
        self.stopped_for_good(0)
        self.pass_ms(begun_ms + 58_000 - self.flow.now_ms)
        self.assertEqual(0, sum(self.length(at) for at in (1, 2, 3)))
        self.pass_ms(5_000)
        self.assertEqual(2, sum(self.length(at) for at in (1, 2, 3)))

    def test_delay_not_taken_over(self) -> None:
        """A node that says it has the job, but not that it waits out the DELAY, is not relied on:
        the job stays here, and the other node is asked anew, at once."""
        job_id = self.add_job(0, replicate=2, delay_s=60)
        for at in (1, 2, 3):
            self.hold_back(0, at, True)
        self.evacuate(0)
        self.pass_ms(2_000)
        node = self.flow.nodes[0]
        confirmations = node.evacuation.confirmations
        receiver = self.flow.ids.index(confirmations.promises[job_id].receiver)
        number = int(confirmations.number)
        message = HandoverMessage(number, [HandoverEntry(job_id, HELD)], ANSWER)
        message.sender = self.flow.ids[receiver]
        node.receive(self.flow.links[(receiver, 0)], message)
        self.assertEqual({}, confirmations.pending)
        self.assertIn(0, self.holders(job_id))

    def test_delayed_at_most_once(self) -> None:
        """So is that of a job with RETRY 0, which then is there once."""
        self.add_job(0, replicate=1, delay_s=60, retry_s=0)
        begun_ms = self.flow.now_ms
        self.evacuate(0)
        self.until_empty(0)
        self.pass_ms(begun_ms + 58_000 - self.flow.now_ms)
        self.assertEqual(0, sum(self.length(at) for at in (1, 2, 3)))
        self.pass_ms(5_000)
        self.assertEqual(1, sum(self.length(at) for at in (1, 2, 3)))

    def test_backoff(self) -> None:
        """A job that is held back is held back elsewhere, for as long as is left."""
        job_id = self.add_job(0, replicate=2, retry_s=20)
        self.fetch(0)
        self.flow.nodes[0].enqueue([job_id], nack=True, delay_ms=120_000)
        self.flow.settle()
        begun_ms = self.flow.now_ms
        self.evacuate(0)
        self.until_empty(0)
        self.stopped_for_good(0)
        self.pass_ms(begun_ms + 117_000 - self.flow.now_ms)
        self.assertEqual(0, sum(self.length(at) for at in (1, 2, 3)))
        self.pass_ms(6_000)
        self.assertEqual(1, sum(self.length(at) for at in (1, 2, 3)))

    def test_copy_for_others(self) -> None:
        """A copy that is kept for another node is made elsewhere before it is dropped."""
        job_id = self.add_job(1, replicate=3)
        keeper = self.other_holder(1, job_id)
        self.evacuate(keeper)
        self.until_empty(keeper)
        holders = self.holders(job_id)
        self.assertNotIn(keeper, holders)
        self.assertEqual(3, len(holders))

    def test_acknowledged(self) -> None:
        """An acknowledgement is passed on before the node counts as empty: nothing that was
        acknowledged comes back when it is gone."""
        job_id = self.add_job(0, replicate=2)
        other = self.other_holder(0, job_id)
        self.fetch(0)
        self.hold_back(0, other, True)
        self.flow.nodes[0].acknowledge([job_id])
        self.evacuate(0)
        self.pass_ms(10_000)
        self.assertEqual(1, self.left(0))
        self.hold_back(0, other, False)
        self.until_empty(0, 120_000)
        self.stopped_for_good(0)
        self.assertEqual([], self.holders(job_id))

    def test_acknowledged_with_a_lost_holder(self) -> None:
        """An acknowledgement that only a lost node did not confirm does not keep the node: nobody
        could be notified by it."""
        job_id = self.add_job(0, replicate=3)
        lost = self.other_holder(0, job_id)
        self.kill(lost)
        self.flow.nodes[0].acknowledge([job_id])
        self.evacuate(0)
        self.pass_ms(AFTER_MS - 4_000)
        self.assertEqual(1, self.left(0))
        self.until_empty(0)

    def test_acknowledged_elsewhere(self) -> None:
        """Another holder that collects confirmations does not wait for one from a node that has
        dropped its copy meanwhile."""
        job_id = self.add_job(1, replicate=2)
        keeper = self.other_holder(1, job_id)
        self.hold_back(1, keeper, True)
        self.flow.nodes[1].acknowledge([job_id])
        self.flow.settle()
        self.assertIsNotNone(self.flow.nodes[1].jobs.get(job_id))
        message = HandoverMessage(1, [HandoverEntry(job_id, KEEP)], RELEASE)
        message.sender = self.flow.ids[keeper]
        self.flow.nodes[1].receive(self.flow.links[(keeper, 1)], message)
        self.assertIsNone(self.flow.nodes[1].jobs.get(job_id))


class ClusterTests(LeaveCase):
    """Other nodes, and the end of an evacuation."""

    def test_two_at_once(self) -> None:
        """Two nodes that leave at once do not send each other jobs, and lose none."""
        jobs = [self.add_job(at, replicate=2) for at in (0, 1) for _ in range(10)]
        self.evacuate(0)
        self.evacuate(1)
        self.until_empty(0)
        self.until_empty(1)
        for job_id in jobs:
            self.assertEqual([2, 3], self.holders(job_id))

    def test_two_that_do_not_know(self) -> None:
        """Neither do they rely on each other's copies while they do not know of each other."""
        jobs = [self.add_job(0, replicate=2) for _ in range(10)]
        jobs += [self.add_job(1, replicate=2) for _ in range(10)]
        for at in (0, 1):
            self.flow.nodes[at].membership.set_leaving(True)
            self.flow.nodes[at].evacuation.begin()
        self.pass_ms(20_000)
        for job_id in jobs:
            self.assertTrue({2, 3} & set(self.holders(job_id)))

    def test_called_off(self) -> None:
        """An evacuation that is called off leaves the node with what it still has."""
        self.add_job(0)
        self.fetch(0)
        self.evacuate(0)
        self.pass_ms(3_000)
        self.flow.nodes[0].membership.set_leaving(False)
        self.pass_ms(1_000)
        self.assertFalse(self.flow.nodes[0].evacuation.active)
        self.assertEqual(1, len(self.flow.nodes[0].jobs))

    def test_again(self) -> None:
        """An evacuation counts what it has got rid of itself, not what one before it did."""
        self.add(0, count=30)
        self.evacuate(0)
        self.until_empty(0)
        node = self.flow.nodes[0]
        self.assertEqual(30, node.evacuation.moved)
        node.membership.set_leaving(False)
        self.pass_ms(1_000)
        self.add(0, count=2, retry_s=600)
        self.evacuate(0)
        self.until_empty(0)
        self.assertEqual(2, node.evacuation.moved)

    def test_late_answers(self) -> None:
        """What was asked before an evacuation was called off counts for nothing: the node that
        confirmed may rely on the copy here meanwhile."""
        job_id = self.add_job(1, replicate=2)
        keeper = self.other_holder(1, job_id)
        node = self.flow.nodes[keeper]
        self.evacuate(keeper)
        before = int(node.evacuation.confirmations.number)
        node.evacuation.call_off()
        for at in range(self.nodes):
            if at != keeper:
                self.hold_back(keeper, at, True)
        node.evacuation.begin()
        self.pass_ms(2_000)
        answer = [HandoverEntry(job_id, HELD)]
        for number, left in ((before, [1, keeper]), (before + 1, [1])):
            for at in range(self.nodes):
                if at != keeper:
                    message = HandoverMessage(number, answer, ANSWER)
                    message.sender = self.flow.ids[at]
                    node.receive(self.flow.links[(at, keeper)], message)
            self.assertEqual(set(left), set(self.holders(job_id)) & {1, keeper})

    def test_queued_meanwhile(self) -> None:
        """A copy that got into this node's queue while others were asked whether they have the job,
        too, is kept: the others may have forgotten it for that."""
        job_id = self.add_job(1, replicate=2)
        keeper = self.other_holder(1, job_id)
        node = self.flow.nodes[keeper]
        for at in range(self.nodes):
            if at != keeper:
                self.hold_back(keeper, at, True)
        self.evacuate(keeper)
        self.pass_ms(2_000)
        node.enqueue([job_id], False)
        for at in range(self.nodes):
            if at != keeper:
                number = int(node.evacuation.confirmations.number)
                message = HandoverMessage(number, [HandoverEntry(job_id, HELD)], ANSWER)
                message.sender = self.flow.ids[at]
                node.receive(self.flow.links[(at, keeper)], message)
        self.assertIn(keeper, self.holders(job_id))
        self.assertEqual(1, self.length(keeper))

    def test_nobody_takes_them(self) -> None:
        """Without another node that takes jobs nothing is dropped, and the reason is said."""
        job_id = self.add_job(0, replicate=1)
        for at in (1, 2, 3):
            self.announce_leaving(at)
        self.evacuate(0)
        self.pass_ms(10_000)
        self.assertEqual(1, self.left(0))
        self.assertEqual(NO_NODE, self.flow.nodes[0].evacuation.obstacle)
        self.assertEqual([0], self.holders(job_id))

    def test_nobody_takes_the_rest(self) -> None:
        """That no other node takes jobs is said also while a client works on one of them: to wait
        for that client would not help."""
        self.add_job(0, replicate=1)
        self.fetch(0)
        self.add_job(0, replicate=1)
        for at in (1, 2, 3):
            self.announce_leaving(at)
        self.evacuate(0)
        self.pass_ms(10_000)
        self.assertEqual(2, self.left(0))
        self.assertEqual(NO_NODE, self.flow.nodes[0].evacuation.obstacle)

    def test_no_confirmation(self) -> None:
        """Holders that do not confirm in time are asked again, and the node does nothing at the
        very moment in which the time is over but that."""
        self.add_job(0, replicate=3)
        for at in (1, 2, 3):
            self.hold_back(at, 0, True)
        self.evacuate(0)
        confirmations = self.flow.nodes[0].evacuation.confirmations
        self.pass_ms(2_000)
        due_ms = int(confirmations.next_due_ms())
        self.assertGreater(due_ms, self.flow.now_ms)
        self.flow.run(due_ms - self.flow.now_ms)
        self.assertEqual(due_ms, self.flow.now_ms)
        self.assertNotEqual(due_ms, int(confirmations.next_due_ms()))

    def test_too_few_copies(self) -> None:
        """While copies elsewhere are not made, the node keeps its own."""
        self.add_job(1, replicate=3)
        for node in self.flow.nodes:
            node.healing.rate.set(0)
        leaving = next(at for at in (0, 2, 3) if len(self.flow.nodes[at].jobs))
        self.evacuate(leaving)
        self.pass_ms(20_000)
        self.assertEqual(1, self.left(leaving))
        self.assertIn(self.flow.nodes[leaving].evacuation.obstacle, ("paused", COPIES))

    def test_receiver_dies(self) -> None:
        """A node that dies with jobs that it was given, and has not confirmed, takes none with
        it."""
        self.add(0, count=30, retry_s=5)
        for at in (1, 2, 3):
            self.hold_back(at, 0, True)
        self.evacuate(0)
        self.pass_ms(2_000)
        self.kill(1)
        for at in (2, 3):
            self.hold_back(at, 0, False)
        self.until_empty(0)
        queued = sum(self.length(at) for at in (2, 3))
        self.assertEqual(30, queued)

    def test_not_empty_before_all_know(self) -> None:
        """A node is not empty before the others can know that it leaves."""
        self.evacuate(0)
        self.pass_ms(960)
        self.assertEqual(1, self.left(0))
        self.until_empty(0)

    def test_silent_without_jobs(self) -> None:
        """A node that is empty asks nothing."""
        self.evacuate(0)
        self.until_empty(0)
        self.flow.sent.clear()
        self.pass_ms(5_000)
        self.assertEqual([], [m for _, _, m in self.flow.sent if m.type == HANDOVER])


class OriginalTests(LeaveCase):
    """The other nodes are originals, or some are."""

    nodes = 3
    originals = (2,)

    def test_mixed(self) -> None:
        """An original confirms its copy as it confirms any; nothing of ours is sent to it."""
        jobs = [self.add_job(0, replicate=2) for _ in range(10)]
        self.evacuate(0)
        self.until_empty(0)
        for job_id in jobs:
            self.assertEqual([1, 2], self.holders(job_id))
        kinds = {m.type for _, to, m in self.flow.sent if to == 2}
        self.assertEqual(set(), {kind for kind in kinds if kind >= OWN_TYPES})


class OnlyOriginalsTests(LeaveCase):
    """All other nodes are originals."""

    nodes = 2
    originals = (1,)

    def test_delayed(self) -> None:
        """An original waits for the rest of a DELAY, too, and then has the job in its queue."""
        self.add_job(0, replicate=1, delay_s=60)
        begun_ms = self.flow.now_ms
        self.evacuate(0)
        self.until_empty(0)
        self.stopped_for_good(0)
        self.pass_ms(begun_ms + 58_000 - self.flow.now_ms)
        self.assertEqual(0, self.length(1))
        self.pass_ms(6_000)
        self.assertEqual(1, self.length(1))

    def test_backoff(self) -> None:
        """An original knows no backoff: the node waits until it is over."""
        job_id = self.add_job(0, replicate=2, retry_s=20)
        self.fetch(0)
        self.flow.nodes[0].enqueue([job_id], nack=True, delay_ms=60_000)
        self.evacuate(0)
        self.pass_ms(50_000)
        self.assertEqual((1, 0), (self.left(0), self.length(1)))
        self.until_empty(0)
        self.assertEqual(1, self.length(1))

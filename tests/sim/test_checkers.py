"""What checkers report and what they excuse, on histories written by hand."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim.campaign import checked_run
from disque_tx.sim.checkers.cluster import PasswordRequired
from disque_tx.sim.checkers.counters import CountersMatch
from disque_tx.sim.checkers.delivery import NotAfterAck, WorkingRespected
from disque_tx.sim.checkers.hosts import HostsDiffer
from disque_tx.sim.checkers.overview import CountsTrue, EndingsTrue, FlushedGone
from disque_tx.sim.checkers.policies import PoliciesKept, SamePolicies
from disque_tx.sim.checkers.queues import OldestFirst, PauseRespected
from disque_tx.sim.history import (
    Added,
    Counted,
    Delivered,
    Flushed,
    JobRequest,
    Paused,
    PolicyChange,
    ShownCounters,
    Waited,
)
from disque_tx.sim.run import Checker
from disque_tx.tablemessages import Register

_S = 1_000_000
HERE, THERE = b"10.0.0.1", b"10.0.0.2"


class CheckerCase(SynchronousTestCase):
    """A simulation without a run, and the history that a run could have had."""

    def setUp(self) -> None:
        self.run_ = checked_run(2)
        self.assertGreater(len(self.run_.machines), 1)
        self.history = self.run_.history
        for machine in self.run_.machines:
            machine.started_us = 0
            machine._since_us = 0

    def deliver(
        self, at_s: float, node: bytes = HERE, job: bytes = b"D", nacks: int = 0, answer: int = 0
    ) -> None:
        """A delivery is received, a millisecond after the node sent it."""
        us = int(at_s * _S)
        self.history.delivered.append(
            Delivered(job, job, b"q", node, us, us + 1_000, nacks, 0, answer)
        )

    def request(self, word: bytes, at_s: float, node: bytes = HERE, reply: int = 1) -> None:
        """A request about the job, whose reply comes a millisecond later."""
        us = int(at_s * _S)
        self.history.job_requests.append(JobRequest(word, b"D", node, us, us + 1_000, reply))

    def fault(self, name: str) -> None:
        """A fault occurs."""
        self.run_.plan.history.append((0, name, ""))

    def found(self, checker: Checker) -> int:
        """The number of violations."""
        return len(checker.judge(self.run_))


class HostTests(CheckerCase):
    """Copies on several hosts."""

    def setUp(self) -> None:
        super().setUp()
        for machine in self.run_.machines:
            machine.host = b"10.1.0.1"

    def accept(self, *holders: bytes, reached: tuple[bytes, ...] = (b"10.1.0.2",)) -> None:
        """A job with REPLICATE 2 is accepted; so many nodes have it, and these hosts could be
        reached."""
        added = Added(b"D", b"q", HERE, 1, 2, 1, 60, 0, False)
        added.job_id, added.accepted_us = b"D", 2
        self.history.added[b"D"] = added
        copies = self.run_.copies
        copies.seen[b"D"] = frozenset(holders)
        copies.down[b"D"] = frozenset()
        copies.reached[b"D"] = frozenset(reached)

    def test_one_host(self) -> None:
        """Copies on one host break the promise while another one can be reached."""
        self.accept(HERE, THERE)
        self.assertEqual(1, self.found(HostsDiffer()))

    def test_no_other(self) -> None:
        """Where there is no other host, they do not."""
        self.accept(HERE, THERE, reached=(b"10.1.0.1",))
        self.assertEqual(0, self.found(HostsDiffer()))

    def test_two_hosts(self) -> None:
        """Copies on two hosts keep it."""
        next(m for m in self.run_.machines if m.ip == THERE).host = b"10.1.0.2"
        self.accept(HERE, THERE)
        self.assertEqual(0, self.found(HostsDiffer()))

    def test_down(self) -> None:
        """A node that is down may have the copy that is not seen."""
        self.accept(HERE, THERE)
        self.run_.copies.down[b"D"] = frozenset([THERE])
        self.assertEqual(0, self.found(HostsDiffer()))


class AckedTests(CheckerCase):
    """Delivery after ACKJOB."""

    def test_again(self) -> None:
        """No node delivers an acknowledged job after it can have received the acknowledgement."""
        self.request(b"ACKJOB", 1)
        self.deliver(1.01, THERE)
        self.assertEqual(0, self.found(NotAfterAck()))
        self.deliver(2, THERE)
        self.deliver(2, HERE)
        self.assertEqual(2, self.found(NotAfterAck()))

    def test_excuses(self) -> None:
        """Other nodes may be cut off; the node itself may have lost its memory; a reply of 0
        promises nothing."""
        self.request(b"ACKJOB", 1)
        self.deliver(2, THERE)
        self.deliver(2, HERE)
        self.fault("partition")
        self.assertEqual(1, self.found(NotAfterAck()))
        self.run_.machines[0]._since_us = 3 * _S
        self.assertEqual(0, self.found(NotAfterAck()))
        self.history.job_requests[0].reply = 0
        self.run_.plan.history.clear()
        self.assertEqual(0, self.found(NotAfterAck()))

    def test_forgotten(self) -> None:
        """FASTACK on the same node drops the acknowledgement, too: another holder that was down
        delivers again. Without faults all have received it before."""
        self.request(b"ACKJOB", 1)
        self.deliver(9)
        self.request(b"FASTACK", 2, THERE)
        self.fault("partition")
        self.assertEqual(1, self.found(NotAfterAck()))
        self.request(b"FASTACK", 2)
        self.assertEqual(0, self.found(NotAfterAck()))
        self.run_.plan.history.clear()
        self.assertEqual(1, self.found(NotAfterAck()))


class PausedTests(CheckerCase):
    """Delivery from paused queues."""

    def pause(
        self, at_s: float, flags: int, node: bytes = HERE, everywhere: bool = False
    ) -> Paused:
        """The queue is paused, with a reply a millisecond later."""
        us = int(at_s * _S)
        made = Paused(b"q", node, flags, everywhere, us, us + 1_000)
        self.history.pauses.append(made)
        return made

    def accept(self) -> None:
        """An ADDJOB is sent at 2 s and answered at 3 s; its client has the answer at 4 s."""
        added = Added(b"D", b"q", HERE, 2 * _S, 1, 1, 9, 0, False, 3 * _S, 4 * _S)
        self.history.added[b"D"] = added

    def test_here(self) -> None:
        """Between PAUSE out and PAUSE none the node delivers nothing from the queue."""
        self.pause(1, 2)
        self.pause(3, 0)
        for at_s in (0.9, 2, 4):
            self.deliver(at_s)
        self.deliver(2, THERE)
        self.assertEqual(1, self.found(PauseRespected()))

    def test_everywhere(self) -> None:
        """With BCAST no node delivers anything; if messages get lost, nothing is checked."""
        self.pause(1, 2, everywhere=True)
        self.deliver(2, THERE)
        self.assertEqual(1, self.found(PauseRespected()))
        self.fault("partition")
        self.assertEqual(0, self.found(PauseRespected()))

    def test_in(self) -> None:
        """A queue with paused input accepts no job, and delivers those it has."""
        self.pause(1, 1)
        self.deliver(2)
        self.accept()
        self.assertEqual(1, self.found(PauseRespected()))

    def test_released_in_time(self) -> None:
        """A slow ADDJOB may be executed after a PAUSE that was sent later and ends the first one;
        any other PAUSE excuses nothing."""
        self.pause(1, 3)
        self.accept()
        cases = (
            (self.pause(2.5, 2), 0),
            (self.pause(2.9, 0, everywhere=True), 0),
            (self.pause(2.5, 0, THERE, everywhere=True), 0),
            (self.pause(2.5, 0, b""), 0),
            (self.pause(2.5, 0, THERE), 1),
            (self.pause(2.5, 1), 1),
            (self.pause(3, 0), 1),
            (attrs.evolve(self.pause(2.5, 0), queue=b"other"), 1),
        )
        for paused, breaches in cases:
            self.history.pauses[1:] = [paused]
            self.assertEqual(breaches, self.found(PauseRespected()), paused)

    def test_excuses(self) -> None:
        """A request without a reply may take effect late, and a restart forgets the flags."""
        self.pause(1, 3)
        self.deliver(2)
        self.run_.machines[0].started_us = 1_500_000
        self.assertEqual(0, self.found(PauseRespected()))
        self.run_.machines[0].started_us = 0
        self.assertEqual(1, self.found(PauseRespected()))
        self.pause(1.5, 0).answered_us = -1
        self.assertEqual(0, self.found(PauseRespected()))


class CountersTests(CheckerCase):
    """The counters that clients see."""

    def test_too_many(self) -> None:
        """Without a NACK there is none to count; duplicated messages count twice."""
        self.deliver(1, nacks=1)
        self.assertEqual(1, self.found(CountersMatch()))
        self.fault("message_loss")
        self.assertEqual(0, self.found(CountersMatch()))

    def test_too_few(self) -> None:
        """A second delivery has a reason, a confirmed NACK counts, and no count is lost."""
        self.deliver(1)
        self.deliver(2)
        self.assertEqual(1, self.found(CountersMatch()))
        self.request(b"NACK", 1.5)
        self.assertEqual(2, self.found(CountersMatch()))
        self.history.shown_counters.append(ShownCounters(b"D", HERE, 1_900_000, 1, 0))
        self.assertEqual(3, self.found(CountersMatch()))
        self.fault("kill")
        self.assertEqual(0, self.found(CountersMatch()))


class OtherTests(CheckerCase):
    """WORKING, order within one reply, and unauthenticated clients."""

    def test_enqueued(self) -> None:
        """WORKING keeps the job from other clients until ENQUEUE or NACK."""
        self.request(b"WORKING", 1, reply=4)
        self.deliver(2, THERE)
        self.assertEqual(1, self.found(WorkingRespected()))
        self.request(b"ENQUEUE", 1.5, THERE)
        self.assertEqual(0, self.found(WorkingRespected()))

    def test_one_answer(self) -> None:
        """Within one reply the older job comes first; between replies any order is allowed."""
        checker = OldestFirst()
        checker.born = {b"old": 1, b"young": 2}
        self.deliver(1, job=b"young", answer=1)
        self.deliver(1, job=b"old", answer=2)
        self.assertEqual(0, self.found(checker))
        self.deliver(2, job=b"young", answer=3)
        self.deliver(2, job=b"old", answer=3)
        self.assertEqual(1, self.found(checker))

    def test_stranger(self) -> None:
        """An unauthenticated client must get nothing but errors."""
        self.assertEqual(0, self.found(PasswordRequired()))
        self.history.admitted.append("INFO: ...")
        self.assertEqual(1, self.found(PasswordRequired()))


class PolicyTests(CheckerCase):
    """The table of policies."""

    def setUp(self) -> None:
        super().setUp()
        for machine in self.run_.machines:
            machine.start()

    def put(self, place: int, counter: int, deleted_s: int = 0) -> None:
        """A node gets a change."""
        process = self.run_.machines[place].process
        assert process is not None
        value = b"" if deleted_s else b"%d" % counter
        register = Register(b"p", b"ttl", value, counter, b"a" * 40, deleted_s)
        process.node.policy_table.merge([register], deleted_s)

    def answered(self, counter: int, value: bytes = b"1") -> None:
        """A client at the first node has the answer to a change."""
        change = PolicyChange(b"p", [b"ttl"], value, True, {b"ttl": counter}, HERE, 0)
        self.history.policies.append(change)

    def test_same(self) -> None:
        """A node with another table than the others breaks the promise."""
        tables = [n for n in range(len(self.run_.machines)) if self.run_.shape.has_own(n)]
        self.assertEqual(0, self.found(SamePolicies()))
        self.put(tables[0], 1)
        self.assertEqual(len(tables) - 1, self.found(SamePolicies()))
        for place in tables[1:]:
            self.put(place, 1)
        self.assertEqual(0, self.found(SamePolicies()))

    def test_kept(self) -> None:
        """A change that is lost, or an older one in its place, breaks the promise; a later one does
        not."""
        self.answered(2)
        self.assertEqual(1, self.found(PoliciesKept()))
        self.put(0, 1)
        self.assertEqual(1, self.found(PoliciesKept()))
        self.put(0, 3)
        self.assertEqual(0, self.found(PoliciesKept()))

    def test_deleted(self) -> None:
        """A deletion may have been dropped, but nothing older may be there again."""
        self.answered(2, b"")
        self.assertEqual(0, self.found(PoliciesKept()))
        self.put(0, 1)
        self.assertEqual(1, self.found(PoliciesKept()))

    def test_other_disk(self) -> None:
        """What was on a disk that does not exist any more may be lost."""
        self.answered(2)
        self.run_.machines[0].disk.wipe()
        self.assertEqual(0, self.found(PoliciesKept()))


class OverviewTests(CheckerCase):
    """What clients get to know about queues."""

    def setUp(self) -> None:
        super().setUp()
        self.run_.shape.bulk = "all"
        self.run_.world.now_us = 60 * _S
        added = Added(b"D", b"q", HERE, _S, 1, 5, 7_200, 0, False, _S, _S, b"D")
        self.history.added[b"D"] = added

    def wait(self, at_s: float, answer: bytes) -> Waited:
        """A WAITJOB, sent at the beginning, is answered at that time."""
        waited = Waited(b"D", HERE, _S, 9_000, int(at_s * _S), answer)
        self.history.waits.append(waited)
        return waited

    def flush(self, at_s: float, reply: int = 1) -> None:
        """A QFLUSH of the queue, for the one job at this node."""
        us = int(at_s * _S)
        there = {HERE: {b"D"}}
        flushed = Flushed(b"q", b"queued", False, us, HERE, us + 1_000, reply, there)
        self.history.flushes.append(flushed)

    def test_reason(self) -> None:
        """A job has ended only if somebody asked for that, or its queue was emptied."""
        self.wait(5, b"ACKED")
        self.assertEqual(1, self.found(EndingsTrue()))
        self.request(b"ACKJOB", 4)
        self.assertEqual(0, self.found(EndingsTrue()))
        self.history.job_requests.clear()
        self.flush(4)
        self.assertEqual(0, self.found(EndingsTrue()))

    def test_expired(self) -> None:
        """A job expires when its life is over, to the second, and no clock was wrong."""
        waited = self.wait(5, b"EXPIRED")
        self.assertEqual(1, self.found(EndingsTrue()))
        self.fault("clock_step")
        self.assertEqual(0, self.found(EndingsTrue()))
        self.run_.plan.history.clear()
        waited.answered_us = 7_200 * _S + 1
        self.assertEqual(0, self.found(EndingsTrue()))

    def test_unanswered(self) -> None:
        """Nobody waits until the time-out for a job that this node had acknowledged."""
        self.wait(9, b"")
        self.assertEqual(0, self.found(EndingsTrue()))
        self.request(b"ACKJOB", 4, THERE)
        self.assertEqual(0, self.found(EndingsTrue()))
        self.request(b"ACKJOB", 4)
        self.assertEqual(1, self.found(EndingsTrue()))

    def test_delivered_after(self) -> None:
        """A job that was reported as done is not delivered by the same node."""
        self.request(b"ACKJOB", 4)
        self.wait(5, b"ACKED")
        self.deliver(6, THERE)
        self.assertEqual(0, self.found(EndingsTrue()))
        self.deliver(6)
        self.assertEqual(1, self.found(EndingsTrue()))

    def test_dead(self) -> None:
        """Without a policy there are no dead letters."""
        self.wait(5, b"DEAD")
        self.assertEqual(1, self.found(EndingsTrue()))

    def test_flushed(self) -> None:
        """A job that was in the queue when QFLUSH came is not delivered, unless it had left it."""
        self.run_.lost = 1
        self.flush(4)
        self.deliver(9)
        self.assertEqual(1, self.found(FlushedGone()))
        self.request(b"NACK", 4)
        self.assertEqual(0, self.found(FlushedGone()))

    def test_flushed_number(self) -> None:
        """The answers to QFLUSH add up to what the nodes have counted."""
        self.flush(4, reply=3)
        self.assertEqual(1, self.found(FlushedGone()))
        self.fault("kill")
        self.assertEqual(0, self.found(FlushedGone()))

    def test_counted(self) -> None:
        """A job that nobody touched is counted, and once."""
        values = dict.fromkeys((b"queued", b"delayed", b"backoff", b"in-hand"), 0)
        values[b"nodes"] = len(self.run_.machines)
        self.history.counts.append(Counted(b"q", True, 5 * _S, 5 * _S + 1_000, values))
        for jobs, breaches in ((0, 1), (1, 0), (2, 1)):
            values[b"queued"] = jobs
            self.assertEqual(breaches, self.found(CountsTrue()), jobs)

"""The end of jobs that two nodes hold (cluster protocol, section 21.13)."""

from __future__ import annotations

from disque_tx.core.queues.endings import ACKNOWLEDGED, ANSWERS
from disque_tx.messages.bus import FORGOTTEN, ONLY_US, JobSignal
from disque_tx.messages.bustypes import CAN_SETTLE, DELJOB, GOTACK, SETACK, YOURJOBS
from tests.core.flowbench import FlowTestCase
from tests.core.peerbench import B, C, PeerCase, peer_job

A_TO_B, B_TO_A = (0, 1), (1, 0)


class SettlingTests(FlowTestCase):
    """A job is added at the first node and goes to a client at the second one."""

    def given(self) -> bytes:
        """The ID of the job that the client got."""
        client = self.wait(1)
        self.add(0)
        self.assertEqual([True], self.served(client))
        self.flow.sent.clear()
        (job,) = self.flow.nodes[1].jobs.table.values()
        return job.id

    def acknowledge(self, at: int, job_id: bytes) -> None:
        """ACKJOB at one node."""
        self.flow.nodes[at].acknowledge([job_id])
        self.flow.settle()

    def signals(self) -> list[tuple[int, int, int, int]]:
        """What was sent about jobs: sender, receiver, type, aux."""
        return [
            (sender, receiver, int(m.type), int(m.aux))
            for sender, receiver, m in self.flow.sent
            if isinstance(m, JobSignal)
        ]

    def jobs(self) -> list[int]:
        """How many jobs each node knows."""
        return [len(node.jobs) for node in self.flow.nodes]

    def test_one_answer(self) -> None:
        """One question and one answer are the end of a job at both nodes: for every job that goes
        to a client elsewhere, this is what its acknowledgement costs."""
        self.acknowledge(1, self.given())
        wanted = [(*B_TO_A, SETACK, 2 | ONLY_US), (*A_TO_B, GOTACK, FORGOTTEN)]
        self.assertEqual(wanted, self.signals())
        self.assertEqual([0, 0, 0], self.jobs())
        self.assertEqual(0, sum(int(node.jobs.acked) for node in self.flow.nodes))

    def test_given_on_before(self) -> None:
        """A node to which this one gave the job lately is notified as well, although its list does
        not name it: a client may have deleted the job here before it came back."""
        job_id = self.given()
        self.flow.nodes[1].state.handovers.note(job_id, self.flow.ids[2], self.flow.now_ms)
        self.acknowledge(1, job_id)
        self.assertIn((1, 2, SETACK, 0), self.signals())

    def test_leaving(self) -> None:
        """A node that leaves asks once in this way: the other holder may wait for a third one, of
        which only that one knows, and confirms to whoever names no holders."""
        job_id = self.given()
        (job,) = self.flow.nodes[0].jobs.table.values()
        self.flow.nodes[0].jobs.set_holders(job, (*job.nodes, b"f" * 40))
        self.flow.nodes[1].membership.set_leaving(True)
        self.acknowledge(1, job_id)
        self.assertEqual([1, 1, 0], self.jobs())
        self.flow.run(10_000)
        self.assertEqual([1, 0, 0], self.jobs())

    def test_at_the_giver(self) -> None:
        """It does not matter at which of the two the client acknowledges; a job that is still in
        a queue leaves it."""
        job_id = self.given()
        self.flow.nodes[1].enqueue([job_id], False)
        self.assertEqual(1, self.length(1))
        self.acknowledge(0, job_id)
        self.assertEqual([0, 0, 0], self.jobs())
        self.assertEqual(0, self.length(1))

    def test_at_both(self) -> None:
        """Acknowledged at both nodes at the same time, the job ends at both."""
        job_id = self.given()
        for at in (0, 1):
            self.flow.nodes[at].acknowledge([job_id])
        self.flow.settle()
        self.assertEqual([0, 0, 0], self.jobs())

    def test_other_version(self) -> None:
        """A node that has not shown the feature gets the messages that every node knows."""
        link = self.flow.entry(1, 0).link
        assert link is not None
        link.features &= ~CAN_SETTLE
        self.acknowledge(1, self.given())
        self.assertEqual((*B_TO_A, SETACK, 2), self.signals()[0])
        self.assertIn((*B_TO_A, DELJOB, 0), self.signals())
        self.assertEqual([0, 0, 0], self.jobs())

    def test_third_holder(self) -> None:
        """The giver gave the job to a third node, too, as it heard nothing of the second: nobody
        forgets before all three know."""
        job_id = self.given()
        job = self.flow.nodes[0].jobs.get(job_id)
        assert job is not None
        self.flow.nodes[0].jobs.set_holders(job, (*job.nodes, self.flow.ids[2]))
        self.acknowledge(1, job_id)
        self.assertIn((0, 2, SETACK, 3), self.signals())
        self.assertNotIn((*A_TO_B, GOTACK, FORGOTTEN), self.signals())
        self.assertEqual([0, 0, 0], self.jobs())

    def test_answer_is_lost(self) -> None:
        """The question is asked again until there is an answer, and a node that has forgotten the
        job answers, too."""
        job_id = self.given()
        link = self.flow.entry(0, 1).link
        assert link is not None
        link.sink.cut = True  # type: ignore[attr-defined]
        self.acknowledge(1, job_id)
        self.assertEqual([0, 1, 0], self.jobs())
        link.sink.cut = False  # type: ignore[attr-defined]
        self.flow.run(3_000)
        self.assertEqual([0, 0, 0], self.jobs())

    def test_waited_for(self) -> None:
        """A client that waits for the end of the job at the giver learns that it is done."""
        job_id = self.given()
        client = self.client()
        self.flow.nodes[0].waiters.wait_for_ending(client, job_id, 0)
        self.acknowledge(1, job_id)
        (answer,) = self.replies(client)
        self.assertEqual(ANSWERS[ACKNOWLEDGED], getattr(answer, "text", b""))


class CollectingTests(PeerCase):
    """This node asks B, which gave it a job."""

    def test_late_deletion(self) -> None:
        """A DELJOB of a third node, which may be late, ends nothing while B has not answered."""
        for peer in (B, C):
            link = self.node.membership.nodes[peer].link
            assert link is not None
            link.features |= CAN_SETTLE
        job = peer_job(1, (B, self.node.id))
        job.repl = 1
        self.receive_jobs(B, YOURJOBS, job)
        self.node.acknowledge([job.id])
        self.receive_signal(C, DELJOB, job.id)
        self.assertEqual(1, len(self.node.jobs))
        self.receive_signal(B, GOTACK, job.id, FORGOTTEN)
        self.assertEqual(0, len(self.node.jobs))

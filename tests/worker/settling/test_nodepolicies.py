"""Workers leave to nodes what the policy of a queue says, and do the rest themselves."""

from __future__ import annotations

from disque_tx.worker import Context, Hopeless
from tests.worker.memory import WorkerTestCase
from tests.worker.test_service import boom


def hopeless(job: Context) -> None:
    """A handler that knows that another try is useless."""
    raise Hopeless("no such customer")


class NodePoliciesTests(WorkerTestCase):
    """Nodes with policies; :class:`FailureTests` has those without."""

    def test_backoff_of_nodes(self) -> None:
        """With ``retry-delay`` a failed job goes back at once, with its reason: the node holds it
        back, even if the worker ends."""
        self.client.policies = {"a": {"retry-delay": "10"}}
        job_id = self.client.put("a", b"why")
        worker = self.worker({"a": boom}, retries_max=1)
        self.pass_s(1)
        self.assertEqual("ValueError: why", self.client.reasons[job_id])
        self.assertEqual(1, len(self.client.times("NACK")))
        self.assertEqual(1, len(self.client.letters("a")))  # without a limit by the nodes
        self.stop(worker)

    def test_given_back_once(self) -> None:
        """A job that went back to its node is none of this worker any more: it is not given back a
        second time, when another worker has it."""
        self.client.policies = {"a": {"retry-delay": "10"}}
        self.client.put("a", b"why")
        worker = self.worker({"a": boom}, retries_max=3)
        self.pass_s(100)
        self.assertEqual(3, len(self.client.times("NACK")))
        self.assertEqual(3, self.client.letters("a")[0].nacks)
        self.stop(worker)

    def test_letters_of_nodes(self) -> None:
        """With ``max-deliveries`` the worker writes no letters about jobs that failed too often:
        there would be two."""
        self.client.policies = {"a": {"max-deliveries": "50"}}
        job_id = self.client.put("a", b"why", retry_s=5)
        worker = self.worker({"a": boom}, retries_max=1)
        self.pass_s(200)
        self.assertEqual([], self.client.letters("a"))
        self.assertEqual("ValueError: why", self.client.reasons[job_id])
        self.assertTrue(len(self.client.times("NACK")) > 2)
        self.stop(worker)

    def test_hopeless(self) -> None:
        """What the handler itself gives up becomes a letter of the worker at once."""
        self.client.policies = {"a": {"max-deliveries": "50", "retry-delay": "5"}}
        self.client.put("a", b"why")
        worker = self.worker({"a": hopeless})
        self.pass_s(1)
        self.assertEqual(1, len(self.client.letters("a")))
        self.stop(worker)

    def test_other_queue(self) -> None:
        """A policy for another queue changes nothing."""
        self.client.policies = {"b": {"retry-delay": "10", "max-deliveries": "3"}}
        job_id = self.client.put("a", b"why", retry_s=5)
        worker = self.worker({"a": boom}, retries_max=1)
        self.pass_s(60)
        self.assertEqual((None, 1), (self.client.reasons[job_id], len(self.client.letters("a"))))
        self.stop(worker)

    def test_asked_seldom(self) -> None:
        """A queue whose jobs all fail does not cost a request more for each of them."""
        for _ in range(20):
            self.client.put("a", b"why")
        worker = self.worker({"a": boom}, retries_max=0)
        self.pass_s(5)
        self.assertEqual([("QPOLICY", "GET", "a")], self.client.asked)
        self.stop(worker)

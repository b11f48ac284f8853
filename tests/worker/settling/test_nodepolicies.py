"""Workers leave to nodes what the policy of a queue says, and do the rest themselves."""

from __future__ import annotations

import json

from twisted.internet.defer import Deferred

from disque_tx.worker import Context, Hopeless, Queue, current_job
from tests.worker.memory import WorkerTestCase
from tests.worker.test_service import boom


def hopeless(job: Context) -> None:
    """A handler that knows that another try is useless."""
    raise Hopeless("no such customer")


async def _fail_thrice() -> None:
    if current_job().attempt <= 3:
        raise ValueError("no")
    await Deferred()


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

    def test_result(self) -> None:
        """Whoever waits for the result of a task learns that it failed for good when the node is
        about to make the dead letter, once, and not before."""
        self.client.policies = {"q": {"max-deliveries": "3"}}
        job_id = self.client.put("q", b'{"task": "_fail_thrice", "reply": "result:7"}')
        worker = self.worker(self.failing_queue(), retries_max=9)
        while len(self.client.times("NACK")) < 2:
            self.assertEqual([], self.client.queued("result:7"))
            self.pass_s(0.5)
        self.pass_s(1)
        (answer,) = self.client.queued("result:7")
        self.assertEqual({"ok": False, "reason": "ValueError: no"}, json.loads(answer.body))
        self.assertEqual((3, "ValueError: no"), (self.given_back(), self.client.reasons[job_id]))
        self.stop(worker)

    def test_result_later(self) -> None:
        """There is no such answer while the node goes on: when the limit was raised meanwhile, or
        the dead letters of the queue go to the queue itself."""
        for settings in ({"max-deliveries": "9"}, {"max-deliveries": "1", "dead-queue": "q"}):
            self.client.policies = {"q": {"max-deliveries": "2"}}
            self.client.put("q", b'{"task": "_fail_thrice", "reply": "result:7"}')
            worker = self.worker(self.failing_queue(), retries_max=9)
            self.pass_s(0.1)
            self.client.policies = {"q": settings}
            self.pass_s(59)
            self.assertEqual([], self.client.queued("result:7"))
            self.stop(worker)
            self.client.jobs.clear()

    def failing_queue(self) -> Queue:
        """A queue with a task that fails three times, and then does not end."""
        queue = Queue("q")
        queue.job(result=True)(_fail_thrice)
        return queue

    def given_back(self) -> int:
        """How often jobs were given back."""
        return len(self.client.times("NACK"))

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

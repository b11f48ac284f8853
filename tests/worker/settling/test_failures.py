"""Failed jobs that are not held until their next attempt."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.logger import formatEvent

from disque_tx.client import Refused, TooLate
from disque_tx.worker import Context, Queue
from tests.logged import observe
from tests.worker.memory import NODE, HangingPool, WorkerTestCase


class BackoffTests(WorkerTestCase):
    """A worker with a backoff of ten seconds."""

    def setUp(self) -> None:
        super().setUp()
        self.release: Deferred[None] = Deferred()

    async def later(self, job: Context) -> None:
        """Fail when the test says so."""
        await self.release

    def fail_later(self) -> None:
        """Let the handler fail."""
        self.release.errback(ValueError("no"))
        self.pass_s(0.1)

    def test_held(self) -> None:
        """A failed job is held, as long as nothing speaks against it."""
        job_id = self.client.put("a")
        worker = self.worker({"a": self.later})
        self.fail_later()
        self.assertEqual("active", self.client.state(job_id))
        self.assertEqual([], self.client.times("NACK"))
        self.stop(worker)

    def test_retry_by_heartbeat(self) -> None:
        """What RETRY the job has comes with a heartbeat, which it needs anyway, and does not cost
        a request of its own."""
        self.client.put("a")
        worker = self.worker({"a": _boom})
        self.pass_s(0.1)
        self.assertEqual(1, len(self.client.times("WORKING")))
        self.assertEqual([], self.client.times("SHOW"))
        self.stop(worker)

    def test_stopping(self) -> None:
        """A job that fails while its worker stops is for the other workers at once, and the worker
        does not wait for it."""
        job_id = self.client.put("a")
        worker = self.worker({"a": self.later})
        stopped = worker.stopService()
        self.fail_later()
        self.successResultOf(stopped)
        self.assertEqual("queued", self.client.state(job_id))

    def test_lease_lost(self) -> None:
        """A job that may be delivered to others meanwhile is given back at once."""
        self.client.put("a", retry_s=1_000)
        refused = TooLate("WORKING", NODE, "TOOLATE", "")
        worker = self.worker({"a": self.later})
        self.client.broken = lambda command: refused if command == "WORKING" else None
        self.pass_s(1)
        self.assertEqual([], self.client.times("NACK"))
        self.fail_later()
        self.assertEqual(1, len(self.client.times("NACK")))
        self.stop(worker)

    def test_many(self) -> None:
        """No more than a thousand jobs are held: of more that fail, the others are tried again at
        once, so that the memory of a worker has a bound."""

        def fail(job: Context) -> None:
            raise ValueError("no")

        for _ in range(1_010):
            self.client.put("a")
        worker = self.worker({"a": fail}, HangingPool, concurrency=1_010)
        self.pools[0].release()
        self.pass_s(1)
        self.assertEqual(10, self.given_back())
        self.stop(worker)
        self.assertEqual(1_010, self.given_back())

    def given_back(self) -> int:
        """How many jobs the worker has given back."""
        return sum(len(ids) for command, _, ids in self.client.calls if command == "NACK")


def _boom(job: Context) -> None:
    raise ValueError("no")


class LimitTests(WorkerTestCase):
    """How often a failing job is tried, and who says so."""

    def test_of_a_queue(self) -> None:
        """A queue with tasks may have a limit of its own, which is 0, too; other queues have that
        of the worker."""
        for limit, tries in ((0, 1), (2, 3), (None, 2)):
            queue = Queue(f"q{limit}", retries_max=limit)
            queue.job(name="boom")(lambda: _boom)
            self.client.put(queue.name, b'{"task": "other"}')
            worker = self.worker(queue, retries_max=1)
            self.pass_s(200)
            (letter,) = self.client.letters(queue.name)
            self.assertEqual(tries, letter.nacks + 1, limit)
            self.stop(worker)

    def test_unknown_retry(self) -> None:
        """A job with RETRY 0 whose heartbeat a node refuses is not given back: nobody would get
        it."""
        self.client.put("a", b"once", retry_s=0)
        refused = Refused("WORKING", NODE, "ERR", "no")
        self.client.broken = lambda command: refused if command == "WORKING" else None
        worker = self.worker({"a": _boom})
        self.pass_s(60)
        self.assertEqual([b"once"], [letter.body for letter in self.client.letters("a")])
        self.assertEqual([], self.client.times("NACK"))
        self.stop(worker)

    def test_trace(self) -> None:
        """Who wants the log in detail finds the traceback of each failure, also of those that are
        tried again; without that it is there once, at the end."""
        lines: list[tuple[str, str]] = []
        observe(self, lambda event: lines.append((event["log_level"].name, formatEvent(event))))
        job_id = self.client.put("a")
        worker = self.worker({"a": _boom}, retries_max=1)
        self.pass_s(20)
        traces = [(level, text) for level, text in lines if "Traceback" in text]
        self.assertEqual(["debug", "warn"], [level for level, _ in traces])
        self.assertTrue(traces[0][1].startswith(f"Job {job_id}: Traceback"), traces[0][1])
        self.assertTrue(traces[0][1].endswith("ValueError: no"), traces[0][1])
        self.stop(worker)

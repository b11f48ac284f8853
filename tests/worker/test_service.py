"""A worker with a node in memory."""

from __future__ import annotations

import sys
from functools import partial
from itertools import pairwise
from typing import Any

import attrs
from twisted.application.service import MultiService
from twisted.internet.defer import Deferred
from twisted.logger import formatEvent

from disque_tx.client import Refused, TooLate
from disque_tx.client.leases import renewal_s
from disque_tx.client.options import AddOptions
from disque_tx.worker import (
    AllSlotsLost,
    BadHandlers,
    Context,
    Hopeless,
    Queue,
    Worker,
    batch,
    current_job,
)
from disque_tx.worker.tasks.routes import routes_of
from tests.logged import observe, warnings
from tests.worker.memory import NODE, HangingPool, WorkerTestCase, lost


def boom(job: Context) -> None:
    """Fail with the body as the reason."""
    raise ValueError(job.body.decode())


def pop_for(wanted: str, errors: list[Exception], command: str) -> Exception | None:
    """Fail one command, as long as there are errors in the list."""
    return errors.pop() if command == wanted and errors else None


class DoingTests(WorkerTestCase):
    """Jobs that are processed successfully."""

    def test_functions_and_coroutines(self) -> None:
        """Each job is processed once and acknowledged afterwards, in as few requests as
        possible."""
        release: Deferred[None] = Deferred()

        async def wait(job: Context) -> None:
            await release
            self.done.append(current_job().body)

        ids = [self.client.put("a", b"plain"), self.client.put("b", b"later")]
        worker = self.worker({"a": self.note, "b": wait})
        self.assertEqual(["acked", "active"], [self.client.state(id_) for id_ in ids])
        release.callback(None)
        self.pass_s(0.1)
        self.assertEqual(["acked", "acked"], [self.client.state(id_) for id_ in ids])
        self.assertRaises(LookupError, current_job)
        self.assertEqual([b"plain", b"later"], self.done)
        self.stop(worker)

    def test_part_of_a_service(self) -> None:
        """A worker can be part of another Twisted service."""
        worker = self.worker({"a": self.note})
        parent = MultiService()
        worker.setServiceParent(parent)
        parent.startService()
        self.client.put("a", b"1")
        self.pass_s(0.1)
        self.assertEqual([b"1"], self.done)
        self.stop(worker)

    def test_many(self) -> None:
        """A thousand short jobs are acknowledged with far fewer requests."""
        for number in range(1000):
            self.client.put("a", str(number).encode())
        worker = self.worker({"a": self.note}, concurrency=4)
        self.pass_s(5)
        self.assertEqual({str(n).encode() for n in range(1000)}, set(self.done))
        self.assertEqual(1000, len(self.done))
        self.assertLess(len(self.client.times("ACKJOB")), 200)
        self.stop(worker)

    def test_fetches_for_free_slots(self) -> None:
        """While jobs take long, no more are fetched than there are free slots."""
        for _ in range(50):
            self.client.put("a")
        worker = self.worker({"a": self.note}, HangingPool, concurrency=4)
        self.pass_s(3)
        self.assertEqual(46, len(self.client.queued("a")))
        self.assertEqual(4, self.client.most_requested)
        self.pools[0].release()
        self.pass_s(0.1)
        self.assertEqual(42, len(self.client.queued("a")))
        self.stop(worker)

    def test_batches(self) -> None:
        """A batch runs when it is full, or when its first job has waited long enough."""
        sizes = []

        @batch(3, wait_s=2)
        def together(jobs: list[Context]) -> None:
            sizes.append(len(jobs))

        ids = [self.client.put("a") for _ in range(4)]
        worker = self.worker({"a": together}, concurrency=2)
        self.assertEqual([3], sizes)
        self.pass_s(1.5)
        self.assertEqual([3], sizes)
        self.pass_s(1)
        self.assertEqual([3, 1], sizes)
        self.assertEqual({"acked"}, {self.client.state(id_) for id_ in ids})
        self.client.put("a")
        self.pass_s(0.5)
        self.stop(worker)
        self.assertEqual(([3, 1], 1), (sizes, len(self.client.queued("a"))))

    def test_batch_of_one(self) -> None:
        """A handler of batches gets a list even where a batch is one job, and has no current job,
        because one that works with one job at a time would fail with the second."""
        taken: list[object] = []

        @batch(1)
        def in_thread(jobs: list[Context]) -> None:
            self.assertRaises(LookupError, current_job)
            taken.append([job.body for job in jobs])

        @batch(2, wait_s=0)
        async def awaited(jobs: list[Context]) -> None:
            self.assertRaises(LookupError, current_job)
            taken.append([job.body for job in jobs])

        for queue in "ab":
            self.client.put(queue, queue.encode())
        worker = self.worker({"a": in_thread, "b": awaited})
        self.pass_s(0.1)
        self.stop(worker)
        self.assertEqual([[b"a"], [b"b"]], taken)

    def test_order(self) -> None:
        """With priorities, all jobs of the first queue come first; with weights, each queue has its
        share."""
        for order, weights, begin in (
            ("priority", None, b"a" * 6),
            ("fair", {"a": 2, "b": 1}, None),
        ):
            self.setUp()
            for queue in "ba":
                for _ in range(30):
                    self.client.put(queue, queue.encode())
            handlers = {"a": self.note, "b": self.note}
            worker = self.worker(handlers, concurrency=6, order=order, weights=weights)
            first = b"".join(self.done[:6])
            if begin is not None:
                self.assertEqual(begin, first)
            else:
                self.assertEqual((4, 2), (first.count(b"a"), first.count(b"b")))
            self.stop(worker)

    def test_lost_ack(self) -> None:
        """An acknowledgement whose reply was lost is sent again, whether it was executed or not."""
        for lossy in (False, True):
            self.setUp()
            self.client.lossy = lossy
            self.client.broken = partial(pop_for, "ACKJOB", [lost("ACKJOB"), lost("ACKJOB")])
            job_id = self.client.put("a")
            worker = self.worker({"a": self.note})
            self.pass_s(2)
            self.assertEqual(("acked", 1), (self.client.state(job_id), len(self.done)))
            self.assertEqual(3, len(self.client.times("ACKJOB")))
            self.stop(worker)

    def test_fetching_fails(self) -> None:
        """Whatever error GETJOB raises, the worker repeats it with growing backoff, and continues
        later."""
        self.client.broken = lambda command: RuntimeError("odd") if command == "GETJOB" else None
        self.client.put("a", b"1")
        worker = self.worker({"a": self.note})
        self.pass_s(60)
        self.assertLess(len(self.client.times("GETJOB")), 20)
        self.client.broken = lambda command: None
        self.pass_s(11)
        self.assertEqual([b"1"], self.done)
        self.stop(worker)

    def test_bad_handlers(self) -> None:
        """A worker with invalid handlers or options is refused before any job is fetched."""
        for handlers, words in (
            ({"a": 3}, {}),
            ([], {}),
            ("mail", {}),
            ({"a": self.note}, {"queues": ["b"]}),
            ({"a": self.note}, {"order": "random"}),
            ({"a": self.note}, {"weights": {"a": 0}}),
            ({"a": self.note}, {"concurrency": 0}),
        ):
            with self.assertRaises(BadHandlers):
                Worker(self.client, handlers, self.clock, **words)
        self.assertEqual(["q"], list(routes_of([Queue("q")])))


class LeaseTests(WorkerTestCase):
    """Jobs that take long."""

    def test_heartbeats(self) -> None:
        """With any RETRY, a long job is never delivered twice, and WORKING is sent in time and no
        more often than that takes."""
        for retry_s in (1, 2, 5, 7, 30, 100):
            self.setUp()
            job_id = self.client.put("a", retry_s=retry_s)
            worker = self.worker({"a": self.note}, HangingPool)
            self.pass_s(3 * retry_s + 1)
            self.assertEqual("active", self.client.state(job_id))
            self.assertEqual(0, self.client.jobs[job_id].job.additional_deliveries)
            times = self.client.times("WORKING")
            self.assertLess(abs(times[0] - 0.2), 0.06)
            for earlier, later in pairwise(times):
                self.assertLess(abs(later - earlier - renewal_s(retry_s)), 0.06)
            self.pools[0].release()
            self.stop(worker)
            self.assertEqual("acked", self.client.state(job_id))

    def test_late_answers(self) -> None:
        """Answers that take their time do not delay the heartbeats that follow, and each job gets
        more than one."""
        self.client.late_s["WORKING"] = 1.5
        job_id = self.client.put("a", retry_s=10)
        worker = self.worker({"a": self.note}, HangingPool)
        self.pass_s(30)
        times = self.client.times("WORKING")
        self.assertEqual(4, len(times))
        for earlier, later in pairwise(times):
            self.assertLess(abs(later - earlier - renewal_s(10)), 0.06)
        self.assertEqual(0, self.client.jobs[job_id].job.additional_deliveries)
        self.pools[0].release()
        self.pass_s(2)
        self.stop(worker)

    def test_short_jobs_need_no_heartbeat(self) -> None:
        """A job that is done quickly needs no WORKING."""
        self.client.put("a")
        worker = self.worker({"a": self.note})
        self.pass_s(5)
        self.assertEqual([], self.client.times("WORKING"))
        self.stop(worker)

    def test_waiting_jobs(self) -> None:
        """The leases of jobs in the worker's buffer are renewed, too."""

        @batch(10, wait_s=8)
        def together(jobs: list[Context]) -> None:
            self.done.extend(job.body for job in jobs)

        job_id = self.client.put("a", retry_s=1)
        worker = self.worker({"a": together})
        self.pass_s(9)
        self.assertEqual(1, len(self.done))
        self.assertEqual(0, self.client.jobs[job_id].job.additional_deliveries)
        self.stop(worker)

    def test_lost_lease(self) -> None:
        """After half of the TTL the lease cannot be renewed; the handler can see that, and
        continues."""
        jobs: list[Context] = []
        finish: Deferred[None] = Deferred()

        async def slow(job: Context) -> None:
            jobs.append(job)
            await finish

        job_id = self.client.put("a", retry_s=10, ttl_s=20)
        worker = self.worker({"a": slow})
        self.pass_s(9)
        self.assertFalse(jobs[0].lease_lost)
        self.pass_s(8)
        self.assertTrue(jobs[0].lease_lost)
        finish.callback(None)
        self.pass_s(0.1)
        self.assertEqual("acked", self.client.state(job_id))
        self.stop(worker)

    def test_unanswered(self) -> None:
        """A WORKING without a reply is repeated before RETRY is over."""
        self.client.broken = partial(pop_for, "WORKING", [lost("WORKING"), lost("WORKING")])
        job_id = self.client.put("a", retry_s=2)
        worker = self.worker({"a": self.note}, HangingPool)
        self.pass_s(6)
        self.assertEqual(0, self.client.jobs[job_id].job.additional_deliveries)
        self.pools[0].release()
        self.stop(worker)


class FailureTests(WorkerTestCase):
    """Jobs that fail."""

    def test_backoff(self) -> None:
        """A failed job is held during its backoff and then returned to the queue; no copy is
        added."""
        self.client.put("a", b"why", retry_s=5)
        worker = self.worker({"a": boom}, retries_max=3)
        self.pass_s(200)
        self.assertEqual([10.0, 30.0, 70.0], [round(at) for at in self.client.times("NACK")])
        (letter,) = self.client.letters("a")
        self.assertEqual(("ValueError: why", 3, 0), (letter.reason, letter.nacks, 0))
        self.assertEqual(["ValueError: why"] * 3, [reason for _, reason in letter.history])
        self.assertIn("in boom", letter.traceback)
        self.assertEqual(1, len(self.client.times("ADDJOB")))
        self.assertEqual(1, len(self.client.times("ACKJOB")))
        self.stop(worker)

    def test_any_exception(self) -> None:
        """A handler that raises SystemExit, KeyboardInterrupt or an exception that cannot be
        printed fails only its own job."""

        def leave(job: Context) -> None:
            sys.exit(3)

        async def interrupt(job: Context) -> None:
            raise KeyboardInterrupt

        class Evil(Exception):
            def __str__(self) -> str:
                raise RuntimeError

        def evil(job: Context) -> None:
            raise Evil

        for queue in "abcd":
            self.client.put(queue, b"1")
        handlers = {"a": leave, "b": interrupt, "c": evil, "d": self.note}
        worker = self.worker(handlers, retries_max=0)
        self.pass_s(0.1)
        reasons = [letter.reason for queue in "abc" for letter in self.client.letters(queue)]
        self.assertEqual(["SystemExit: 3", "KeyboardInterrupt", "Evil"], reasons)
        self.assertEqual([b"1"], self.done)
        self.stop(worker)

    def test_hopeless(self) -> None:
        """A handler can declare that another attempt would not help."""

        def refuse(job: Context) -> None:
            raise Hopeless("no such customer")

        self.client.put("a")
        worker = self.worker({"a": refuse})
        self.assertEqual("Hopeless: no such customer", self.client.letters("a")[0].reason)
        self.stop(worker)

    def test_too_many_deliveries(self) -> None:
        """A job that ends its worker at each attempt becomes a dead letter after a number of
        deliveries."""
        for number in range(4):
            self.client.put("a", str(number).encode())
        for number, stored in enumerate(self.client.jobs.values()):
            stored.job = attrs.evolve(stored.job, additional_deliveries=number)
        worker = self.worker({"a": self.note}, retries_max=2)
        self.pass_s(0.1)
        self.assertEqual([b"0", b"1", b"2"], self.done)
        (letter,) = self.client.letters("a")
        self.assertEqual((b"3", 3), (letter.body, letter.additional_deliveries))
        self.stop(worker)

    def test_at_most_once(self) -> None:
        """A failed job with RETRY 0 is not tried again, but becomes a dead letter."""
        job_id = self.client.put("a", b"once", retry_s=0)
        worker = self.worker({"a": boom})
        self.pass_s(60)
        (letter,) = self.client.letters("a")
        once = AddOptions(retry_s=0, ttl_s=86400, replicate=1)
        self.assertEqual((b"once", once), (letter.body, letter.add_options))
        self.assertEqual(("acked", []), (self.client.state(job_id), self.client.times("NACK")))
        self.stop(worker)

    def test_failures_are_logged(self) -> None:
        """Each failure is logged at once, with task, job, attempt, next attempt and reason; the
        last one with its traceback."""
        lines = warnings(self)
        job_id = self.client.put("a", b"no way")
        worker = self.worker({"a": boom}, retries_max=1)
        self.pass_s(0.5)
        begin = f"boom failed at job {job_id} of queue 'a', try"
        self.assertEqual([f"{begin} 1 of 2, next in 10.0 s: ValueError: no way"], lines)
        self.pass_s(20)
        (_, last) = lines
        self.assertTrue(last.startswith(f"{begin} 2 of 2, it goes to 'dead:a': ValueError: no way"))
        self.assertIn("\nTraceback (most recent call last)", last)
        self.assertIn("in boom", last)
        self.stop(worker)

    def test_letter_has_the_options(self) -> None:
        """A dead letter contains the options the job was added with, including its whole TTL, so
        that it can be requeued as the same job."""
        self.client.put("a", b"1", retry_s=40, ttl_s=600)
        worker = self.worker({"a": boom}, retries_max=1)
        self.pass_s(20)
        (letter,) = self.client.letters("a")
        self.assertEqual(AddOptions(retry_s=40, ttl_s=600, replicate=1), letter.add_options)
        self.stop(worker)

    def test_letter_without_options(self) -> None:
        """A dead letter is written even if the node refuses SHOW or no longer knows the job."""
        job_id = self.client.put("a", b"1", retry_s=7)
        refused = Refused("SHOW", NODE, "ERR", "unknown command")
        self.client.broken = lambda command: refused if command == "SHOW" else None
        worker = self.worker({"a": boom}, retries_max=0)
        self.pass_s(200)
        (letter,) = self.client.letters("a")
        self.assertEqual(AddOptions(retry_s=7), letter.add_options)
        self.assertEqual("acked", self.client.state(job_id))
        self.stop(worker)

    def test_letter_first(self) -> None:
        """A failed job is acknowledged only after its dead letter was added, however long that
        takes."""
        self.client.broken = lambda command: lost("ADDJOB") if command == "ADDJOB" else None
        job_id = self.client.put("a", b"b", retry_s=1)
        worker = self.worker({"a": boom}, retries_max=0)
        self.pass_s(200)
        self.assertEqual("active", self.client.state(job_id))
        self.assertLess(len(self.client.times("ADDJOB")), 60)
        self.client.broken = lambda command: None
        self.pass_s(10)
        self.assertEqual(("acked", 1), (self.client.state(job_id), len(self.client.letters("a"))))
        self.stop(worker)

    def test_refused_lease(self) -> None:
        """When WORKING is refused, a failed job is returned to the queue at once, without
        backoff."""

        def too_late(command: str) -> Exception | None:
            return TooLate(command, NODE, "TOOLATE", "") if command == "WORKING" else None

        self.client.broken = too_late
        job_id = self.client.put("a", b"1", retry_s=1000)
        worker = self.worker({"a": boom}, retries_max=1)
        self.pass_s(1)
        self.assertEqual("acked", self.client.state(job_id))
        self.assertEqual(1, self.client.letters("a")[0].nacks)
        self.stop(worker)

    def test_lost_nack(self) -> None:
        """When a NACK is lost, the job is delivered again after its RETRY."""
        self.client.broken = lambda command: lost("NACK") if command == "NACK" else None
        job_id = self.client.put("a", b"1", retry_s=20)
        worker = self.worker({"a": boom}, retries_max=1)
        self.pass_s(60)
        self.assertEqual(1, self.client.letters("a")[0].additional_deliveries)
        self.assertEqual("acked", self.client.state(job_id))
        self.stop(worker)


class HangingTests(WorkerTestCase):
    """Handlers that do not return."""

    def test_coroutine(self) -> None:
        """A coroutine that exceeds its time limit is cancelled, and its job has failed."""

        async def hang(job: Context) -> None:
            await Deferred()

        self.client.put("a")
        worker = self.worker({"a": hang}, time_limit_s=3, retries_max=0)
        self.pass_s(4)
        self.assertEqual(
            "TimeLimitPassed: It took longer than 3 s.", self.client.letters("a")[0].reason
        )
        self.stop(worker)

    def test_thread(self) -> None:
        """A hanging thread cannot be stopped: its job is delivered again after its RETRY, and its
        slot is lost; when it returns later, the slot is free again and the job is acknowledged."""
        job_id = self.client.put("a", b"1", retry_s=20)
        worker = self.worker({"a": self.note}, HangingPool, concurrency=2, time_limit_s=3)
        self.pass_s(4)
        working = len(self.client.times("WORKING"))
        self.pass_s(10)
        self.assertEqual(working, len(self.client.times("WORKING")))
        self.pools[0].release()
        self.pass_s(0.1)
        self.assertEqual("acked", self.client.state(job_id))
        self.assertEqual(2, worker._runner.free)
        self.stop(worker)

    def test_thread_at_last_try(self) -> None:
        """A job that hangs at every delivery becomes a dead letter, instead of blocking another
        thread each time."""
        for retry_s in (20, 0):
            self.setUp()
            job_id = self.client.put("a", b"1", retry_s=retry_s)
            retries_max = 0 if retry_s else 5
            worker = self.worker(
                {"a": self.note}, HangingPool, time_limit_s=3, retries_max=retries_max
            )
            self.pass_s(4)
            self.assertIn("TimeLimitPassed", self.client.letters("a")[0].reason)
            self.assertEqual("acked", self.client.state(job_id))
            self.stop(worker)

    def test_all_lost(self) -> None:
        """A worker without slots reports an error and fetches no more jobs."""
        for _ in range(3):
            self.client.put("a")
        worker = self.worker({"a": self.note}, HangingPool, concurrency=2, time_limit_s=3)
        stopped = worker.when_stopped()
        self.pass_s(5)
        self.failureResultOf(stopped, AllSlotsLost)
        self.assertEqual(1, len(self.client.queued("a")))
        self.stop(worker)

    def test_all_lost_is_the_end(self) -> None:
        """A worker without slots has no request for jobs under way, whose jobs it could not do; nor
        does it take any when a function returns after all."""
        self.client.put("a")
        worker = self.worker({"a": self.note}, HangingPool, concurrency=1, time_limit_s=3)
        worker._runner.mean_s = 0.001
        worker._fetcher.fetch_more()
        self.pass_s(1)
        self.assertEqual(1, len(self.client.waiting))
        self.pass_s(4)
        self.client.put("a", b"later")
        self.assertEqual([0], [job.nacks for job in self.client.queued("a")])
        self.pools[0].release()
        self.pass_s(1)
        self.assertEqual([b"later"], [job.body for job in self.client.queued("a")])
        self.assertEqual(0, worker.running)
        self.stop(worker)

    def test_all_lost_is_logged(self) -> None:
        """An operator reads why the worker does nothing any more, and what to do about it."""
        said: list[str] = []
        observe(self, lambda event: said.append(formatEvent(event)))
        self.client.put("a")
        worker = self.worker({"a": self.note}, HangingPool, concurrency=1, time_limit_s=3)
        self.pass_s(5)
        self.assertIn(
            "All 1 slots of worker w are held by handlers that passed their time limit and cannot"
            " be stopped. Restart the process, and find out what hangs; a handler with process=True"
            " can be stopped.",
            said,
        )
        self.stop(worker)

    def test_who_blocks(self) -> None:
        """Only coroutines can block the reactor: no function in a thread is blamed for that, and no
        coroutine that has ended."""
        release: Deferred[None] = Deferred()

        async def slow(job: Context) -> None:
            await release

        for queue in "ab":
            self.client.put(queue)
        worker = self.worker({"a": slow, "b": self.note}, HangingPool)
        self.assertEqual(["slow"], [one.name.split(".")[-1] for one in worker._runner.coroutines()])
        release.callback(None)
        self.pass_s(0.1)
        self.assertEqual([], worker._runner.coroutines())
        self.pools[0].release()
        self.stop(worker)


class DrainingTests(WorkerTestCase):
    """Stopping a worker."""

    def test_grace(self) -> None:
        """Running handlers may finish; jobs that have not started are returned to their queues at
        once."""
        finish: list[Deferred[Any]] = []

        async def slow(job: Context) -> None:
            finish.append(Deferred())
            await finish[-1]

        ids = [self.client.put("a") for _ in range(3)]
        worker = self.worker({"a": slow}, concurrency=2)
        worker._runner.mean_s = 0.001
        self.pass_s(0.1)
        stopped = worker.stopService()
        self.pass_s(1)
        self.assertEqual(1, len(self.client.queued("a")))
        finish[0].callback(None)
        self.pass_s(10)
        self.successResultOf(stopped)
        # The second job was cancelled after the grace period, and returned.
        states = [self.client.state(id_) for id_ in ids]
        self.assertEqual(["acked", "queued", "queued"], states)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_fetched_ahead(self) -> None:
        """Jobs that were fetched ahead and have not begun are there for other workers at once,
        though a handler runs on; each is given back once."""
        worker = self.worker({"a": self.note}, HangingPool, concurrency=1)
        worker._runner.mean_s = 0.001
        running = self.client.put("a")
        self.pass_s(0.1)
        ahead = [self.client.put("a") for _ in range(3)]
        self.pass_s(0.1)
        states = [self.client.state(job_id) for job_id in (running, *ahead)]
        self.assertEqual(["active"] * 4, states)
        stopped = worker.stopService()
        self.pass_s(0.1)
        self.assertEqual(ahead, [job.id for job in self.client.queued("a")])
        self.assertEqual([1] * 3, [job.nacks for job in self.client.queued("a")])
        self.pools[0].release()
        self.pass_s(1)
        self.successResultOf(stopped)
        self.assertEqual("acked", self.client.state(running))

    def test_nothing_to_say(self) -> None:
        """A worker that stops with all its jobs settled warns of nothing, stops nothing, and does
        not take longer than its jobs."""
        said = warnings(self)
        finish: Deferred[None] = Deferred()
        cancelled: list[bool] = []

        async def slow(job: Context) -> None:
            try:
                await finish
            finally:
                cancelled.append(not finish.called)

        job_id = self.client.put("a")
        worker = self.worker({"a": slow})
        stopped = worker.stopService()
        self.pass_s(2)
        finish.callback(None)
        self.pass_s(0.2)
        self.successResultOf(stopped)
        self.assertEqual(([], [False]), (said, cancelled))
        self.assertEqual("acked", self.client.state(job_id))

    def test_logged(self) -> None:
        """An operator reads when a worker begins, what it does, what it still has when it stops,
        and that it has stopped."""
        said: list[str] = []
        observe(self, lambda event: said.append(formatEvent(event)))
        for _ in range(2):
            self.client.put("a")
        worker = self.worker({"a": self.note}, HangingPool, concurrency=2)
        self.stop(worker, 60)
        self.assertEqual("Worker w does ['a']", said[0])
        self.assertEqual("Worker w stops, with 2 jobs here", said[1])
        self.assertEqual("Worker w has stopped", said[-1])
        self.assertEqual(0, len(worker._held))

    def test_backoffs_end(self) -> None:
        """A job in its backoff is returned at once when the worker stops."""
        self.client.put("a", b"1")
        worker = self.worker({"a": boom})
        self.pass_s(1)
        self.assertEqual([], self.client.queued("a"))
        self.stop(worker, 1)
        self.assertEqual(1, len(self.client.queued("a")))

    def test_threads_are_left(self) -> None:
        """A job in a running thread is not returned before its RETRY is over."""
        job_id = self.client.put("a", retry_s=60)
        worker = self.worker({"a": self.note}, HangingPool)
        self.stop(worker, 20)
        self.assertEqual(([], "active"), (self.client.times("NACK"), self.client.state(job_id)))
        self.pass_s(60)
        self.assertEqual("queued", self.client.state(job_id))

    def test_not_begun_at_most_once(self) -> None:
        """A job with RETRY 0 that was not started cannot be returned: it becomes a dead letter."""

        @batch(10, wait_s=60)
        def together(jobs: list[Context]) -> None:
            self.fail("The batch must not start.")

        self.client.put("a", b"once", retry_s=0)
        self.client.put("a", b"more")
        worker = self.worker({"a": together})
        self.stop(worker)
        self.assertEqual([b"once"], [letter.body for letter in self.client.letters("a")])
        self.assertEqual([b"more"], [job.body for job in self.client.queued("a")])

    def test_node_is_gone(self) -> None:
        """A worker stops even if no node answers."""
        self.client.put("a", b"1")
        worker = self.worker({"a": self.note}, HangingPool)
        self.client.broken = lost
        self.pools[0].release()
        said = warnings(self)
        self.stop(worker, 30)
        self.assertIn("Left to RETRY: 1 job", said)
        self.assertEqual(0, len(worker._held))

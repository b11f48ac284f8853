"""The slots of a worker are free again however its jobs end."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.logger import formatEvent
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import Refused
from disque_tx.worker import Context, Queue, batch
from disque_tx.worker.base.status import WorkerStatus, worker_of
from tests.logged import observe
from tests.worker.memory import NODE, HangingPool, WorkerTestCase, lost


def _boom(job: Context) -> None:
    raise ValueError("no")


class SlotTests(WorkerTestCase):
    """A worker with few slots and many jobs that end in one way, before one that is done."""

    def test_unreadable(self) -> None:
        """Jobs that name no task take no slot for good."""
        queue = Queue("a", retries_max=0)
        done: list[int] = []
        queue.job(name="t")(lambda: done.append(1))
        for _ in range(50):
            self.client.put("a", b"no task")
        self.client.put("a", b'{"task": "t"}')
        worker = self.worker(queue, concurrency=2)
        self.pass_s(60)
        self.assertEqual([1], done)
        self.assertEqual(50, len(self.client.letters("a")))
        self.stop(worker)

    def test_exhausted(self) -> None:
        """Nor do those that were delivered too often, or fail."""
        for _ in range(50):
            self.client.put("a")
            self.client.put("b")
        for stored in self.client.jobs.values():
            if stored.job.queue == "a":
                stored.job = stored.job.__class__("a", stored.job.id, b"", 9, 0)
        last = self.client.put("c", b"last")
        worker = self.worker({"a": self.note, "b": _boom, "c": self.note}, retries_max=0)
        self.pass_s(60)
        self.assertEqual([b"last"], self.done)
        self.assertEqual("acked", self.client.state(last))
        for queue in "ab":
            self.assertEqual(50, len(self.client.letters(queue)), queue)
        self.stop(worker)

    def test_not_more(self) -> None:
        """However many jobs have ended, no more are taken than may run at a time, and a few ahead:
        the others stay where other workers find them."""
        for _ in range(40):
            self.client.put("a", b"no task")
        queue = Queue("a", retries_max=0)
        queue.job(name="t")(lambda: None)
        worker = self.worker(queue, HangingPool, concurrency=3)
        self.pass_s(60)
        for _ in range(30):
            self.client.put("a", b'{"task": "t"}')
        self.pass_s(1)
        held = 30 - len(self.client.queued("a"))
        self.assertTrue(3 <= held <= 6, held)
        self.stop(worker)

    def test_failed_late(self) -> None:
        """What a handler says that was given up before is no failure any more: its job is left to
        its RETRY, and its slot counts once."""
        self.client.put("a", retry_s=1_000)
        worker = self.worker({"a": _boom}, HangingPool, concurrency=2, time_limit_s=3)
        self.pass_s(4)
        self.pools[0].release()
        self.pass_s(30)
        self.assertEqual(([], []), (self.client.times("NACK"), self.client.letters("a")))
        for _ in range(10):
            self.client.put("a")
        self.pass_s(1)
        self.assertEqual(8, len(self.client.queued("a")))
        self.stop(worker)

    def test_not_more_after_exhausted(self) -> None:
        """So it is after jobs that were delivered too often."""
        for _ in range(40):
            self.client.put("a")
        for stored in self.client.jobs.values():
            stored.job = stored.job.__class__("a", stored.job.id, b"", 9, 0)
        worker = self.worker({"a": self.note}, HangingPool, concurrency=3, retries_max=0)
        self.pass_s(60)
        self.assertEqual(40, len(self.client.letters("a")))
        for _ in range(30):
            self.client.put("a")
        self.pass_s(1)
        held = 30 - len(self.client.queued("a"))
        self.assertTrue(3 <= held <= 6, held)
        self.stop(worker)

    def test_batches(self) -> None:
        """A batch takes a slot for each of its jobs, and frees them all."""
        sizes: list[int] = []

        @batch(5, wait_s=0)
        def together(jobs: list[Context]) -> None:
            sizes.append(len(jobs))

        ids = [self.client.put("a") for _ in range(57)]
        worker = self.worker({"a": together}, concurrency=2)
        self.pass_s(30)
        self.assertEqual({"acked"}, {self.client.state(job_id) for job_id in ids})
        self.assertEqual((57, True), (sum(sizes), max(sizes) <= 5))
        self.stop(worker)


class RequestTests(WorkerTestCase):
    """Requests that fail for a while."""

    def test_fetched_again(self) -> None:
        """An operator reads once that no jobs can be fetched, and once that they can again; a
        worker that never failed says nothing of it."""
        lines: list[str] = []
        observe(self, lambda event: lines.append(formatEvent(event)))
        self.client.put("a")
        worker = self.worker({"a": self.note})
        self.pass_s(1)
        self.assertEqual([], [line for line in lines if "fetched" in line])
        self.client.broken = lambda command: lost("GETJOB") if command == "GETJOB" else None
        self.client.put("a")
        self.pass_s(30)
        self.client.broken = lambda command: None
        self.client.put("a")
        self.pass_s(30)
        found = [line for line in lines if "fetched" in line]
        self.assertEqual(2, len(found), found)
        self.assertTrue(found[0].startswith("No jobs can be fetched; retrying: "), found)
        self.assertEqual("Jobs can be fetched again", found[1])
        self.stop(worker)

    def test_shown_later(self) -> None:
        """A node that refuses SHOW a few times, as while it loads its log, is asked again: the dead
        letter has the options of the job."""
        refusals = 3

        def refuse(command: str) -> Exception | None:
            nonlocal refusals
            if command != "SHOW" or not refusals:
                return None
            refusals -= 1
            return Refused(command, NODE, "LOADING", "")

        self.client.broken = refuse
        self.client.put("a", b"1", retry_s=40, ttl_s=600)
        worker = self.worker({"a": _boom}, retries_max=0)
        self.pass_s(60)
        (letter,) = self.client.letters("a")
        self.assertEqual(40, letter.add_options.retry_s)
        self.assertEqual(1, letter.add_options.replicate)
        self.stop(worker)

    def test_given_back_once(self) -> None:
        """A job whose heartbeat has no answer yet is given back after it, and once."""
        self.client.late_s = {"WORKING": 30.0}
        job_id = self.client.put("a", retry_s=10)

        async def slow(job: Context) -> None:
            await Deferred()

        worker = self.worker({"a": slow}, time_limit_s=20)
        self.pass_s(22)
        self.assertEqual([], self.client.times("NACK"))
        stopped = worker.stopService()
        self.pass_s(60)
        self.successResultOf(stopped)
        given = [ids for command, _, ids in self.client.calls if command == "NACK"]
        self.assertLessEqual(len(given), 1)
        self.assertTrue(all(list(ids) == [job_id] for ids in given), given)


class StatusTests(SynchronousTestCase):
    """What workers write into the names of their connections."""

    def test_others(self) -> None:
        """Other names of connections are not taken for those of workers, however alike they
        are."""
        name = WorkerStatus("w", 4, 1, ("mail", None)).encoded()
        self.assertEqual(WorkerStatus("w", 4, 1, ("mail", None)), WorkerStatus.decoded(name))
        prefix, *rest = name.split("/")
        wrong = ["/".join(["other", *rest]), f"{name}/more", "/".join([prefix, *rest[:-1]]), ""]
        wrong += [name.replace("/4/", "/x/"), name.replace("/1/", "/-1/")]
        for one in wrong:
            self.assertIsNone(WorkerStatus.decoded(one), one)
            self.assertEqual(one, worker_of(one))
        self.assertEqual("w", worker_of(name))

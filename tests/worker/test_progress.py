"""Progress that handlers report: what the node is told of it, and when."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import Job
from disque_tx.worker import Context, batch
from disque_tx.worker.running.child import answer
from disque_tx.worker.running.processes import _FunctionProcess
from tests.logged import warnings
from tests.worker.memory import WorkerTestCase, lost


def reporting(job: Context) -> None:
    """A handler for a process of its own."""
    job.progress(0.5, "half")
    job.progress(0.75)


class ProgressTests(WorkerTestCase):
    """``Context.progress``."""

    def setUp(self) -> None:
        super().setUp()
        self.release: Deferred[None] = Deferred()
        self.jobs: list[Context] = []

    async def wait(self, job: Context) -> None:
        """A handler that runs until it is released."""
        self.jobs.append(job)
        await self.release

    def report(self, fraction: float, note: str = "") -> None:
        """The handler reports something."""
        self.jobs[0].progress(fraction, note)

    def told(self) -> list[tuple[float, str | None]]:
        """What the node was told, without the times."""
        return [(fraction, note) for _at_s, fraction, note in self.client.progress]

    def finish(self, worker: Any) -> None:
        """The handler ends, and the worker is stopped."""
        self.release.callback(None)
        self.stop(worker)

    def test_told(self) -> None:
        """The node is told soon, and not again before there is news."""
        self.client.put("a", retry_s=300)
        worker = self.worker({"a": self.wait})
        self.pass_s(2)
        self.report(0.4, "page 40")
        self.pass_s(0.3)
        self.assertEqual([(0.4, "page 40")], self.told())
        self.pass_s(10)
        self.assertEqual(1, len(self.told()))
        self.report(0.5)
        self.pass_s(0.3)
        self.assertEqual([(0.4, "page 40"), (0.5, "")], self.told())
        self.finish(worker)

    def test_often(self) -> None:
        """However often a handler reports something, there is one WORKING a second at most, and
        the node knows the latest in the end."""
        self.client.put("a", retry_s=300)
        worker = self.worker({"a": self.wait})
        for number in range(100):
            self.report(number / 100)
            self.pass_s(0.05)
        self.pass_s(1.5)
        times = self.client.times("WORKING")
        self.assertLessEqual(len(times), 7)
        self.assertEqual([], [a for a, b in pairwise(times) if b - a < 1])
        self.assertEqual((0.99, ""), self.told()[-1])
        self.finish(worker)

    def test_with_heartbeat(self) -> None:
        """A heartbeat that is due brings the news along."""
        self.client.put("a", retry_s=1)
        worker = self.worker({"a": self.wait})
        self.report(0.25)
        self.pass_s(0.3)
        self.assertEqual([(0.25, "")], self.told())
        self.assertEqual(1, len(self.client.times("WORKING")))
        self.finish(worker)

    def test_lost(self) -> None:
        """News that may not have arrived are sent again."""
        self.client.put("a", retry_s=300)
        worker = self.worker({"a": self.wait})
        self.pass_s(2)
        errors = [lost("WORKING")]
        self.client.broken = lambda command: errors.pop() if errors else None
        self.report(0.5)
        self.pass_s(0.3)
        self.assertEqual([], self.told())
        self.pass_s(5)
        self.assertEqual([(0.5, "")], self.told())
        self.finish(worker)

    def test_original(self) -> None:
        """A node that knows no progress gets heartbeats as ever, and the log says so once."""
        self.client.knows_progress = False
        self.client.put("a", retry_s=10)
        worker = self.worker({"a": self.wait})
        said = warnings(self)
        for number in range(100):
            self.report(number / 100)
            self.pass_s(0.5)
        self.assertEqual([], self.told())
        self.assertEqual("active", self.client.state(self.jobs[0].id))
        self.assertEqual(0, self.client.jobs[self.jobs[0].id].job.additional_deliveries)
        self.assertEqual(1, len([line for line in said if "shows no progress" in line]))
        # One that was asked again after a minute, of which each takes two requests.
        self.assertLessEqual(len(self.client.times("WORKING")), 10)
        self.finish(worker)

    def test_after_the_end(self) -> None:
        """A job that is done has no news any more."""
        self.client.put("a", retry_s=300)
        worker = self.worker({"a": self.wait})
        self.release.callback(None)
        self.pass_s(0.1)
        self.report(0.5)
        self.pass_s(3)
        self.assertEqual([], self.client.times("WORKING"))
        self.stop(worker)

    def test_batch(self) -> None:
        """Each job of a batch has its own progress."""
        ids = [self.client.put("a", retry_s=300) for _ in range(2)]

        @batch(2)
        async def both(jobs: list[Context]) -> None:
            for number, job in enumerate(jobs, 1):
                job.progress(number / 2)
            await self.release

        worker = self.worker({"a": both})
        self.pass_s(0.5)
        self.assertEqual([(0.5, ""), (1.0, "")], sorted(self.told(), key=lambda row: row[0]))
        self.assertEqual(
            ids, [argument for name, _, argument in self.client.calls if name == "WORKING"]
        )
        self.finish(worker)

    def test_checked(self) -> None:
        """What no node would take is an error of the handler, where it was made."""
        job = Context(Job("q", "D-1", b""), "w")
        for fraction in (-0.1, 1.1, float("nan"), float("inf")):
            self.assertRaises(ValueError, job.progress, fraction)
        self.assertRaises(ValueError, job.progress, 0.5, "ä" * 129)
        self.assertIsNone(job.reported)
        job.progress(1, "ä" * 128)
        job.progress(0.5, "\ud800")


class ProcessTests(SynchronousTestCase):
    """Handlers in a process of their own."""

    def request(self, target: str) -> dict[str, Any]:
        """A job for the process."""
        names = {"queue": "q", "id": "D-1", "body": "", "worker": "w"}
        return {**names, "target": target, "nacks": 0, "additional_deliveries": 0}

    def test_sent(self) -> None:
        """The process passes on what its handler reports, at once if it was not for a moment."""
        sent: list[dict[str, Any]] = []
        done = answer(self.request(f"{__name__}:reporting"), sent.append)
        self.assertEqual({"error": None, "value": None}, done)
        self.assertEqual([{"progress": [0.5, "half"]}], sent)

    def test_received(self) -> None:
        """The worker learns of it before the answer, however the lines come."""
        process = _FunctionProcess(None, lambda one: None)
        process.makeConnection(StringTransport())
        job = Context(Job("q", "D-1", b""), "w")
        done = process.ask(b"request", job)
        lines = [json.dumps({"progress": [number / 4, "n"]}).encode() + b"\n" for number in (1, 2)]
        process.childDataReceived(3, lines[0] + lines[1][:5])
        process.childDataReceived(3, lines[1][5:])
        self.assertNoResult(done)
        assert job.reported is not None
        self.assertEqual((0.5, "n"), (job.reported.fraction, job.reported.note))
        last = json.dumps({"progress": [1, ""]}).encode() + b"\n"
        process.childDataReceived(3, last + b'{"error": null, "value": null}\n')
        self.assertIsNone(self.successResultOf(done))
        assert job.reported is not None
        self.assertEqual(1, job.reported.fraction)

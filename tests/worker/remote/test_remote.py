"""What a worker says about itself, and the commands that it takes."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx import __version__
from disque_tx.client import Job
from disque_tx.client.requests.announcements import TEXT_BYTES_MAX
from disque_tx.worker import Context, Worker
from disque_tx.worker.base.context import HeldJob
from disque_tx.worker.remote.announcing import WorkerIdentity, description
from disque_tx.worker.remote.commands import COMMANDS, control_queue, read
from disque_tx.worker.remote.hour import LastHour
from tests.logged import warnings
from tests.worker.memory import MemoryTaken, WorkerTestCase, lost


class RemoteCase(WorkerTestCase):
    """A worker whose jobs end when the test says so."""

    def setUp(self) -> None:
        super().setUp()
        self.release: Deferred[None] = Deferred()

    async def wait(self, job: Context) -> None:
        """A handler that runs until it is released, and then fails if it is to."""
        job.progress(0.5, "half")
        await self.release
        if job.body == b"fail":
            raise ValueError("no")

    def said(self) -> dict[str, Any]:
        """What the worker has said last about itself."""
        text = self.client.announced[-1]
        values: dict[str, Any] = json.loads(text) if text else {}
        return values

    def tell(self, command: str, **more: Any) -> None:
        """Send the worker a command."""
        body = json.dumps({"command": command, "by": "ann", **more}).encode()
        self.client.put(control_queue(self.said()["id"]), body, retry_s=0, ttl_s=60)
        self.pass_s(0.5)


class AnnouncingTests(RemoteCase):
    """CLIENT ANNOUNCE."""

    def test_said(self) -> None:
        """People see what a worker is, and what it does."""
        worker = self.worker({"a": self.wait, "b": self.wait}, concurrency=2)
        self.assertEqual(("taking", []), (self.said()["state"], self.said()["jobs"]))
        job_id = self.client.put("a", b"x")
        self.pass_s(10)
        said = self.said()
        self.assertEqual(("w", __version__), (said["worker"], said["version"]))
        self.assertEqual(
            (2, 1, 1, False), tuple(said[n] for n in ("slots", "held", "running", "control"))
        )
        self.assertEqual(["a", "b"], said["queues"])
        self.assertIn("wait", said["tasks"][0])
        (job,) = said["jobs"]
        self.assertGreater(job.pop("for_s"), 4)
        task = said["tasks"][0]
        expected = {"id": job_id, "queue": "a", "task": task, "progress": 0.5, "note": "half"}
        self.assertEqual(expected, job)
        self.release.callback(None)
        self.client.put("a", b"fail")
        self.pass_s(6)
        self.assertEqual((1, 1), (self.said()["done"], self.said()["failed"]))
        self.stop(worker)
        self.assertEqual({}, self.said())

    def test_original(self) -> None:
        """A node that lists no workers is asked again only after some minutes."""
        self.client.knows_workers = False
        worker = self.worker({"a": self.note})
        self.pass_s(60)
        self.client.knows_workers = True
        self.pass_s(200)
        self.assertEqual([], self.client.announced)
        self.pass_s(60)
        self.assertEqual("taking", self.said()["state"])
        self.stop(worker)

    def test_bounded(self) -> None:
        """However many tasks, queues and jobs there are, and however long their names, the text is
        one that a node takes, and says that something is missing."""
        client = self.client
        held = []
        for _ in range(100):
            job = Job("ü" * 1_000, "D-" + "x" * 38, b"")
            one = HeldJob(MemoryTaken(client, job), Context(job, "w"), 0)
            one.task = "\u1234" * 500
            one.context.progress(0.123, "ü" * 128)
            held.append((one, 1e9))
        names = ["\U0001f600" * 200] * 500
        who = WorkerIdentity("0" * 16, "w" * 500, "h" * 500, 1 << 30, 10_000, names, names, True)
        text = description(who, "stopping", 10_000, held, 10**9, 10**9)
        self.assertLessEqual(len(text), TEXT_BYTES_MAX)
        said = json.loads(text)
        self.assertEqual((True, 100), (said["cut"], said["running"]))
        self.assertGreater(len(said["jobs"]), 0)


class CommandTests(RemoteCase):
    """Commands by others."""

    def controlled(self, **words: Any) -> Worker:
        """A worker that takes commands."""
        return self.worker({"a": self.wait}, remote_control=True, **words)

    def test_stop_taking(self) -> None:
        """A worker that is to take no jobs leaves them to others, does those that it has, and takes
        jobs again when it is told to."""
        worker = self.controlled()
        first = self.client.put("a")
        self.pass_s(0.1)
        self.tell("stop-taking")
        self.assertEqual("idle", self.said()["state"])
        second = self.client.put("a")
        self.release.callback(None)
        self.pass_s(10)
        self.assertEqual(("acked", "queued"), (self.client.state(first), self.client.state(second)))
        self.tell("take")
        self.assertEqual(("taking", "acked"), (self.said()["state"], self.client.state(second)))
        self.stop(worker)

    def test_stop(self) -> None:
        """A worker that is to stop does the jobs that it has, however long they take, and ends."""
        worker = self.controlled(grace_s=1)
        stopped = worker.when_stopped()
        first = self.client.put("a")
        self.pass_s(0.1)
        self.tell("stop")
        second = self.client.put("a")
        self.tell("take")  # too late
        self.pass_s(100)
        self.assertNoResult(stopped)
        self.release.callback(None)
        self.pass_s(5)
        self.successResultOf(stopped)
        self.assertEqual(("acked", "queued"), (self.client.state(first), self.client.state(second)))
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_stop_without_jobs(self) -> None:
        """A worker without jobs ends at once."""
        worker = self.controlled()
        stopped = worker.when_stopped()
        self.tell("stop")
        self.pass_s(1)
        self.successResultOf(stopped)

    def test_off(self) -> None:
        """A worker that was not started to take commands takes none."""
        worker = self.worker({"a": self.wait})
        self.tell("stop")
        self.pass_s(5)
        self.assertEqual("taking", self.said()["state"])
        self.assertEqual(1, len(self.client.queued(control_queue(self.said()["id"]))))
        self.stop(worker)

    def test_nonsense(self) -> None:
        """What is no command is noted in the log, and changes nothing."""
        worker = self.controlled()
        said = warnings(self)
        queue = control_queue(self.said()["id"])
        bodies = [b"", b"stop", b"[" * 1_000, b'{"command": "exec"}', b'{"command": ["stop"]}']
        for body in (
            *bodies,
            b'{"command": "stop", "by": 5}',
            b'{"command": "stop", "x": "%b"}' % (b"x" * 2_000),
        ):
            self.client.put(queue, body, retry_s=0)
        self.pass_s(1)
        self.assertEqual("taking", self.said()["state"])
        self.assertEqual(7, len([line for line in said if "was ignored" in line]))
        self.assertEqual([], self.client.queued(queue))
        self.stop(worker)

    def test_fetched_again(self) -> None:
        """A worker whose node was gone takes commands again."""
        self.client.broken = lambda command: lost(command) if command == "GETJOB" else None
        worker = self.controlled()
        self.pass_s(10)
        self.client.broken = lambda command: None
        self.pass_s(20)
        self.tell("stop-taking")
        self.assertEqual("idle", self.said()["state"])
        self.stop(worker)

    def test_read(self) -> None:
        """The name of the sender ends in a log, where it breaks no line."""
        for command in COMMANDS:
            self.assertEqual((command, ""), read(json.dumps({"command": command}).encode()))
        body = json.dumps({"command": "take", "by": "a\n\x1b[2J" + "b" * 500}).encode()
        found = read(body)
        assert found is not None
        self.assertEqual("a??[2J" + "b" * 154, found[1])


class HourTests(SynchronousTestCase):
    """The last hour."""

    def test_sums(self) -> None:
        """What happened more than an hour ago does not count."""
        clock = Clock()
        hour = LastHour(clock.seconds)
        for _ in range(120):
            hour.count(2, 1)
            hour.count(1, 0)
            clock.advance(60)
        self.assertEqual((3 * 59, 59), hour.sums())
        clock.advance(3_600)
        self.assertEqual((0, 0), hour.sums())

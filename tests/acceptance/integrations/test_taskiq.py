"""taskiq on real nodes, with real workers."""

from __future__ import annotations

import asyncio
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

from taskiq import AckableMessage, BrokerMessage, ScheduledTask, TaskiqResult

from disque_tx.client.blocking import Disque
from disque_tx.integrations.taskiq import (
    DisqueBroker,
    DisqueResultBackend,
    DisqueScheduleSource,
    ResultIsMissing,
)
from tests.acceptance.daemon import DaemonTestCase
from tests.acceptance.integrations.frameworks import FrameworkTestCase, kill, stop

_APP = """
import asyncio
from disque_tx.integrations.taskiq import DisqueBroker, DisqueResultBackend
broker = DisqueBroker(os.environ["BROKER"], retry_s=int(os.environ["RETRY"])).with_result_backend(
    DisqueResultBackend(os.environ["BROKER"]))

@broker.task
async def note(text):
    report(text)
    return text * 2

@broker.task
def slow(text, wait_s):
    report("begun " + text)
    time.sleep(wait_s)
    report("done " + text)

async def send(call):
    await broker.startup()
    result = await call()
    await broker.shutdown()
    return result
"""

#: taskiq of a year ago has none.
_INTERVALS = "interval" in ScheduledTask.model_fields


class WorkerTests(FrameworkTestCase):
    """One node, and workers in processes of their own."""

    def setUp(self) -> None:
        super().setUp()
        daemon = self.running()
        self.variables["BROKER"] = f"disque://127.0.0.1:{daemon.port}"
        self.write("app", _APP)

    def worker(self) -> subprocess.Popen[bytes]:
        """A worker with one process."""
        return self.spawn("-m", "taskiq", "worker", "app:broker", "--workers", "1")

    def send(self, body: str) -> str:
        """Run the body of a coroutine in another process, with the broker started."""
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        return self.run_program(
            f"import app, asyncio\nasync def call():\n{lines}\nasyncio.run(app.send(call))"
        )

    def test_life(self) -> None:
        """Tasks are done, each once, now or after a delay, and their results can be read."""
        worker = self.worker()
        printed = self.send(
            "for number in range(30):\n"
            "    await app.note.kiq(str(number))\n"
            "await app.note.kicker().with_labels(delay=1).kiq('later')\n"
            "task = await app.note.kiq('x')\n"
            "for _ in range(2):\n"
            "    print((await task.wait_result(timeout=60)).return_value)\n"
        )
        self.assertEqual(["xx", "xx"], printed.split())
        self.wait_reported(*map(str, range(30)), "later", "x")
        self.assertEqual({1}, set(self.reported().values()))
        self.assertEqual(0, stop(worker), self.output())

    def test_long(self) -> None:
        """A task that takes several times RETRY is not begun again while its worker lives."""
        self.shorten_retry()
        for _ in range(2):
            self.worker()
        self.send("await app.slow.kiq('x', 7)")
        self.wait_reported("done x")
        self.assertEqual({1}, set(self.reported().values()))

    def test_killed(self) -> None:
        """The task of a worker that is killed is done by another one soon after RETRY."""
        self.shorten_retry()
        first = self.worker()
        self.send("await app.slow.kiq('x', 5)")
        self.wait_reported("begun x")
        self.worker()
        kill(first)
        self.wait_reported("done x")


class BrokerTests(DaemonTestCase):
    """The broker and the results by themselves."""

    def setUp(self) -> None:
        self.port = self.running().port
        self.url = f"disque://127.0.0.1:{self.port}"
        self.raw = Disque(self.url)
        self.addCleanup(self.raw.close)

    def sent(self, number: int, **labels: Any) -> BrokerMessage:
        """A message."""
        return BrokerMessage(
            task_id=str(number), task_name="t", message=str(number).encode(), labels=labels
        )

    def test_priorities(self) -> None:
        """Among messages that wait, the most urgent is delivered first, and all are
        acknowledged."""

        async def use() -> list[bytes]:
            broker = DisqueBroker(self.url)
            for priority in (0, 3, 9, 5):
                await broker.kick(self.sent(priority, priority=priority))
            found = []
            async for message in broker.listen():
                found.append(message.data)
                await acknowledge(message)
                if len(found) == 4:
                    break
            await broker.shutdown()
            return found

        self.assertEqual([b"9", b"5", b"3", b"0"], asyncio.run(use()))
        self.assertEqual([], list(self.raw.job_scan(states=("queued", "active"))))

    def test_given_back(self) -> None:
        """What a worker has not acknowledged when it stops goes back at once."""

        async def use() -> None:
            broker = DisqueBroker(self.url, retry_s=600)
            await broker.kick(self.sent(1))
            async for _ in broker.listen():
                break
            await broker.shutdown()

        asyncio.run(use())
        self.assertEqual(1, self.raw.queue_length("taskiq"))

    def test_labels(self) -> None:
        """Labels say when and where a task is done, and one that is no number is an error."""

        async def use() -> None:
            broker = DisqueBroker(self.url)
            await broker.kick(self.sent(1, queue_name="other", delay="2.5", ttl=60))
            with self.assertRaises(ValueError):
                await broker.kick(self.sent(1, delay="soon"))
            await broker.shutdown()

        asyncio.run(use())
        (job,) = self.raw.job_scan("other")
        self.assertEqual(3, job.delay_s)
        self.assertTrue(55 <= job.ttl_s <= 63)

    def test_missing(self) -> None:
        """A result that is not there is an error, and can be asked for."""

        async def use() -> None:
            backend: DisqueResultBackend[Any] = DisqueResultBackend(self.url)
            self.assertFalse(await backend.is_result_ready("x"))
            with self.assertRaises(ResultIsMissing):
                await backend.get_result("x")
            result = TaskiqResult(is_err=False, log="l", return_value={"a": 1}, execution_time=1)
            await backend.set_result("x", result)
            self.assertTrue(await backend.is_result_ready("x"))
            self.assertEqual({"a": 1}, (await backend.get_result("x")).return_value)
            self.assertIsNone((await backend.get_result("x")).log)
            self.assertEqual("l", (await backend.get_result("x", with_logs=True)).log)
            await backend.shutdown()

        asyncio.run(use())

    def test_settings(self) -> None:
        """Wrong settings are named at the start."""
        for options in ({"retry_s": 0}, {"prefetch": 0}):
            arguments: Any = options
            self.assertRaises(ValueError, DisqueBroker, self.url, **arguments)


class ScheduleTests(DaemonTestCase):
    """Tasks that recur."""

    def setUp(self) -> None:
        self.url = f"disque://127.0.0.1:{self.running().port}"
        self.raw = Disque(self.url)
        self.addCleanup(self.raw.close)

    def names(self) -> list[str]:
        """The schedules of the node."""
        return [schedule.name for schedule in self.raw.schedule_list()]

    def broker(self, schedules: list[dict[str, Any]]) -> DisqueBroker:
        """A broker with one task, which has these schedules."""
        broker = DisqueBroker(self.url)

        @broker.task("tick", schedule=schedules)
        async def tick(number: int) -> None: ...

        return broker

    def test_labels(self) -> None:
        """Schedules in labels are set in the cluster when a program starts, changed and deleted
        when the code says so; those of others stay."""

        async def start(*schedules: dict[str, Any]) -> None:
            broker = self.broker(list(schedules))
            await DisqueScheduleSource(broker).startup()
            await broker.shutdown()

        self.raw.schedule_set("other", 60, "q", "body")
        daily = {"cron": "0 3 * * *", "cron_offset": "Europe/Berlin", "args": [1]}
        often = {"interval": 30} if _INTERVALS else {"cron": "*/30 * * * * *"}
        asyncio.run(start(daily, {**often, "args": [2], "labels": {"queue_name": "fast"}}))
        self.assertEqual(["other", "taskiq:label:tick:0", "taskiq:label:tick:1"], self.names())
        first, second = self.raw.schedule_list()[1:]
        self.assertEqual(("0 3 * * *", "Europe/Berlin"), (first.when, first.zone))
        self.assertEqual(
            ("EVERY 30" if _INTERVALS else "*/30 * * * * *", "fast"), (second.when, second.queue)
        )
        asyncio.run(start(daily))
        self.assertEqual(["other", "taskiq:label:tick:0"], self.names())

    def test_occurrences(self) -> None:
        """Each occurrence is a message with an ID of its own, though all of them are one schedule:
        results of one do not replace those of another."""

        async def use() -> list[tuple[str, list[Any]]]:
            broker = self.broker([])
            source = DisqueScheduleSource(broker)
            task = broker.find_task("tick")
            assert task is not None
            made = await task.kicker().schedule_by_cron(source, "* * * * * *", 7)
            found = []
            async for message in broker.listen():
                parsed = broker.formatter.loads(message.data)
                found.append((parsed.task_id, parsed.args))
                await acknowledge(message)
                if len(found) == 2:
                    break
            await made.unschedule()
            self.assertEqual([], await source.get_schedules())
            await broker.shutdown()
            return found

        first, second = asyncio.run(use())
        self.assertEqual(([7], [7]), (first[1], second[1]))
        self.assertTrue(first[0].startswith("D-") and first[0] != second[0], (first, second))
        self.assertEqual([], self.names())

    def test_once(self) -> None:
        """A task for a single time is added once, however often that is repeated, and can be
        cancelled."""

        async def use() -> None:
            broker = self.broker([])
            source = DisqueScheduleSource(broker)
            at = datetime.now(UTC) + timedelta(seconds=600)
            task = ScheduledTask(
                task_name="tick", labels={}, args=[1], kwargs={}, time=at, schedule_id="one"
            )
            await source.add_schedule(task)
            await source.add_schedule(task)
            (job,) = self.raw.job_scan("taskiq")
            self.assertTrue(590 <= job.delay_s <= 600, job.delay_s)
            await source.delete_schedule("one")
            self.assertEqual([], list(self.raw.job_scan("taskiq", states=("active",))))
            await broker.shutdown()

        asyncio.run(use())

    def test_refused(self) -> None:
        """What nodes cannot follow is an error, and no schedule."""

        async def use() -> None:
            broker = self.broker([])
            source = DisqueScheduleSource(broker)
            halves = timedelta(seconds=1.5)
            for wrong in (
                {"interval": halves},
                {"cron": "* * * * *", "cron_offset": timedelta(hours=1)},
            ):
                fields: Any = {"task_name": "tick", "labels": {}, "args": [], "kwargs": {}}
                with self.assertRaises(ValueError):
                    await source.add_schedule(ScheduledTask(**fields, **wrong))
            await broker.shutdown()

        asyncio.run(use())
        self.assertEqual([], self.names())


async def acknowledge(message: AckableMessage) -> None:
    """Acknowledge a message as taskiq does."""
    done = message.ack()
    if done is not None:
        await done

"""taskiq's schedules and results on a node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from taskiq import TaskiqResult
from taskiq.scheduler.scheduled_task import ScheduledTask

from disque_tx.integrations.taskiq import (
    DisqueBroker,
    DisqueResultBackend,
    DisqueScheduleSource,
)
from disque_tx.integrations.taskiq.results import ResultIsMissing
from tests.cli.livenode import VerbCase

Use = Callable[[DisqueBroker, DisqueScheduleSource], Awaitable[None]]


def scheduled(schedule_id: str = "s", **when: Any) -> ScheduledTask:
    """A task with a schedule."""
    labels = when.pop("labels", {})
    when = when or {"interval": 60}
    words: dict[str, Any] = {"args": [1], "kwargs": {"to": "a"}, "labels": labels}
    return ScheduledTask(task_name="send", schedule_id=schedule_id, **words, **when)


class ScheduleTests(VerbCase):
    """Schedules that the nodes follow."""

    def use(self, use: Use, broker: DisqueBroker | None = None) -> DisqueBroker:
        """Do something with the schedules of a broker."""

        async def run() -> DisqueBroker:
            made = DisqueBroker(self.node.address) if broker is None else broker
            await use(made, DisqueScheduleSource(made))
            await made.shutdown()
            return made

        return asyncio.run(run())

    def names(self) -> list[str]:
        """The schedules of the node."""
        return sorted(one.name for one in self.client.schedule_list())

    def test_set(self) -> None:
        """A schedule of a program is one of the node, with its expression, zone and queue; it goes
        when it is deleted."""

        async def use(_: DisqueBroker, source: DisqueScheduleSource) -> None:
            await source.add_schedule(
                scheduled("c", cron="0 5 * * *", cron_offset="Europe/Berlin", labels={"ttl": 7})
            )
            await source.add_schedule(
                scheduled("i", interval=90, labels={"queue_name": "other", "priority": 2})
            )
            await source.add_schedule(scheduled("d", interval=timedelta(minutes=2)))
            await source.delete_schedule("d")
            self.assertEqual([], await source.get_schedules())

        self.use(use)
        cron, interval = sorted(self.client.schedule_list(), key=lambda one: one.name)
        self.assertEqual(
            ("taskiq:c", "0 5 * * *", "Europe/Berlin", "taskiq"),
            (cron.name, cron.when, cron.zone, cron.queue),
        )
        found = (interval.name, interval.queue, interval.when)
        self.assertEqual(("taskiq:i", "other\x062", "EVERY 90"), found)

    def test_terms(self) -> None:
        """A task without terms comes back after a minute, and is kept for ten days."""
        broker = DisqueBroker()
        queue, options = broker.placed({})
        found = (queue, options.retry_s, options.ttl_s, options.delay_s, options.replicate)
        self.assertEqual(("taskiq", 60, 10 * 86_400, None, None), found)
        for name in ("delay", "ttl", "priority"):
            error = self.assertRaises(ValueError, broker.placed, {name: "soon"})
            self.assertEqual(f"The label {name} is a number, not 'soon'.", str(error))
        self.assertRaises(ValueError, DisqueBroker, prefetch=0)

    def test_refused(self) -> None:
        """What nodes cannot follow is refused with what is possible."""

        async def use(_: DisqueBroker, source: DisqueScheduleSource) -> None:
            for when, said in (
                ({"interval": timedelta(seconds=0.5)}, "An interval is a whole number of seconds"),
                ({"interval": timedelta(seconds=1.5)}, "An interval is a whole number of seconds"),
                ({"interval": 0}, "An interval is a whole number of seconds, not 0."),
                ({"interval": -1}, "An interval is a whole number of seconds, not -1."),
                ({"interval": None}, "An interval is a whole number of seconds, not None."),
                ({"cron": "* * * * *", "cron_offset": timedelta(hours=1)}, "cron_offset is the"),
            ):
                try:
                    # taskiq checks some of it when the object is made, and nothing later.
                    await source.add_schedule(scheduled("x").model_copy(update=when))
                except ValueError as error:
                    self.assertTrue(str(error).startswith(said), error)
                else:
                    self.fail(f"{when} is taken")
            await source.add_schedule(scheduled("one", interval=1))

        self.use(use)
        self.assertEqual(["taskiq:one"], self.names())

    def test_once(self) -> None:
        """A task for one time is a job that waits for it; it is added once for its ID, and deleted
        by it. A time that is over, and one without a zone, are those of UTC."""

        async def use(_: DisqueBroker, source: DisqueScheduleSource) -> None:
            at = datetime.now(UTC) + timedelta(hours=1)
            for _again in range(2):
                await source.add_schedule(scheduled("t", time=at))
            await source.add_schedule(scheduled("n", time=at.replace(tzinfo=None)))
            self.assertEqual(2, int(self.client.info()["registered_jobs"]))
            self.assertEqual(0, self.length("taskiq"))
            await source.delete_schedule("t")
            await source.delete_schedule("none")
            self.assertEqual(1, int(self.client.info()["registered_jobs"]))
            await source.add_schedule(scheduled("p", time=at - timedelta(days=1)))

        self.use(use)
        self.assertEqual(1, self.length("taskiq"))

    def test_labels(self) -> None:
        """The labels of the tasks are set at the start; those that are not there any more are
        deleted, and other schedules stay."""

        async def send() -> None:
            """Do nothing."""

        broker = DisqueBroker(self.node.address)
        schedule: list[dict[str, Any]] = [
            {"cron": "0 5 * * *"}, {"time": "later"},
            {"interval": 60, "schedule_id": "mine", "labels": {"queue_name": "other"}},
        ]  # fmt: skip
        broker.register_task(send, "send", schedule=schedule)

        async def use(_: DisqueBroker, source: DisqueScheduleSource) -> None:
            await source.add_schedule(scheduled("kept", interval=60))
            await source._set("taskiq:label:gone", scheduled(interval=60))
            await source.startup()

        self.use(use, broker)
        expected = ["taskiq:kept", "taskiq:label:mine", "taskiq:label:send:0"]
        self.assertEqual(expected, self.names())
        queues = {one.name: one.queue for one in self.client.schedule_list()}
        self.assertEqual("other", queues["taskiq:label:mine"])

    def test_message(self) -> None:
        """The worker gets the task of a schedule with the ID of its job."""

        async def use(broker: DisqueBroker, source: DisqueScheduleSource) -> None:
            await source.add_schedule(scheduled("t", time=datetime.now(UTC)))
            messages = broker.listen()
            message = await anext(messages)
            found = broker.formatter.loads(message.data)
            self.assertTrue(found.task_id.startswith("D-"))
            words = (found.task_name, found.args, found.kwargs)
            self.assertEqual(("send", [1], {"to": "a"}), words)
            await messages.aclose()

        self.use(use)


class ResultTests(VerbCase):
    """Results of tasks."""

    def test_results(self) -> None:
        """A result can be read as often as one likes, with its log for who wants it; one that is
        missing is an error with its ID; progress is kept apart."""

        async def run() -> None:
            from taskiq.depends.progress_tracker import TaskProgress, TaskState

            backend: DisqueResultBackend[int] = DisqueResultBackend(
                self.node.address, result_ttl_s=77
            )
            result = TaskiqResult(is_err=False, log="said", return_value=5, execution_time=0.5)
            self.assertIs(False, await backend.is_result_ready("1"))
            await backend.set_result("1", result)
            self.assertIs(True, await backend.is_result_ready("1"))
            found = await backend.get_result("1")
            self.assertEqual((5, None, 0.5), (found.return_value, found.log, found.execution_time))
            self.assertEqual("said", (await backend.get_result("1", with_logs=True)).log)
            self.assertIsNone(await backend.get_progress("1"))
            await backend.set_progress("1", TaskProgress(state=TaskState.STARTED, meta={"a": 1}))
            progress = await backend.get_progress("1")
            assert progress is not None
            self.assertEqual((TaskState.STARTED, {"a": 1}), (progress.state, progress.meta))
            try:
                await backend.get_result("2")
            except ResultIsMissing as error:
                self.assertEqual(("2",), error.args)
            else:
                self.fail("there is a result")
            await backend.shutdown()

        asyncio.run(run())
        ((_, job_id, _),) = self.call("QPEEK", "taskiq:result:1", 9)
        shown = self.call("SHOW", job_id)
        self.assertTrue(70 < shown[shown.index(b"ttl") + 1] <= 77)

"""taskiq's schedules as those of Disque: the nodes add the messages when they are due.

    source = DisqueScheduleSource(broker)

    @broker.task(schedule=[{"cron": "*/5 * * * *", "args": [1]}])
    async def refresh(number): ...

    await refresh.kicker().schedule_by_cron(source, "0 3 * * *", 2)

``await source.startup()`` takes over the schedules in the labels of tasks: it sets them, and
deletes those that it set before and that are in no label any more. No scheduler process is needed;
one that runs with this source does that at its start, and then has nothing to send.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import attrs
from taskiq import ScheduledTask, ScheduleSource
from taskiq.message import TaskiqMessage

from disque_tx.integrations.taskiq.broker import SCHEDULED, DisqueBroker

#: Between the prefix and the name of a task, of schedules that come from labels.
_LABEL: Final = "label:"
#: What a label says about when; taskiq of a year ago has no intervals.
_WHEN: Final = ("cron", "cron_offset", "interval")


class DisqueScheduleSource(ScheduleSource):
    """Schedules in the cluster of a broker. ``prefix``: of their names there; it separates the
    programs that share a cluster.

    A task that is added at one time only is a job with a delay. A schedule is added once, however
    often :meth:`add_schedule` is repeated with its ID.
    """

    def __init__(self, broker: DisqueBroker, prefix: str = "taskiq:") -> None:
        self._broker = broker
        self._prefix = prefix
        self._once: dict[str, str] = {}

    async def startup(self) -> None:
        """See the module.

        :raises ValueError: a label is none that nodes can follow.
        :raises CommandFailed: the nodes refuse a schedule; originals refuse all.
        """
        wanted = self._labelled()
        mine = self._prefix + _LABEL
        for schedule in await self._broker.client.schedule_list():
            if schedule.name.startswith(mine) and schedule.name not in wanted:
                await self._broker.client.schedule_del(schedule.name)
        for name, task in wanted.items():
            await self._set(name, task)
        await super().startup()

    def _labelled(self) -> dict[str, ScheduledTask]:
        """By name, what the labels of the broker's tasks say."""
        found = {}
        for task_name, task in self._broker.get_all_tasks().items():
            labels = {name: value for name, value in task.labels.items() if name != "schedule"}
            for number, entry in enumerate(task.labels.get("schedule", ())):
                if not {"cron", "interval"} & entry.keys():
                    continue
                schedule_id = entry.get("schedule_id") or f"{task_name}:{number}"
                found[f"{self._prefix}{_LABEL}{schedule_id}"] = ScheduledTask(
                    task_name=task_name,
                    labels={**labels, **entry.get("labels", {})},
                    args=entry.get("args", []),
                    kwargs=entry.get("kwargs", {}),
                    **{name: entry[name] for name in _WHEN if name in entry},
                )
        return found

    async def get_schedules(self) -> list[ScheduledTask]:
        """Nothing to send: the nodes add the jobs that are due."""
        return []

    async def add_schedule(self, schedule: ScheduledTask) -> None:
        """Set a schedule, or add a job for a single time.

        :raises ValueError: nodes cannot follow it: an interval below a second, an offset that is
        not a time zone.
        """
        if schedule.time is None:
            await self._set(self._prefix + schedule.schedule_id, schedule)
            return
        at = schedule.time if schedule.time.tzinfo else schedule.time.replace(tzinfo=UTC)
        delay_s = (at - datetime.now(UTC)).total_seconds()
        name, options = self._broker.placed(schedule.labels, max(0.0, delay_s))
        options = attrs.evolve(options, unique=self._prefix + schedule.schedule_id)
        body = SCHEDULED + self._message(schedule)
        self._once[schedule.schedule_id] = await self._broker.client.add_job_with(
            name, body, options
        )

    async def delete_schedule(self, schedule_id: str) -> None:
        """Delete a schedule; or acknowledge the job for a single time, if this object added it."""
        await self._broker.client.schedule_del(self._prefix + schedule_id)
        job_id = self._once.pop(schedule_id, None)
        if job_id is not None:
            await self._broker.client.ack_jobs(job_id)

    async def _set(self, name: str, task: ScheduledTask) -> None:
        when, zone = _when(task)
        queue, options = self._broker.placed(task.labels)
        body = SCHEDULED + self._message(task)
        await self._broker.client.schedule_set(name, when, queue, body, tz=zone, options=options)

    def _message(self, task: ScheduledTask) -> bytes:
        """The message of a task, whose ID is that of the job it comes with."""
        message = TaskiqMessage(
            task_id="",
            task_name=task.task_name,
            labels=task.labels,
            args=task.args,
            kwargs=task.kwargs,
        )
        return self._broker.formatter.dumps(message).message


def _when(task: ScheduledTask) -> tuple[str | int, str | None]:
    """When a task is due, as nodes take it: an expression or seconds, and a time zone."""
    if task.cron is not None:
        offset: Any = task.cron_offset
        if offset is None or isinstance(offset, str):
            return task.cron, offset
        raise ValueError(f"cron_offset is the name of a time zone, not {offset!r}.")
    interval = getattr(task, "interval", None)
    seconds = interval.total_seconds() if isinstance(interval, timedelta) else interval
    if seconds is None or seconds < 1 or seconds != math.floor(seconds):
        raise ValueError(f"An interval is a whole number of seconds, not {interval!r}.")
    return int(seconds), None

"""Tasks that recur, by ``@queue.every(…)``: keeps the schedules of the cluster in step with them.

The schedules of the tasks of a queue are named ``task:<queue>:<task>``. A worker sets them at its
start, and deletes others of that queue with such a name: tasks that recurred before, and do not any
more. It leaves all other schedules alone. A schedule that is there already, and is the same, is not
changed; one that an operator has paused stays paused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import attrs
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger

from disque_tx.client import AddOptions, ClientError, Refused
from disque_tx.client.requests import schedules as requests
from disque_tx.worker.base.context import WorkerClient
from disque_tx.worker.base.errors import NoSchedules

_PREFIX: Final = "task:"
_AGAIN_S: Final = 5.0
_log = Logger()


@attrs.frozen
class TaskSchedule:
    """When a task recurs, and the job that calls it. ``when``, ``tz``, ``missed``: as for
    ``schedule_set``."""

    when: str | int
    tz: str | None
    missed: str | None
    body: bytes
    options: AddOptions


def schedule_name(queue: str, task: str) -> str:
    """The name of the schedule of a task."""
    return f"{_PREFIX}{queue}:{task}"


async def keep_in_step(
    client: WorkerClient, queue: str, wanted: dict[str, TaskSchedule]
) -> list[str]:
    """Set the schedules of the tasks of a queue, and delete those of other tasks of it; returns the
    names of the deleted ones.

    :raises NoSchedules: the node is an original, and there is something to set.
    :raises ClientError: a node refused a schedule, or could not be reached.
    """
    names = {schedule_name(queue, task): one for task, one in wanted.items()}
    listing = requests.schedule_list()
    try:
        found = listing.parse(await client.execute(*listing.words))
    except Refused as error:
        if not _is_unknown(error):
            raise
        if wanted:
            raise NoSchedules(
                f"The tasks {', '.join(wanted)} of queue {queue!r} cannot recur: the node knows no"
                " schedules. They need nodes of disque-tx."
            ) from error
        return []
    for name, one in names.items():
        setting = requests.schedule_set(
            name, one.when, queue, one.body, tz=one.tz, missed=one.missed, options=one.options
        )
        await client.execute(*setting.words)
    prefix = schedule_name(queue, "")
    stale = [one.name for one in found if one.name.startswith(prefix) and one.name not in names]
    for name in stale:
        await client.execute(*requests.schedule_del(name).words)
    return stale


def _is_unknown(error: Refused) -> bool:
    return "unknown command" in str(error).lower()


class ScheduleKeeper:
    """Keeps the schedules of some queues in step once, when the worker starts; tries again until a
    node can be reached. ``queues``: their tasks that recur, by queue."""

    def __init__(self, client: WorkerClient, clock: Any, queues: dict[str, dict[str, Any]]) -> None:
        self._client = client
        self._clock = clock
        self._queues = queues
        self._working: Deferred[None] | None = None

    def start(self) -> None:
        """Begin; what cannot be done is logged."""
        if self._queues and self._working is None:
            self._working = Deferred.fromCoroutine(self._keep(self._queues.items()))
            self._working.addErrback(lambda failure: failure.trap(CancelledError))

    def stop(self) -> None:
        """Try no more."""
        if self._working is not None:
            self._working.cancel()

    async def _keep(self, queues: Iterable[tuple[str, dict[str, Any]]]) -> None:
        for queue, wanted in queues:
            while not await self._kept(queue, wanted):
                await deferLater(self._clock, _AGAIN_S)

    async def _kept(self, queue: str, wanted: dict[str, TaskSchedule]) -> bool:
        try:
            deleted = await keep_in_step(self._client, queue, wanted)
        except (NoSchedules, Refused) as error:
            _log.error("Schedules of queue {queue} are not set: {error}", queue=queue, error=error)
        except ClientError as error:
            _log.warn("Schedules of queue {queue}: {error}", queue=queue, error=error)
            return False
        else:
            if wanted or deleted:
                _log.info(
                    "Schedules of queue {queue}: {set} set, {deleted} deleted",
                    queue=queue,
                    set=list(wanted),
                    deleted=deleted,
                )
        return True

"""A worker as people see it who look at all workers: by the names of its connections, by what it
announces, and by the commands that it takes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Final, Protocol

from disque_tx.worker.base.context import HeldJob, WorkerClient
from disque_tx.worker.base.status import StatusReporter
from disque_tx.worker.remote.announcing import Announcer, WorkerIdentity, description
from disque_tx.worker.remote.commands import STOP, STOP_TAKING, TAKE, CommandReader
from disque_tx.worker.remote.hour import LastHour

#: It takes jobs, it takes none, or it takes none and ends when those that are here are done.
TAKING: Final = "taking"
IDLE: Final = "idle"
STOPPING: Final = "stopping"


class FetchControl(Protocol):
    """What fetches the jobs of the worker."""

    def fetch_more(self) -> object:
        """Fetch jobs, if there is room."""

    def stop(self) -> object:
        """Fetch no more, until the next :meth:`fetch_more`."""


class Presence:
    """``state``: one of the above. ``hour``: counts what it did.

    ``held``: the jobs that it holds; ``running``: returns those that it works on, and for how many
    seconds. Commands are fetched with ``who.control`` only.
    """

    def __init__(
        self,
        client: WorkerClient,
        clock: Any,
        who: WorkerIdentity,
        held: Collection[HeldJob],
        running: Callable[[], Iterable[tuple[HeldJob, float]]],
        fetching: FetchControl,
    ) -> None:
        self.state = TAKING
        self._clock = clock
        self._fetching = fetching
        self._idle: Callable[[], object] | None = None
        self.hour = LastHour(clock.seconds)
        self._who = who
        self._held = held
        self._running = running
        self._names = StatusReporter(
            client, clock, who.worker, who.slots, who.queues, partial(len, held)
        )
        self._announcer = Announcer(client, clock, self._described)
        actions = {STOP_TAKING: self._stop_taking, TAKE: self._take, STOP: self._stop_after_jobs}
        self._commands = CommandReader(client, clock, who.id, actions) if who.control else None

    @property
    def taking(self) -> bool:
        """Whether it takes jobs."""
        return self.state == TAKING

    @property
    def is_over(self) -> bool:
        """Whether it was told to stop, and has no job any more."""
        return self.state == STOPPING and not self._held

    def start(self, idle: Callable[[], object]) -> None:
        """Be seen, and take commands. ``idle``: called when it may be time to end."""
        self._idle = idle
        self._names.start()
        self._announcer.start()
        if self._commands is not None:
            self._commands.start()

    def stop(self) -> None:
        """Take no more commands, and vanish."""
        if self._commands is not None:
            self._commands.stop()
        self._announcer.stop()
        self._names.stop()

    def _stop_taking(self) -> None:
        if self.state == TAKING:
            self._become(IDLE)
            self._fetching.stop()

    def _take(self) -> None:
        if self.state == IDLE:
            self._become(TAKING)
            self._fetching.fetch_more()

    def drain(self) -> None:
        """Take no more jobs, for the end is near."""
        self._become(STOPPING)
        self._fetching.stop()

    def _stop_after_jobs(self) -> None:
        self.drain()
        if self._idle is not None:
            self._clock.callLater(0, self._idle)

    def _become(self, state: str) -> None:
        self.state = state
        self._announcer.announce()

    def _described(self) -> bytes:
        sums = self.hour.sums()
        return description(self._who, self.state, len(self._held), self._running(), *sums)

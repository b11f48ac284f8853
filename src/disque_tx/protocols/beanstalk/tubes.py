"""Tubes and numbered jobs of one node; a tube is a queue, seen by clients of this protocol."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, Final

from mypy_extensions import i64

from disque_tx.commands.direct import DirectNode
from disque_tx.core.job import Job
from disque_tx.core.notes import Note
from disque_tx.messages import JobRecord
from disque_tx.protocols.beanstalk import requests
from disque_tx.protocols.beanstalk.jobs import OWNER, TubeJob

DEFAULT: Final = b"default"
_STALE_MAX: Final = 64


class Delayed:
    """Delayed jobs of a tube, the one that is due first at the front."""

    def __init__(self) -> None:
        self._jobs: dict[TubeJob, int] = {}
        self._heap: list[tuple[int, int, TubeJob]] = []
        self._made: int = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, entry: TubeJob) -> None:
        """The job is delayed until ``due_ms``."""
        self._made += 1
        self._jobs[entry] = self._made
        heappush(self._heap, (int(entry.due_ms), self._made, entry))
        if len(self._heap) > 2 * len(self._jobs) + _STALE_MAX:
            jobs = self._jobs
            self._heap = [item for item in self._heap if jobs.get(item[2]) == item[1]]
            heapify(self._heap)

    def discard(self, entry: TubeJob) -> None:
        """The job is not delayed any more."""
        self._jobs.pop(entry, None)

    def first(self) -> TubeJob | None:
        """The job that is due first."""
        while self._heap:
            _due_ms, made, entry = self._heap[0]
            if self._jobs.get(entry) == made:
                return entry
            heappop(self._heap)
        return None


class Tube:
    """``using``, ``watching``: connections. ``jobs``: numbered jobs of it; ``total``: all that ever
    were, while the tube was known. ``buried``: in the order in which they were buried. ``pause_s``,
    ``paused_until_ms``: of the pause in force, 0 without one; ``timer``: what ends it."""

    def __init__(self, name: bytes) -> None:
        self.name: bytes = name
        self.using: i64 = 0
        self.watching: i64 = 0
        self.jobs: i64 = 0
        self.total: i64 = 0
        self.deletes: i64 = 0
        self.pauses: i64 = 0
        self.pause_s: i64 = 0
        self.paused_until_ms: i64 = 0
        self.timer: Any = None
        self.buried: OrderedDict[TubeJob, None] = OrderedDict()
        self.delayed: Delayed = Delayed()


class Tubes:
    """All of a node. ``counts``: of requests, by their numbers. ``later``: calls a function after
    so many seconds, within a turn, and returns something that can be cancelled. ``producers``,
    ``workers``, ``waiting``: connections that ever put, or reserved, and that wait.
    """

    def __init__(
        self,
        node: DirectNode,
        settings: Any,
        later: Callable[[float, Callable[[], object]], Any],
    ) -> None:
        self.node: DirectNode = node
        self.settings: Any = settings
        self.by_name: dict[bytes, Tube] = {}
        self.by_number: dict[int, TubeJob] = {}
        self.counts: list[int] = [0] * (requests.MALFORMED + 1)
        self.timeouts: i64 = 0
        self.total: i64 = 0
        self.buried: i64 = 0
        self.connections: i64 = 0
        self.connected: i64 = 0
        self.producers: i64 = 0
        self.workers: i64 = 0
        self.waiting: i64 = 0
        self.started_ms: i64 = node.now_ms()
        self._later: Callable[[float, Callable[[], object]], Any] = later
        self._last: i64 = 0
        self.obtain(DEFAULT)
        node.read_notes(OWNER, self._restore)

    def job_bytes_max(self) -> i64:
        """How large the body of a job may be."""
        most: int = self.settings.beanstalk_max_job_size
        return most

    def replicate(self) -> i64:
        """How many copies of a job are made, -1 for as many as ADDJOB makes."""
        copies: int = self.settings.beanstalk_replicate
        return copies if copies > 0 else -1

    # -- tubes -------------------------------------------------------------------------------

    def obtain(self, name: bytes) -> Tube:
        """The tube of this name."""
        tube = self.by_name.get(name)
        if tube is None:
            tube = self.by_name[name] = Tube(name)
        return tube

    def release(self, tube: Tube) -> None:
        """Forget a tube that nothing refers to."""
        if tube.using or tube.watching or tube.jobs or tube.timer is not None:
            return
        if tube.name != DEFAULT:
            self.by_name.pop(tube.name, None)

    def is_known(self, name: bytes) -> bool:
        """Whether there is such a tube, or a queue of that name."""
        return name in self.by_name or self.node.queue(name) is not None

    def pause(self, tube: Tube, seconds: i64) -> None:
        """The queue of the tube was paused, for so long."""
        self._stop_timer(tube)
        tube.pause_s = seconds
        tube.paused_until_ms = self.node.now_ms() + seconds * 1000
        tube.timer = self._later(float(seconds), lambda: self.resume(tube))

    def resume(self, tube: Tube) -> None:
        """The pause of the tube is over."""
        self._stop_timer(tube)
        tube.pause_s = 0
        tube.paused_until_ms = 0
        self.node.resume(tube.name)
        self.release(tube)

    def _stop_timer(self, tube: Tube) -> None:
        timer, tube.timer = tube.timer, None
        if timer is not None and timer.active():
            timer.cancel()

    # -- jobs --------------------------------------------------------------------------------

    def register(self, entry: TubeJob) -> None:
        """A job is new here; it gets a number unless it has one."""
        if entry.number == 0:
            self._last += 1
            entry.number = self._last
            self.total += 1
            entry.tube.total += 1
        elif entry.number > self._last:
            self._last = entry.number
        self.by_number[entry.number] = entry
        entry.tube.jobs += 1

    def unregister(self, entry: TubeJob) -> None:
        """A job is gone."""
        entry.unbury()
        tube = entry.tube
        tube.delayed.discard(entry)
        if self.by_number.pop(entry.number, None) is not None:
            tube.jobs -= 1
            if tube.jobs == 0:
                self.release(tube)

    def bury(self, entry: TubeJob) -> None:
        """A job is buried."""
        entry.buried = True
        entry.tube.buried[entry] = None
        self.buried += 1

    def entry_of(self, record: JobRecord) -> TubeJob:
        """What is known of a job; one that came by another protocol gets a number."""
        note = self.node.note_of(record)
        if isinstance(note, TubeJob):
            return note
        assert isinstance(record, Job)
        entry = TubeJob(self, self.obtain(record.queue), record.delay_s)
        entry.begins(record)
        self.node.note(record, entry)
        return entry

    def _restore(self, job: Job, data: bytes) -> Note | None:
        """A job with a note came from the log."""
        queued = self.node.unqueue(job)  # its priority may change
        entry = TubeJob(self, self.obtain(job.queue), 0)
        wanted = entry.restore(job, data)
        if wanted:
            known = self.by_number.get(entry.number)
            if known is not None:  # an older note about the same job, or damage
                self.unregister(known)
            entry.begins(job)
        left_ms = entry.until_ms - self.node.wall_ms()
        if entry.buried:
            self.bury(entry)
            self.node.hold_restored(job, 0)
        elif left_ms > 0:
            self.node.hold_restored(job, left_ms)
        elif queued or (entry.restarts and self.node.is_alone(job)):
            self.node.restart(job)
        if not wanted:
            return None
        if entry.is_delayed():
            entry.due_ms = job.qtime_ms
            entry.tube.delayed.add(entry)
        return entry

"""What beanstalkd's protocol knows about jobs, besides the jobs: their numbers, what happened to
them, their tubes, and which connections have them reserved."""

from __future__ import annotations

from collections import OrderedDict
from heapq import heapify, heappop, heappush
from typing import Any, Final

from mypy_extensions import i64

from disque_tx.plugins.direct import (
    BACKOFF,
    DELAYED,
    IN_FLIGHT,
    QUEUED,
    DirectNode,
    DirectProtocol,
    Job,
    Note,
)

OWNER: Final = b"beanstalk"
_VERSION: Final = b"1"
_FIELDS: Final = 11
#: The tube that is always there.
DEFAULT: Final = b"default"
_STALE_MAX: Final = 64


class TubeJob(Note):
    """One job. ``number``: its ID here, 0 before it has one. ``job``: the job of the node.
    ``holder``: the connection that reserved it. ``delay_s``: of the last put or release.
    ``due_ms``: until when it is delayed, by the steady clock; ``until_ms``: the same in unix time,
    0 when it is not. ``restarts``: after a restart, nobody but a client of this protocol can have
    had it."""

    def __init__(self, table: JobTable, tube: Tube, delay_s: i64) -> None:
        super().__init__(OWNER, b"")
        self.table: JobTable = table
        self.tube: Tube = tube
        self.number: i64 = 0
        self.job: Job | None = None
        self.holder: Holder | None = None
        self.buried: bool = False
        self.restarts: bool = False
        self.delay_s: i64 = delay_s
        self.due_ms: i64 = 0
        self.until_ms: i64 = 0
        self.reserves: i64 = 0
        self.timeouts: i64 = 0
        self.releases: i64 = 0
        self.buries: i64 = 0
        self.kicks: i64 = 0

    # -- for the log -------------------------------------------------------------------------

    def data(self) -> bytes:
        job = self.job
        priority: i64 = 0 if job is None else job.priority
        state: i64 = (1 if self.buried else 0) + (2 if self.restarts else 0)
        counts = b"%d %d %d" % (self.reserves, self.timeouts, self.releases)
        counts = b"%s %d %d" % (counts, self.buries, self.kicks)
        fields = b"%s %d %d %d" % (_VERSION, self.number, priority, state)
        return b"%s %d %d %s" % (fields, self.delay_s, self.until_ms, counts)

    def restore(self, job: Job, data: bytes) -> bool:
        """Take everything from the data of a note; ``False`` if it is none of this version."""
        words = data.split(b" ")
        if len(words) != _FIELDS or words[0] != _VERSION:
            return False
        if not all(word.isdigit() and len(word) < 19 for word in words):
            return False
        numbers: list[int] = [int(word) for word in words]
        if not numbers[1] > 0 or numbers[2] > 0xFFFF_FFFF:
            return False
        self.number = numbers[1]
        job.priority = numbers[2]
        self.buried = numbers[3] & 1 != 0
        self.restarts = numbers[3] & 2 != 0
        self.delay_s = numbers[4]
        self.until_ms = numbers[5]
        self.reserves, self.timeouts, self.releases = numbers[6], numbers[7], numbers[8]
        self.buries, self.kicks = numbers[9], numbers[10]
        return True

    # -- from the node -----------------------------------------------------------------------

    def begins(self, job: Job) -> None:
        self.job = job
        self.table.register(self)

    def moved(self, job: Job, was: i64) -> None:
        if was == IN_FLIGHT:
            if self.holder is not None:  # what its client did would have taken it away before
                self.drop_holder()
                if job.state == QUEUED or job.place == BACKOFF:
                    self.timeouts += 1
                    self.table.timeouts += 1
                    self.table.node.note(job, self)
        elif was in (BACKOFF, DELAYED):
            self.tube.delayed.discard(self)
        if (job.place == DELAYED or job.place == BACKOFF) and not self.buried:
            self.tube.delayed.add(self)

    def ended(self, job: Job) -> None:
        self.drop_holder()
        self.table.unregister(self)

    # -- from connections --------------------------------------------------------------------

    def drop_holder(self) -> None:
        """No connection has it reserved."""
        holder = self.holder
        if holder is not None:
            self.holder = None
            holder.reserved.pop(self.number, None)

    def unbury(self) -> None:
        """Remove the job from the buried ones."""
        if self.buried:
            self.buried = False
            self.tube.buried.pop(self, None)
            self.table.buried -= 1

    def is_delayed(self) -> bool:
        """Whether it waits for a delay, or for another attempt."""
        job = self.job
        if job is None or self.buried:
            return False
        return job.place == DELAYED or job.place == BACKOFF

    def is_ready(self) -> bool:
        """Whether it can be reserved."""
        job = self.job
        return job is not None and job.state == QUEUED

    def state(self) -> bytes:
        """The word for its state."""
        if self.is_ready():
            return b"ready"
        if self.buried:
            return b"buried"
        return b"delayed" if self.is_delayed() else b"reserved"


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


class Holder(DirectProtocol):
    """A connection that has jobs. ``reserved``: these, by number."""

    def __init__(self) -> None:
        super().__init__()
        self.reserved: dict[int, TubeJob] = {}


class JobTable:
    """All numbered jobs of a node, and the tubes they are in, by name. ``timeouts``: leases that
    ended. ``total``: all jobs that ever were. ``buried``: those that are now."""

    def __init__(self, node: DirectNode) -> None:
        self.node: DirectNode = node
        self.by_name: dict[bytes, Tube] = {}
        self.by_number: dict[int, TubeJob] = {}
        self.timeouts: i64 = 0
        self.total: i64 = 0
        self.buried: i64 = 0
        self._last: i64 = 0

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

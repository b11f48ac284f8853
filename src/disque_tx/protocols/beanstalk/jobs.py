"""What beanstalkd's protocol knows about a job, besides the job: its number, and what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disque_tx.core.jobs.job import BACKOFF, DELAYED, IN_HAND, Job
from disque_tx.core.jobs.notes import Note
from disque_tx.messages.records import QUEUED

if TYPE_CHECKING:
    from disque_tx.protocols.beanstalk.connection import BeanstalkConnection
    from disque_tx.protocols.beanstalk.tubes import Tube, Tubes

OWNER: Final = b"beanstalk"
_VERSION: Final = b"1"
_FIELDS: Final = 11


class TubeJob(Note):
    """One job. ``number``: its ID here, 0 before it has one. ``job``: the job of the node.
    ``holder``: the connection that reserved it. ``delay_s``: of the last put or release.
    ``due_ms``: until when it is delayed, by the steady clock; ``until_ms``: the same in unix time,
    0 when it is not. ``restarts``: after a restart, nobody but a client of this protocol can have
    had it."""

    def __init__(self, tubes: Tubes, tube: Tube, delay_s: i64) -> None:
        super().__init__(OWNER, b"")
        self.tubes: Tubes = tubes
        self.tube: Tube = tube
        self.number: i64 = 0
        self.job: Job | None = None
        self.holder: BeanstalkConnection | None = None
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
        self.tubes.register(self)

    def moved(self, job: Job, was: i64) -> None:
        if was == IN_HAND:
            if self.holder is not None:  # what its client did would have taken it away before
                self.drop_holder()
                if job.state == QUEUED or job.place == BACKOFF:
                    self.timeouts += 1
                    self.tubes.timeouts += 1
                    self.tubes.node.note(job, self)
        elif was in (BACKOFF, DELAYED):
            self.tube.delayed.discard(self)
        if (job.place == DELAYED or job.place == BACKOFF) and not self.buried:
            self.tube.delayed.add(self)

    def ended(self, job: Job) -> None:
        self.drop_holder()
        self.tubes.unregister(self)

    # -- from connections --------------------------------------------------------------------

    def drop_holder(self) -> None:
        """No connection has it reserved."""
        holder = self.holder
        if holder is not None:
            self.holder = None
            holder.reserved.pop(self.number, None)

    def unbury(self) -> None:
        """It is not buried any more."""
        if self.buried:
            self.buried = False
            self.tube.buried.pop(self, None)
            self.tubes.buried -= 1

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

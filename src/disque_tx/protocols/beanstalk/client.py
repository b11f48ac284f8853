"""What a client of beanstalkd's protocol has: its tubes, the jobs that it reserved, and their
leases."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.plugins.direct import IN_FLIGHT, Job, JobRecord
from disque_tx.protocols.beanstalk.jobs import DEFAULT, Holder, Tube, TubeJob
from disque_tx.protocols.beanstalk.tubes import Tubes

#: In its last second, a lease is over for clients that would reserve another job.
MARGIN_MS: Final = 1_000


class TubeClient(Holder):
    """``used``: the tube of puts. ``watched``: tubes of reserve, by name; ``names``: these."""

    def __init__(self, tubes: Tubes) -> None:
        super().__init__()
        self.tubes: Tubes = tubes
        self.used: Tube = tubes.obtain(DEFAULT)
        self.watched: dict[bytes, Tube] = {DEFAULT: self.used}
        self.names: list[bytes] = [DEFAULT]
        self.used.using += 1
        self.used.watching += 1
        # The reserved job whose lease ends first, and that end, not later than it is.
        self._soonest: TubeJob | None = None
        self._soonest_ms: i64 = 0

    # -- replies -----------------------------------------------------------------------------

    def refuse(self, line: bytes) -> None:
        """Answer a request that is refused."""
        self.stats.errors += 1
        self.write(line)

    # -- reserved jobs -----------------------------------------------------------------------

    def give(self, job: Job) -> None:
        """The client has a job from now on, and gets it."""
        entry = self.tubes.entry_of(job)
        entry.unbury()
        entry.until_ms = 0
        entry.reserves += 1
        if job.place == IN_FLIGHT:
            entry.holder = self
            self.reserved[entry.number] = entry
            if job.qtime_ms > 0 and (self._soonest_ms == 0 or job.qtime_ms < self._soonest_ms):
                self._soonest = entry
                self._soonest_ms = job.qtime_ms
        self.write_job(b"RESERVED", entry, job)

    def write_job(self, word: bytes, entry: TubeJob, job: JobRecord) -> None:
        """Reply with a job."""
        self.write(b"%s %d %d\r\n" % (word, entry.number, job.body_bytes))
        self.write(job.body)
        self.write(b"\r\n")

    def renewed(self, entry: TubeJob) -> None:
        """The lease of a reserved job ends later."""
        if entry is self._soonest:
            self._soonest = None

    def deadline_soon(self, now_ms: i64) -> bool:
        """Whether the lease of a reserved job is in its last second."""
        if self._soonest_ms == 0 or now_ms < self._soonest_ms - MARGIN_MS:
            return False
        soonest_ms = self.find_soonest()
        return soonest_ms > 0 and now_ms >= soonest_ms - MARGIN_MS

    def find_soonest(self) -> i64:
        """When the first lease of a reserved job ends, 0 for never."""
        soonest = self._soonest
        if soonest is not None and soonest.holder is self:
            return self._soonest_ms
        self._soonest = None
        self._soonest_ms = 0
        for entry in self.reserved.values():
            job = entry.job
            if job is None or job.qtime_ms == 0:
                continue
            if self._soonest_ms == 0 or job.qtime_ms < self._soonest_ms:
                self._soonest = entry
                self._soonest_ms = job.qtime_ms
        return self._soonest_ms

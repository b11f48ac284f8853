"""Tubes and numbered jobs of one node; a tube is a queue, seen by clients of this protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mypy_extensions import i64

from disque_tx.plugins.direct import DirectNode, Job, JobRecord, Note
from disque_tx.protocols.beanstalk import requests
from disque_tx.protocols.beanstalk.jobs import DEFAULT, OWNER, JobTable, Tube, TubeJob


class Tubes(JobTable):
    """All of a node. ``counts``: of requests, by their numbers. ``later``: calls a function after
    a number of seconds, within a turn, and returns something that can be cancelled. ``producers``,
    ``workers``, ``waiting``: connections that ever put, or reserved, and that wait.
    """

    def __init__(
        self,
        node: DirectNode,
        settings: Any,
        later: Callable[[float, Callable[[], object]], Any],
    ) -> None:
        super().__init__(node)
        self.settings: Any = settings
        self.counts: list[int] = [0] * (requests.MALFORMED + 1)
        self.connections: i64 = 0
        self.connected: i64 = 0
        self.producers: i64 = 0
        self.workers: i64 = 0
        self.waiting: i64 = 0
        self.started_ms: i64 = node.now_ms()
        self._later: Callable[[float, Callable[[], object]], Any] = later
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

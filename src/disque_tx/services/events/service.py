"""The event log: what happens to jobs, recorded in files.

1. The node's events become records in memory (:mod:`disque_tx.wire.events.records`), which a thread
   writes to a segment; no request waits for it.
2. Segments that are finished become compressed lines, by a process of its own.
3. Whatever goes wrong with the disk, the queue goes on: events are dropped and counted, which is
   logged once, until the disk takes them again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.python.failure import Failure

from disque_tx.config.settings import Settings
from disque_tx.core.node import Node
from disque_tx.services.events.conversion import Conversion
from disque_tx.services.events.lookups import Lookups
from disque_tx.services.events.segments import Plan, SegmentWriter
from disque_tx.services.events.sinks import EventSinks
from disque_tx.services.machine.platform import Platform
from disque_tx.text.globs import glob_match
from disque_tx.wire.events.records import BODY, BODY_HASH, NO_BODY, EventRecorder, QueueFilter

#: Records are handed to the thread when there are so many bytes, or after so long.
FLUSH_BYTES: Final = 1024 * 1024
_FLUSH_S: Final = 1.0
#: Bytes that may wait for a slow disk, and segments for the converter; beyond that, events are
#: dropped.
_WAITING_BYTES_MAX: Final = 64 * 1024 * 1024
_SEGMENTS_MAX: Final = 64
#: After a refusal the disk is tried again so much later.
_RETRY_MS: Final = 10_000
#: How long the end of the node waits for the last lines.
_STOP_TIMEOUT_S: Final = 5.0
_BODIES: Final = {"no": NO_BODY, "hash": BODY_HASH, "yes": BODY}

#: Something to be done in the thread: the work, its events and its bytes.
Task = tuple[Callable[[], list[str]], int, int]


class EventLog(Service):
    """Keeps the event log of one node. ``in_thread``: runs a function that blocks elsewhere.

    ``dropped``: events that were not written. ``sinks``: where the node's events go, this log among
    them. ``lookups``: of what it has written about single jobs.
    """

    def __init__(
        self,
        node: Node,
        settings: Settings,
        platform: Platform,
    ) -> None:
        self.recorder = EventRecorder()
        self.sinks = EventSinks(node)
        self.dropped = 0
        self.conversion = Conversion(platform.reactor, platform.log)
        self.lookups = Lookups(lambda: [settings.eventlog_dir], platform.reactor)
        self._node = node
        self._settings = settings
        self._clock = platform.clock
        self._reactor = platform.reactor
        self._in_thread = platform.in_thread
        self._log = platform.log
        self._writer = SegmentWriter(platform.files, node.id, platform.clock.wall_us() // 1000)
        self._flushed_events = 0
        self._tasks: deque[Task] = deque()
        self._busy = False
        self._recording = False
        self._waiting_bytes = 0
        self._failed_ms = -1
        self._healthy = True
        self._done: Deferred[None] | None = None
        self._loop = LoopingCall(self._tick)
        self._loop.clock = platform.reactor

    # -- start and stop -------------------------------------------------------------------

    def startService(self) -> None:
        """Begin to record, if the event log is on."""
        super().startService()
        self.settings_changed()

    def settings_changed(self) -> None:
        """``eventlog`` or one of its companions was set."""
        if not self.running:
            return
        settings = self._settings
        if self._recording:
            self._end()
        if settings.eventlog:
            self._begin(
                Plan(
                    settings.eventlog_dir,
                    _BODIES[settings.eventlog_body],
                    settings.eventlog_rotate_size,
                    settings.eventlog_rotate_time,
                ),
                settings.eventlog_queues.encode("utf-8", "surrogateescape"),
            )

    def _begin(self, plan: Plan, pattern: bytes) -> None:
        recorder = self.recorder
        self._plan = plan
        self._submit(lambda: self._writer.left_behind(plan.folder))
        recorder.bodies = plan.bodies != NO_BODY
        every = pattern == b"*"
        recorder.wanted = None if every else QueueFilter(lambda name: glob_match(pattern, name))
        self._recording = True
        self.sinks.add(recorder)
        self._loop.start(_FLUSH_S, now=False)

    def _end(self) -> None:
        self._loop.stop()
        self.flush()
        self._recording = False
        self.sinks.remove(self.recorder)
        self._submit(self._writer.rotate)

    def stopService(self) -> Deferred[None]:
        """Write what is left, and wait a moment until it is converted."""
        super().stopService()
        self.lookups.close_all()
        if self._recording:
            self._end()
        done: Deferred[None] = Deferred()
        self._done = done
        done.addTimeout(_STOP_TIMEOUT_S, self._reactor, lambda result, timeout: None)
        done.addCallback(self._stopped)
        self._check_idle()
        return done

    def _stopped(self, result: None) -> None:
        self.conversion.stop()

    def _check_idle(self) -> None:
        """At the end: when all is written, wait for the converter."""
        if self._done is not None and not self._busy and not self._tasks:
            done, self._done = self._done, None
            self.conversion.when_idle().addCallback(
                lambda _: None if done.called else done.callback(None)
            )

    # -- writing -----------------------------------------------------------------------------

    def _tick(self) -> None:
        self.flush()
        if not self._busy:
            now_s = self._now_s()
            self._submit(lambda: self._writer.rotate_old(now_s))

    def turn_ended(self) -> None:
        """Write the events collected so far, if there are many; watchers get theirs."""
        self.sinks.turn_ended()
        if self.recorder.size() >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand the new records to the thread."""
        recorder = self.recorder
        if not recorder.size():
            return
        data = recorder.take()
        first, self._flushed_events = self._flushed_events, recorder.events
        count = recorder.events - first
        if self._failed_ms >= 0 and self._clock.steady_ms() - self._failed_ms < _RETRY_MS:
            self.dropped += count
        elif self._waiting_bytes + len(data) > _WAITING_BYTES_MAX:
            self._drop(count, "the disk is too slow")
        elif len(self.conversion.waiting) > _SEGMENTS_MAX:
            self._drop(count, f"{_SEGMENTS_MAX} segments wait to be compressed")
        else:
            plan, now_s = self._plan, self._now_s()
            self._submit(
                lambda: self._writer.write(first, count, data, plan, now_s), count, len(data)
            )

    def _drop(self, count: int, reason: str) -> None:
        self.dropped += count
        if self._healthy:
            self._healthy = False
            self._log.warning(
                f"Event log: {reason}. Events are dropped and counted"
                " (eventlog_dropped in INFO eventlog) until that is over; jobs are not affected."
            )

    def _submit(self, work: Callable[[], list[str]], count: int = 0, size: int = 0) -> None:
        """Have something done in the thread, after what was asked for before."""
        self._tasks.append((work, count, size))
        self._waiting_bytes += size
        self._go_on()

    def _go_on(self) -> None:
        if self._busy or not self._tasks:
            return
        work, count, size = self._tasks.popleft()
        self._busy = True
        done = self._in_thread(work)
        done.addCallbacks(self._succeeded, self._failed, (count,), errbackArgs=(count,))
        done.addBoth(self._finished, size)

    def _succeeded(self, paths: list[str], count: int) -> None:
        if count and not self._healthy:
            self._healthy = True
            self._log.warning(f"Event log: writing again; events dropped: {self.dropped}")
        if count:
            self._failed_ms = -1
        self.conversion.add(paths)

    def _failed(self, failure: Failure, count: int) -> None:
        self._failed_ms = self._clock.steady_ms()
        reason = failure.getErrorMessage()
        self._drop(count, f"{self._settings.eventlog_dir} can't be written: {reason}")

    def _finished(self, result: object, size: int) -> None:
        self._busy = False
        self._waiting_bytes -= size
        self._go_on()
        self._check_idle()

    def _now_s(self) -> int:
        return self._clock.wall_us() // 1_000_000

    # -- figures -----------------------------------------------------------------------------

    def info(self) -> list[tuple[str, str]]:
        """The Eventlog section of INFO."""
        return [
            ("eventlog_enabled", "1" if self._recording else "0"),
            ("eventlog_events", str(self.recorder.events)),
            ("eventlog_dropped", str(self.dropped)),
            ("eventlog_segments_waiting", str(self.conversion.pending)),
            ("eventlog_segments_converted", str(self.conversion.converted)),
            ("eventlog_status", "ok" if self._healthy else "err"),
        ]

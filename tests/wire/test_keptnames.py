"""The caches of queue names: clients may use any number of names, and memory must not grow."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.messages.events import QUEUED
from disque_tx.wire.events.lines import Segment
from disque_tx.wire.events.records import EventRecorder, QueueFilter
from disque_tx.wire.resp.replies import RespWriter
from tests.wire.test_events import header, job

_NAMES = 30_000


def names() -> list[bytes]:
    """Distinct queue names, of the longest size that replies cache."""
    return [b"%0256d" % number for number in range(_NAMES)]


class KeptNamesTests(SynchronousTestCase):
    """The memory that is left in use after very many names."""

    def assert_little_left(self, work: Callable[[], object]) -> None:
        """``work`` leaves much less memory in use than all names take."""
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        work()
        left = tracemalloc.get_traced_memory()[0]
        self.assertLess(left, _NAMES * 240)

    def test_lines_of_events(self) -> None:
        """The process that converts a segment to lines."""
        made = EventRecorder()
        for name in names():
            made.job(QUEUED, job(name), 0, 0, -1)
        segment = Segment(header() + made.take())

        def read() -> None:
            while segment.lines(1 << 16):
                pass

        self.assert_little_left(read)
        self.assertEqual(_NAMES, segment.count)

    def test_replies(self) -> None:
        """A connection that fetches from many queues."""
        writer = RespWriter()

        def write() -> None:
            for name in names():
                writer.jobs([job(name)], False)
                writer.take()

        self.assert_little_left(write)

    def test_filter(self) -> None:
        """The selection of queues whose events are logged."""
        wanted = QueueFilter(lambda name: True)

        def ask() -> None:
            for name in names():
                wanted.wants(name)

        self.assert_little_left(ask)

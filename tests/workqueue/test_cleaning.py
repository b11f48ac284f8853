"""The cleaning service, with a clock that the test advances."""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.workqueue import CleaningService, RedisLost
from tests.forwardclock import ForwardClock


class Queue:
    """Records cleans; a clean ends when the test fires its Deferred."""

    def __init__(self) -> None:
        self.cleaned: list[str] = []
        self.answer: Deferred[int] | None = None

    def light_clean(self) -> Deferred[int]:
        """Record a light clean."""
        return self._clean("light")

    def deep_clean(self) -> Deferred[int]:
        """Record a deep clean."""
        return self._clean("deep")

    def _clean(self, kind: str) -> Deferred[int]:
        self.cleaned.append(kind)
        return self.answer or succeed(1)


class CleaningServiceTests(SynchronousTestCase):
    """The times at which queues are cleaned."""

    def setUp(self) -> None:
        self.clock = ForwardClock()
        self.queue = Queue()
        self.other = Queue()
        self.service = CleaningService([self.queue, self.other], 10, 35, clock=self.clock)
        self.service.startService()

    def tearDown(self) -> None:
        """Check that no delayed call is left."""
        if self.service.running:
            self.service.stopService()
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_times(self) -> None:
        """Each queue is cleaned at once and every 10 s, with a deep clean when it is due."""
        self.clock.pump([10] * 8)
        light, deep = ["light"], ["deep"]
        self.assertEqual(light * 4 + deep + light * 3 + deep, self.queue.cleaned)
        self.assertEqual(self.queue.cleaned, self.other.cleaned)

    def test_no_overlap(self) -> None:
        """A slow clean does not overlap with the next one."""
        self.queue.answer = Deferred()
        self.clock.pump([10] * 3)
        self.assertEqual(2, len(self.queue.cleaned))
        answer, self.queue.answer = self.queue.answer, None
        answer.callback(0)
        self.clock.advance(10)
        self.assertEqual(3, len(self.queue.cleaned))

    def test_stop(self) -> None:
        """Stopping waits for the running clean, and starts no other."""
        self.queue.answer = Deferred()
        self.clock.advance(10)
        ended = self.service.stopService()
        assert ended is not None
        self.assertNoResult(ended)
        self.queue.answer.callback(0)
        self.successResultOf(ended)
        self.assertEqual((2, 1), (len(self.queue.cleaned), len(self.other.cleaned)))

    def test_failure(self) -> None:
        """A queue whose server is down does not delay other queues, or its own next clean."""
        self.queue.answer = Deferred()
        self.clock.advance(10)
        self.queue.answer.errback(RedisLost("h:1", "the server is down", False))
        self.queue.answer = None
        self.clock.advance(10)
        self.assertEqual((3, 3), (len(self.queue.cleaned), len(self.other.cleaned)))

    def test_bad_times(self) -> None:
        """Intervals must be positive numbers."""
        for every_s, deep_every_s in ((0, 1), (-1, None), (float("nan"), None), (1, 0)):
            self.assertRaises(
                ValueError, CleaningService, [], every_s, deep_every_s, clock=self.clock
            )

"""Dead letters, backoff, and threads."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from random import Random
from typing import Any, Final

import attrs
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import Job
from disque_tx.client.options import AddOptions
from disque_tx.worker import Backoff, Context, Letter, batch, current_job
from disque_tx.worker.base.context import HeldJob
from disque_tx.worker.running.runs import Run, Slot
from disque_tx.worker.running.threads import Done, Threads
from disque_tx.worker.settling.deadletters import NotADeadLetter
from disque_tx.worker.tasks.handlers import HandlerCall, handler_of
from tests.worker.memory import MemoryClient, MemoryTaken

_TEXT = st.text(max_size=20)
_LETTERS = st.builds(
    Letter,
    queue=_TEXT,
    id=_TEXT,
    body=st.binary(),
    reason=_TEXT,
    traceback=_TEXT,
    worker=_TEXT,
    nacks=st.integers(0, 65535),
    additional_deliveries=st.integers(0, 65535),
    failed_at_s=st.floats(0, 2e11),
    history=st.lists(st.tuples(st.floats(0, 2e11), _TEXT), max_size=3).map(tuple),
    retry_s=st.none() | st.integers(0, 2**32 - 1),
    ttl_s=st.none() | st.integers(1, 2**32 - 1),
    replicate=st.none() | st.integers(1, 65535),
)


_LETTER: Final = Letter("q", "D-a", b"body", "reason", "", "w", 1, 2, 3.0, (), 60, 600, 2)


class LetterTests(SynchronousTestCase):
    """Dead letters can be written and read."""

    @given(_LETTERS)
    def test_round_trip(self, letter: Letter) -> None:
        """Every letter can be read back, and printed as JSON."""
        self.assertEqual(letter, Letter.decoded(letter.encoded()))
        self.assertIn("reason", json.loads(json.dumps(letter.table())))

    @given(_LETTERS, st.data())
    def test_any_json(self, letter: Letter, data: st.DataObject) -> None:
        """Any JSON body is either a dead letter, or reported as none."""
        values = json.loads(letter.encoded())
        name = data.draw(st.sampled_from(sorted(values)))
        values[name] = data.draw(st.none() | st.integers() | _TEXT | st.lists(st.integers()))
        try:
            found = Letter.decoded(json.dumps(values).encode())
        except NotADeadLetter:
            return
        self.assertIsInstance(found.queue, str)
        self.assertIsInstance(found.body, bytes)

    def test_hostile(self) -> None:
        """What cannot be put back, shown or printed is no letter: names that are no text, and
        numbers that are not finite."""
        values = json.loads(_LETTER.encoded())
        for change in (
            {"queue": "\ud800"}, {"id": "a\udd00"}, {"failed_at_s": float("nan")},
            {"failed_at_s": float("inf")}, {"failed_at_s": 1e300}, {"failed_at_s": -1},
            {"failed_at_s": True}, {"nacks": float("nan")}, {"nacks": 1e300}, {"nacks": -1},
            {"additional_deliveries": True}, {"retry_s": float("inf")}, {"ttl_s": 2**32},
            {"history": [{"at_s": float("nan"), "reason": ""}]}, {"history": [{"at_s": 1e400}]},
            {"history": [{"at_s": 1, "reason": ["x"]}]},
        ):  # fmt: skip
            with self.assertRaises(NotADeadLetter):
                Letter.decoded(json.dumps({**values, **change}).encode())

    def test_unreadable_texts(self) -> None:
        """A reason with half a character, as an exception may have, does not keep its job from
        being put back; bytes that are not UTF-8 stay as they are."""
        letter = attrs.evolve(_LETTER, reason="a\ud800b\udcff", queue="q\udcff")
        found = Letter.decoded(letter.encoded())
        self.assertEqual(("a\ufffdb\udcff", "q\udcff"), (found.reason, found.queue))

    def test_older_version(self) -> None:
        """A letter of version 1 can be read; missing options are taken from the ID, and a job that
        was to be delivered at most once stays so. Fields of later versions are ignored."""
        for end, add_options in (
            ("000a", AddOptions(retry_s=0, ttl_s=600, replicate=1)),
            ("05a1", AddOptions(ttl_s=86400)),
            ("x", AddOptions()),
        ):
            job_id = f"D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-{end}"
            letter = Letter("q", job_id, b"b", "r", "t", "w", 0, 0, 1.0)
            values = json.loads(letter.encoded())
            for name in ("retry_s", "ttl_s", "replicate"):
                del values[name]
            old = json.dumps(values | {"version": 1}).encode()
            self.assertEqual(
                (letter, add_options), (Letter.decoded(old), Letter.decoded(old).add_options)
            )
            newer = json.dumps(values | {"colour": "red"}).encode()
            self.assertEqual(letter, Letter.decoded(newer))

    def test_other_bytes(self) -> None:
        """Other bytes and other versions are not dead letters."""
        for body in (b"", b"\xff", b"[]", b"{}", b'{"version":3}', b"[" * 100_000, b"null"):
            self.assertRaises(NotADeadLetter, Letter.decoded, body)


class BackoffTests(SynchronousTestCase):
    """The time between attempts."""

    @given(st.integers(0, 10**6), st.integers())
    def test_bounds(self, failures: int, seed: int) -> None:
        """The backoff is never longer than its maximum, or shorter than its fixed part."""
        backoff = Backoff(1, 3, 100, 0.25)
        wait_s = backoff.wait_s(failures, Random(seed))
        self.assertTrue(0.75 <= wait_s <= 100)

    def test_growth(self) -> None:
        """Without jitter, the backoff grows exactly by its factor."""
        backoff = Backoff(1, 3, 100, 0)
        waits = [backoff.wait_s(failures, Random(1)) for failures in range(1, 7)]
        self.assertEqual([1, 3, 9, 27, 81, 100], waits)
        self.assertRaises(ValueError, Backoff, first_s=-1)
        self.assertRaises(ValueError, Backoff, factor=0.5)


class ThreadTests(SynchronousTestCase):
    """Functions in threads; a queue of calls takes the place of the reactor."""

    def setUp(self) -> None:
        """Start threads that report to the test."""
        self.calls: SimpleQueue[Any] = SimpleQueue()
        self.done: list[Done] = []
        self.threads = self.made(2, time.perf_counter)

    def made(self, size: int, seconds: Callable[[], float]) -> Threads:
        """Threads that have ended when the test has."""
        threads = Threads(size, self.calls.put, seconds, self.done.extend)
        self.addCleanup(self.end)
        self.addCleanup(threads.stop)
        return threads

    def end(self) -> None:
        """Wait for the threads of workers that were stopped."""
        for one in self.running():
            one.join(10)

    def run_of(self, function: Any) -> Run:
        """A run of a function without arguments."""
        delivered = MemoryTaken(MemoryClient(Clock()), Job("q", "D-1", b""))
        held = HeldJob(delivered, Context(delivered.job, "w"), 0)
        return Run(HandlerCall(handler_of(function), ()), [held])

    def finish(self, slots: int) -> None:
        """Wait until ``slots`` slots are done, by running the reactor's calls."""
        while sum(outcome is None for _, outcome in self.done) < slots:
            self.calls.get(timeout=10)()

    def test_many(self) -> None:
        """Every run is reported once, with far fewer calls than runs."""
        ran: list[int] = []
        slot = Slot(self.run_of(lambda: ran.append(0)))
        slot.runs.extend(self.run_of(lambda n=n: ran.append(n)) for n in range(1, 1000))
        self.threads.put(slot)
        self.finish(1)
        self.assertEqual(list(range(1000)), ran)
        outcomes = [outcome for _, outcome in self.done if outcome is not None]
        self.assertEqual(1000, len(outcomes))
        self.assertTrue(all(outcome.failed is None for outcome in outcomes))

    def test_took(self) -> None:
        """How long each run took is measured by itself, for that decides how many jobs are fetched
        ahead; while it runs, its begin is seen."""
        times = iter([5.0, 7.5, 20.0, 20.25])
        threads = self.made(1, lambda: next(times))
        begun: list[float] = []

        def note() -> None:
            assert slot.current is not None
            begun.append(slot.current[1])

        slot = Slot(self.run_of(note))
        slot.runs.append(self.run_of(note))
        threads.put(slot)
        self.finish(1)
        self.assertEqual([5.0, 20.0], begun)
        self.assertEqual([2.5, 0.25, None], [one and one.took_s for _, one in self.done])
        self.assertIsNone(slot.current)

    def test_base_exceptions(self) -> None:
        """A thread survives exceptions that would end it."""

        def leave() -> None:
            raise SystemExit(1)

        slot = Slot(self.run_of(leave))
        slot.runs.append(self.run_of(lambda: None))
        self.threads.put(slot)
        self.finish(1)
        reasons = [one and one.failed and one.failed.reason for _, one in self.done]
        self.assertEqual(["SystemExit: 1", None, None], reasons)

    def test_current(self) -> None:
        """A function finds its job from anywhere in its thread; one that takes a batch has no
        current one, even with one job in it, nor that of the function that used the thread
        before."""
        seen: list[object] = []

        def note() -> None:
            try:
                seen.append(current_job())
            except LookupError:
                seen.append(None)

        def fail() -> None:
            note()
            raise ValueError

        @batch(2)
        def note_together() -> None:
            note()

        threads = self.made(1, time.perf_counter)
        functions = (note, fail, note_together, note_together)
        runs = [self.run_of(function) for function in functions]
        runs[2].held += self.run_of(note).held
        slot = Slot(runs[0])
        slot.runs.extend([runs[2], runs[1], runs[3]])
        threads.put(slot)
        self.finish(1)
        first, second = (run.held[0].context for run in runs[:2])
        self.assertEqual([first, None, second, None], seen)

    def test_taken_back(self) -> None:
        """Runs that a thread has not started can be removed while it hangs."""
        begun, released = threading.Event(), threading.Event()

        def hang() -> None:
            begun.set()
            released.wait(10)

        slot = Slot(self.run_of(hang))
        slot.runs.append(self.run_of(lambda: self.fail("The run was removed.")))
        self.threads.put(slot)
        begun.wait(10)
        slot.runs.pop()
        assert slot.current is not None
        released.set()
        self.finish(1)
        self.assertEqual([True, False], [one is not None for _, one in self.done])

    def running(self) -> list[threading.Thread]:
        """The threads of workers."""
        return [one for one in threading.enumerate() if "disque-worker" in one.name]

    def names(self) -> list[str]:
        """Their names."""
        return sorted(one.name for one in self.running())

    def test_started(self) -> None:
        """There are as many threads as there are slots at a time, up to the limit; they end when
        the worker does, and new ones are started after that."""
        for number in range(3):
            self.threads.put(Slot(self.run_of(lambda: None)))
            self.finish(number + 1)
            self.assertEqual(["disque-worker-1"], self.names())
        released = threading.Event()
        for _ in range(3):
            self.threads.put(Slot(self.run_of(lambda: released.wait(10))))
        self.assertEqual(["disque-worker-1", "disque-worker-2"], self.names())
        released.set()
        self.finish(6)
        self.threads.stop()
        self.end()
        self.assertEqual([], self.names())
        self.threads.put(Slot(self.run_of(lambda: None)))
        self.finish(7)
        self.assertEqual(["disque-worker-1"], self.names())

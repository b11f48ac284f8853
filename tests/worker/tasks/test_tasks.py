"""Functions as tasks, and other bodies that their queues may contain."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import AddOptions, Job
from disque_tx.worker import (
    JSON,
    BadHandlers,
    Context,
    Hopeless,
    JobFailed,
    NoResult,
    NotSerializable,
    Queue,
    Raw,
    ResultTimeout,
    Undecodable,
    UnknownTask,
    batch,
)
from disque_tx.worker.tasks.handlers import HandlerKind
from disque_tx.worker.tasks.results import BrokenResult, decoded, encoded_failure, encoded_result
from tests.worker.handlers import crash
from tests.worker.memory import WorkerTestCase

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def context(body: bytes) -> Context:
    """The context of a job with this body."""
    return Context(Job("q", "D-1", body), "w")


class RecordingClient:
    """Records the jobs that are added."""

    def __init__(self) -> None:
        self.added: list[tuple[str, bytes, AddOptions]] = []

    def add_job_with(self, queue: str, body: bytes, options: AddOptions) -> Deferred[str]:
        """ADDJOB."""
        self.added.append((queue, body, options))
        return succeed("D-1")


class UniqueTests(SynchronousTestCase):
    """Tasks whose calls are jobs once."""

    def setUp(self) -> None:
        """A queue with a client that only records."""
        self.queue = Queue("mail")
        self.client = RecordingClient()
        self.queue.connect(self.client)

    def keys(self) -> list[str | bytes | None]:
        """The keys of the jobs that were added."""
        return [options.unique for _, _, options in self.client.added]

    def test_same_arguments(self) -> None:
        """Calls with the same arguments have one key, however these are written; others do not."""

        @self.queue.job(unique=True, unique_for_s=60)
        def send(to: str, subject: str = "") -> None: ...

        send.delay("a", subject="b")
        send.delay(to="a", subject="b")
        send.delay(subject="b", to="a")
        send.delay("a", subject="c")
        keys = self.keys()
        self.assertEqual((3, keys[1]), (len(set(keys)), keys[2]))
        self.assertEqual({60}, {options.unique_for_s for _, _, options in self.client.added})

    def test_own_key(self) -> None:
        """A function of the arguments says which calls are the same; tasks never share keys."""

        @self.queue.job(unique=lambda to, **_: to)
        def send(to: str, subject: str = "") -> None: ...

        @self.queue.job(unique=lambda to: to.encode())
        def call(to: str) -> None: ...

        send.delay("a", subject="b")
        send.delay("a", subject="c")
        send.options(delay_s=5).delay("a")
        call.delay("a")
        keys = self.keys()
        self.assertEqual(2, len(set(keys)))
        self.assertEqual(1, len(set(keys[:3])))

    def test_refused(self) -> None:
        """What cannot work is refused when the task is defined, or its key is empty."""
        for words in ({"unique": True, "result": True}, {"unique_for_s": 60}):
            with self.assertRaises(BadHandlers):
                self.queue.job(**words)(lambda: None)

        @self.queue.job(unique=lambda: "")
        def send() -> None: ...

        self.assertRaises(ValueError, send.delay)

    def test_without(self) -> None:
        """Other tasks have no keys, so they work with originals."""

        @self.queue.job
        def send() -> None: ...

        send.delay()
        self.assertEqual([None], self.keys())


class TaskTests(SynchronousTestCase):
    """Calls that become jobs."""

    def setUp(self) -> None:
        """A queue with a client that only records."""
        self.client = RecordingClient()
        self.queue = Queue("q", retry_s=9)
        self.queue.connect(self.client)

    @given(st.lists(_VALUES, max_size=4), st.dictionaries(st.text(), _VALUES, max_size=4))
    def test_arguments(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Arguments that JSON can represent are received unchanged."""
        queue = Queue("q")
        queue.connect(self.client)

        @queue.job
        def task(*args: Any, **kwargs: Any) -> Any:
            return args, kwargs

        task.delay(*args, **kwargs)
        call = queue.call(context(self.client.added[-1][1]))
        self.assertEqual((tuple(args), kwargs), call.handler.function(*call.args, **call.kwargs))

    def test_text(self) -> None:
        """Text is UTF-8, as every other program writes and shows it."""
        self.assertEqual('{"to":"Zoë"}'.encode(), JSON().dumps({"to": "Zoë"}))

    @given(st.binary() | _VALUES.map(lambda value: json.dumps(value).encode()))
    def test_any_body(self, body: bytes) -> None:
        """A body is either a call or refused with a documented error."""
        queue = Queue("q")
        queue.job(name="")(repr)
        try:
            queue.call(context(body))
        except (Undecodable, UnknownTask):
            pass

    def test_hostile_bodies(self) -> None:
        """Each part of a call is checked."""
        self.queue.job(name="t")(repr)
        hostile: list[Any] = [
            {"task": 1},
            {"task": "t", "args": {}},
            {"task": "t", "kwargs": []},
            {"task": "t", "reply": "mail"},
            {"task": "t", "reply": "result:" + "x" * 1000},
            {"task": "t", "reply": 1},
            [],
        ]
        for body in hostile:
            self.assertRaises(Undecodable, self.queue.call, context(json.dumps(body).encode()))
        self.assertRaises(Undecodable, self.queue.call, context(b"[" * 1_000_000))
        self.assertRaises(UnknownTask, self.queue.call, context(b'{"task":"other"}'))

    def test_unknown(self) -> None:
        """Who reads why a task was not done sees which one is missing in which queue, and who waits
        for its result hears of it."""
        body = json.dumps({"task": "x" * 1_000, "reply": "result:1"}).encode()
        error = self.assertRaises(UnknownTask, self.queue.call, context(body))
        before, _, after = str(error).partition("x" * 50)
        self.assertEqual("result:1", error.reply)
        self.assertEqual(f"Queue {self.queue.name!r} has no task '", before)
        self.assertLess(len(after), 500)

    def test_options(self) -> None:
        """Options of a call override those of the task, which override those of the queue."""

        @self.queue.job(ttl_s=100)
        def task() -> None:
            """Does nothing."""

        task.delay()
        task.options(delay_s=5, retry_s=1).delay()
        self.assertEqual(AddOptions(retry_s=9, ttl_s=100), self.client.added[0][2])
        self.assertEqual(AddOptions(delay_s=5, retry_s=1, ttl_s=100), self.client.added[1][2])
        self.assertEqual("Does nothing.", task.__doc__)
        self.assertRaises(TypeError, task.options, color=1)

    def test_results_on_request(self) -> None:
        """Only tasks with results have result queues, one for each job."""

        @self.queue.job(result=True)
        def wanted() -> None: ...

        @self.queue.job
        def unwanted() -> None: ...

        wanted.delay(), wanted.delay()
        first, second = (json.loads(body)["reply"] for _, body, _ in self.client.added)
        self.assertNotEqual(first, second)
        pending = self.successResultOf(unwanted.delay())
        self.assertEqual("D-1", pending.id)
        self.failureResultOf(pending.result(), NoResult)

    def test_raw(self) -> None:
        """With the raw serializer, bytes are passed unchanged, and a queue has one task."""
        queue = Queue("q", serializer=Raw())
        queue.connect(self.client)
        self.assertRaises(UnknownTask, queue.call, context(b""))
        task = queue.job(len)
        task.delay(b"\0\xff")
        self.assertEqual(b"\0\xff", self.client.added[-1][1])
        call = queue.call(context(b"\0\xff"))
        self.assertEqual(2, call.handler.function(*call.args))
        self.assertRaises(NotSerializable, task.delay, "text")
        self.assertRaises(BadHandlers, queue.job(name="other"), repr)

    def test_refused_tasks(self) -> None:
        """An impossible task is refused when it is defined."""
        self.queue.job(name="t")(repr)
        self.assertRaises(BadHandlers, self.queue.job(name="t"), repr)
        self.assertRaises(BadHandlers, self.queue.job(process=True), lambda: None)
        self.assertRaises(BadHandlers, self.queue.job, batch(2)(lambda jobs: None))
        self.assertRaises(BadHandlers, batch, 0)

    def test_where_it_runs(self) -> None:
        """A task runs in a thread, and in a process that imports it by its name where that is
        wanted, with its own time limit."""
        plain = self.queue.job(crash).handler
        apart = self.queue.job(name="apart", process=True, time_limit_s=7)(crash).handler
        self.assertEqual((HandlerKind.THREAD, None), (plain.kind, plain.time_limit_s))
        self.assertEqual((HandlerKind.PROCESS, 7), (apart.kind, apart.time_limit_s))
        self.assertIs(crash, apart.function)
        self.assertEqual("tests.worker.handlers:crash", apart.target)

    def test_other_serializers(self) -> None:
        """Any exception of a custom serializer makes the body undecodable."""

        class Odd(JSON):
            def loads(self, body: bytes) -> object:
                raise {b"0": ZeroDivisionError, b"1": SystemExit}[body]

        queue = Queue("q", serializer=Odd())
        for body in (b"0", b"1"):
            self.assertRaises(Undecodable, queue.call, context(body))


class ResultTests(WorkerTestCase):
    """Results, with a worker and a node in memory."""

    def setUp(self) -> None:
        """Create a queue with a task."""
        super().setUp()
        self.queue = Queue("q")
        self.queue.connect(self.client)

        @self.queue.job(result=True)
        def half(number: int) -> int:
            if number % 2:
                raise Hopeless("odd")
            return number // 2

        self.half = half

    def test_results(self) -> None:
        """The result is added before the job is acknowledged, so it exists when the job is gone."""
        pending = self.successResultOf(self.half.delay(4))
        result = pending.result()
        self.assertNoResult(result)
        worker = self.worker(self.queue)
        self.pass_s(0.1)
        self.assertEqual(2, self.successResultOf(result))
        self.assertEqual(2, self.successResultOf(pending.result()))
        names = [name for name, _, _ in self.client.calls if name in ("ADDJOB", "ACKJOB")]
        self.assertEqual(["ADDJOB", "ADDJOB", "ACKJOB"], names[:3])
        states = {stored.state for stored in self.client.jobs.values()}
        self.assertEqual({"acked"}, states)  # the job of the result is done as well
        self.stop(worker)

    def test_failure(self) -> None:
        """Waiting for the result of a failed job raises the reason."""
        pending = self.successResultOf(self.half.delay(3))
        worker = self.worker(self.queue)
        self.pass_s(0.1)
        error = self.failureResultOf(pending.result(), JobFailed).value
        self.assertEqual("Hopeless: odd", str(error))
        self.stop(worker)

    def test_none_yet(self) -> None:
        """A timeout is reported as such, and the result can be requested again."""
        pending = self.successResultOf(self.half.delay(4))
        self.failureResultOf(pending.result(0), ResultTimeout)

    @given(st.binary() | _VALUES.map(lambda value: json.dumps(value).encode()))
    def test_any_result(self, body: bytes) -> None:
        """A body that is not a result is refused with a documented error."""
        try:
            decoded(body, JSON())
        except (BrokenResult, JobFailed, Undecodable):
            pass

    @given(_VALUES)
    def test_round_trip(self, value: object) -> None:
        """A result is the value that the task returned."""
        self.assertEqual(value, decoded(encoded_result(JSON().dumps(value)), JSON()))
        self.assertRaises(JobFailed, decoded, encoded_failure("why"), JSON())

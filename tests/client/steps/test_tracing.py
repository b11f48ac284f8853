"""Spans of requests."""

from __future__ import annotations

import subprocess
import sys

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import AddedOnce, Job, PublicationIncomplete, Refused
from disque_tx.client.addresses import Address
from disque_tx.client.blocking import Disque
from disque_tx.client.options import AddOptions
from disque_tx.client.requests.adding import add_words
from disque_tx.client.requests.selection import Selection
from disque_tx.client.steps import tracing
from tests.acceptance.daemon import environment
from tests.client.scripted import JOB_ID, ScriptedNode, array, bulk
from tests.recordedspans import recording

_NODE = Address("disque-1", 7711)
_ADD = add_words("mail", "x", AddOptions())
_TAKE = Selection.of(["mail", "sms"]).request(10).words
_PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#: Imports as on a host without OpenTelemetry.
_WITHOUT = """\
import sys
sys.modules["opentelemetry"] = None
from disque_tx import Disque
from disque_tx.client.steps import tracing
Disque()
print(tracing.ACTIVE, [name for name in sys.modules if name.startswith("opentelemetry.")])
"""


class RequestTests(SynchronousTestCase):
    """Clients that add and fetch jobs."""

    def setUp(self) -> None:
        self.spans = recording(self)
        self.tracing = self.spans.tracing

    def test_add(self) -> None:
        """A job that is added is a span with the attributes by which tools find messages."""
        for value in ("D-1", AddedOnce("D-1", True)):
            span = self.tracing.begin(_ADD)
            assert span is not None
            span.answered(_NODE, value)
        for ended in self.spans.finished():
            self.assertEqual(("send mail", "PRODUCER"), (ended.name, ended.kind.name))
            expected = {
                "messaging.system": "disque",
                "messaging.operation.type": "send",
                "messaging.operation.name": "send",
                "messaging.destination.name": "mail",
                "messaging.message.id": "D-1",
                "server.address": "disque-1",
                "server.port": 7711,
            }
            self.assertEqual(expected, dict(ended.attributes))
        self.assertEqual(2, len(self.spans.finished()))

    def test_take(self) -> None:
        """So is a request that fetched jobs, with their number; the queue is named if they are all
        of one."""
        for queues in (["mail"], ["mail", "mail"], ["mail", "sms"]):
            span = self.tracing.begin(_TAKE)
            assert span is not None
            jobs = [Job(queue, f"D-{n}", b"") for n, queue in enumerate(queues)]
            span.answered(Address("/tmp/d.sock", 0), jobs)
        one, two, mixed = self.spans.finished()
        self.assertEqual(["receive mail", "receive mail", "receive"], self.spans.names())
        self.assertEqual("CLIENT", one.kind.name)
        self.assertEqual("D-0", one.attributes["messaging.message.id"])
        self.assertEqual(2, two.attributes["messaging.batch.message_count"])
        self.assertNotIn("messaging.destination.name", mixed.attributes)
        self.assertEqual("/tmp/d.sock", mixed.attributes["server.address"])
        self.assertLess(one.start_time, one.end_time)

    def test_words(self) -> None:
        """Requests in words of one's own are traced like those of methods, and their replies reach
        the program as they are."""
        node = ScriptedNode()
        self.addCleanup(node.close)
        node.answer("ADDJOB", bulk(JOB_ID), array(bulk(JOB_ID), b":1\r\n"), b"-ERR few\r\n")
        node.answer("GETJOB", array(array(bulk("mail"), bulk(JOB_ID), bulk("x"))))
        with Disque(node.address) as client:
            client.execute("ADDJOB", "mail", "x", 0)
            client.execute("ADDJOB", "mail", "x", 0, "UNIQUE", "k", "WITHNEW")
            taken = client.execute("GETJOB", "FROM", "mail")
            self.assertEqual([[b"mail", JOB_ID.encode(), b"x"]], taken)
            self.assertRaises(Refused, client.execute, "ADDJOB")
        ended = self.spans.finished()[:3]
        self.assertEqual(["send mail", "send mail", "receive mail"], [one.name for one in ended])
        self.assertEqual([JOB_ID] * 3, [one.attributes["messaging.message.id"] for one in ended])

    def test_nothing(self) -> None:
        """Waiting for jobs, and requests that move none, leave no spans."""
        span = self.tracing.begin(_TAKE)
        assert span is not None
        span.answered(_NODE, [])
        span = self.tracing.begin(_TAKE)
        assert span is not None
        span.failed(CancelledError())
        self.assertIsNone(self.tracing.begin(("QLEN", b"mail")))
        self.assertEqual([], self.spans.finished())

    def test_failed(self) -> None:
        """A request that failed says why."""
        error = PublicationIncomplete.__new__(PublicationIncomplete)
        for words in (_ADD, _TAKE):
            span = self.tracing.begin(words)
            assert span is not None
            span.failed(error)
        for ended in self.spans.finished():
            self.assertEqual("ERROR", ended.status.status_code.name)
            self.assertEqual("PublicationIncomplete", ended.attributes["error.type"])
        self.assertEqual(["send mail", "receive"], self.spans.names())

    def test_strange_names(self) -> None:
        """The name of a queue may be any bytes."""
        span = self.tracing.begin(add_words(b"\xff\0", "x", AddOptions()))
        assert span is not None
        span.answered(_NODE, "D-1")
        self.assertEqual(["send \ufffd\0"], self.spans.names())


class SendTests(SynchronousTestCase):
    """A job whose body carries the context."""

    def setUp(self) -> None:
        self.spans = recording(self)

    def test_one_span(self) -> None:
        """The client's own request belongs to the span that the body names."""
        carriers = []

        def add(carrier: dict[str, str]) -> str:
            carriers.append(carrier)
            span = self.spans.tracing.begin(_ADD)
            assert span is not None
            span.answered(_NODE, "D-1")
            return "D-1"

        self.assertEqual("D-1", self.spans.tracing.send("mail", add))
        sent = self.spans.only("send mail")
        self.assertEqual("D-1", sent.attributes["messaging.message.id"])
        self.assertEqual(["traceparent"], list(carriers[0]))
        self.assertIn(f"{sent.context.span_id:016x}", carriers[0]["traceparent"])

    def test_attempts(self) -> None:
        """It lasts until the job is added: an attempt that failed before does not make a failure of
        it."""

        def add(_: object) -> str:
            for answered in (False, True):
                span = self.spans.tracing.begin(_ADD)
                assert span is not None
                if answered:
                    span.answered(_NODE, "D-1")
                else:
                    span.failed(ValueError("no"))
                self.assertEqual([], self.spans.names())
            return "D-1"

        self.spans.tracing.send("mail", add)
        sent = self.spans.only("send mail")
        self.assertEqual("UNSET", sent.status.status_code.name)
        self.assertEqual("D-1", sent.attributes["messaging.message.id"])

    def test_deferred(self) -> None:
        """With a Twisted client it ends when the answer arrives, and the result stays."""
        waiting: Deferred[str] = Deferred()
        returned = self.spans.tracing.send("mail", lambda _: waiting)
        self.assertEqual([], self.spans.finished())
        waiting.callback("D-1")
        self.assertEqual("D-1", self.successResultOf(returned))
        failing: Deferred[str] = Deferred()
        returned = self.spans.tracing.send("mail", lambda _: failing)
        failing.errback(ValueError("no"))
        self.failureResultOf(returned, ValueError)
        codes = [span.status.status_code.name for span in self.spans.finished()]
        self.assertEqual(["UNSET", "ERROR"], codes)

    def test_raised(self) -> None:
        """An error that is raised is in the span, and raised."""

        def add(_: object) -> str:
            raise ValueError("no")

        self.assertRaises(ValueError, self.spans.tracing.send, "mail", add)
        self.assertEqual("ValueError", self.spans.only("send").attributes["error.type"])

    def test_carried(self) -> None:
        """What others wrote into a body is taken only if it can be a context."""
        call = {"traceparent": _PARENT, "tracestate": "x" * 2_000, "task": "t"}
        self.assertEqual({"traceparent": _PARENT}, tracing.carried(call))
        self.assertEqual({}, tracing.carried({"traceparent": 7}))
        for strange in ({"traceparent": "nonsense"}, {"traceparent": ""}, {}):
            self.spans.tracing.process("mail", ["D-1"], strange, None).end()
        for span in self.spans.finished():
            self.assertEqual((), tuple(span.links))


class ActivationTests(SynchronousTestCase):
    """Programs say nowhere that they trace: it is enough that OpenTelemetry is installed."""

    def setUp(self) -> None:
        recording(self)  # skips the test where OpenTelemetry is missing
        self.patch(tracing, "ACTIVE", None)
        self.patch(tracing, "_looked", False)

    def test_by_client(self) -> None:
        """The first client makes spans possible, and later ones make the same."""
        client = Disque("127.0.0.1:1")
        self.addCleanup(client.close)
        first = tracing.ACTIVE
        self.assertIsNotNone(first)
        other = Disque("127.0.0.1:1")
        self.addCleanup(other.close)
        self.assertIs(first, tracing.ACTIVE)


class OffTests(SynchronousTestCase):
    """Programs that do not trace."""

    def test_not_installed(self) -> None:
        """Without OpenTelemetry nothing of it is imported, and clients work."""
        done = subprocess.run(
            [sys.executable, "-c", _WITHOUT],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(("None []\n", ""), (done.stdout, done.stderr))

    def test_no_sdk(self) -> None:
        """Where nothing is recorded, bodies stay as they are."""
        recording(self)  # skips the test where OpenTelemetry is missing
        carriers: list[dict[str, str]] = []
        tracing.Tracing(_no_provider()).send("mail", carriers.append)
        self.assertEqual([{}], carriers)


def _no_provider() -> object:
    from opentelemetry.trace import NoOpTracerProvider

    return NoOpTracerProvider()

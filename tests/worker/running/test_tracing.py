"""Spans of handlers."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

from twisted.internet.defer import Deferred

from disque_tx.worker import Context, Queue, batch
from tests.recordedspans import recording
from tests.worker.memory import WorkerTestCase


class HandlerTests(WorkerTestCase):
    """Who looks at a trace finds the work that a request led to."""

    def setUp(self) -> None:
        super().setUp()
        self.spans = recording(self)
        self.queue = Queue("mail")
        self.queue.connect(self.client)

    def bodies(self) -> list[Any]:
        """The bodies of the jobs that were added to the queue."""
        return [json.loads(stored.job.body) for stored in self.client.jobs.values()]

    def test_linked(self) -> None:
        """The span of a handler is linked to that of its producer, in a trace of its own, and spans
        of the handler are children of it."""
        tracer = self.spans.provider.get_tracer("test")

        @self.queue.job
        def send(to: str) -> None:
            with tracer.start_as_current_span("smtp"):
                self.done.append(to.encode())

        with tracer.start_as_current_span("order"):
            self.successResultOf(send.delay("alice"))
        self.worker([self.queue])
        self.pass_s(0.1)
        self.assertEqual([b"alice"], self.done)
        self.assertEqual(["send mail", "order", "smtp", "process mail"], self.spans.names())
        sent, processed = self.spans.only("send"), self.spans.only("process")
        self.assertEqual("CONSUMER", processed.kind.name)
        (link,) = processed.links
        self.assertEqual(sent.context.span_id, link.context.span_id)
        self.assertEqual(sent.context.trace_id, link.context.trace_id)
        self.assertIsNone(processed.parent)
        self.assertEqual(self.spans.only("order").context.span_id, sent.parent.span_id)
        self.assertEqual(processed.context.span_id, self.spans.only("smtp").parent.span_id)
        self.assertEqual("mail", processed.attributes["messaging.destination.name"])
        self.assertEqual("process", processed.attributes["messaging.operation.type"])
        self.assertEqual("D-00000000", processed.attributes["messaging.message.id"])

    def test_failed(self) -> None:
        """A handler that failed says so in its span."""

        @self.queue.job
        def send() -> None:
            raise ValueError("no such address")

        self.successResultOf(send.delay())
        self.worker([self.queue])
        self.pass_s(0.1)
        processed = self.spans.only("process")
        self.assertEqual("ERROR", processed.status.status_code.name)
        self.assertEqual("ValueError", processed.attributes["error.type"])
        self.assertEqual("exception", processed.events[0].name)

    def test_coroutine(self) -> None:
        """The span of a coroutine ends when it does, and is the current one until then."""
        tracer = self.spans.provider.get_tracer("test")
        release: Deferred[None] = Deferred()

        @self.queue.job
        async def send() -> None:
            await release
            tracer.start_span("smtp").end()
            raise ValueError("no such address")

        self.successResultOf(send.delay())
        self.worker([self.queue])
        self.pass_s(0.1)
        self.assertEqual(["send mail"], self.spans.names())
        release.callback(None)
        self.pass_s(0.1)
        processed = self.spans.only("process")
        self.assertEqual(processed.context.span_id, self.spans.only("smtp").parent.span_id)
        self.assertEqual("ValueError", processed.attributes["error.type"])

    def test_batch(self) -> None:
        """A batch is one span, with the number of jobs."""

        @batch(size=2)
        def both(jobs: list[Context]) -> None:
            self.done += [job.body for job in jobs]

        self.client.put("mail", b"a")
        self.client.put("mail", b"b")
        self.worker({"mail": both})
        self.pass_s(1)
        self.assertEqual([b"a", b"b"], self.done)
        self.assertEqual(2, self.spans.only("process").attributes["messaging.batch.message_count"])

    def test_bodies(self) -> None:
        """Only calls of tasks carry a context, and keys of unique ones do not depend on it."""

        @self.queue.job(unique=True)
        def send() -> None:
            """Nothing."""

        for _ in range(2):
            self.successResultOf(send.delay())
        (first, *_more) = self.bodies()
        self.assertEqual({"task", "args", "kwargs", "traceparent"}, set(first))
        self.assertEqual(send._key((), {}), send._key((), {}))
        self.assertNotIn(b"traceparent", send.body_without_arguments())

    def test_off(self) -> None:
        """A worker that does not trace does the jobs of programs that do."""
        from disque_tx.client.steps import tracing

        @self.queue.job
        def send(to: str) -> None:
            self.done.append(to.encode())

        self.successResultOf(send.delay("alice"))
        self.patch(tracing, "ACTIVE", None)
        self.successResultOf(send.delay("bob"))
        self.worker([self.queue])
        self.pass_s(0.1)
        self.assertEqual([b"alice", b"bob"], self.done)
        self.assertEqual(["send mail"], self.spans.names())
        self.assertEqual({"task", "args", "kwargs"}, set(self.bodies()[1]))

    def test_coroutine_off(self) -> None:
        """A worker that does not trace does coroutines as well, and keeps what they return."""
        from disque_tx.client.steps import tracing

        @self.queue.job(result=True)
        async def length(text: str) -> int:
            self.done.append(text.encode())
            return len(text)

        self.patch(tracing, "ACTIVE", None)
        self.successResultOf(length.delay("alice"))
        self.worker([self.queue])
        self.pass_s(0.1)
        self.assertEqual([b"alice"], self.done)
        values = [body["value"] for body in self.bodies() if "value" in body]
        self.assertEqual([b"5"], [b64decode(value) for value in values])

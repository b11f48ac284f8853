"""Spans of all clients, and of a worker, with a real node."""

from __future__ import annotations

import asyncio
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from disque_tx import Disque
from disque_tx.client import DisqueClient
from disque_tx.client.aio import Disque as AsyncDisque
from disque_tx.worker import Queue, Worker
from tests.acceptance.daemon import DaemonTestCase
from tests.recordedspans import recording


class ClientTests(DaemonTestCase):
    """The blocking client, and the one for asyncio."""

    def check(self, spans: Any, port: int) -> None:
        """A job was sent and received."""
        self.assertEqual(["send mail", "receive mail"], spans.names())
        for span in spans.finished():
            self.assertEqual(port, span.attributes["server.port"])
            self.assertEqual(40, len(span.attributes["messaging.message.id"]))

    def test_blocking(self) -> None:
        """One span per request that moves jobs."""
        spans, daemon = recording(self), self.running()
        with Disque(f"127.0.0.1:{daemon.port}") as client:
            client.add_job("mail", "x")
            (job,) = client.take("mail")
            job.ack()
        self.check(spans, daemon.port)

    def test_asyncio(self) -> None:
        """The same with asyncio."""
        spans, daemon = recording(self), self.running()

        async def both() -> None:
            async with AsyncDisque(f"127.0.0.1:{daemon.port}") as client:
                await client.add_job("mail", "x")
                (job,) = await client.take("mail")
                await job.ack()

        asyncio.run(both())
        self.check(spans, daemon.port)


class WorkerTests(TestCase, DaemonTestCase):
    """A worker on the Twisted client."""

    async def test_worker(self) -> None:
        """From the producer to the handler: three spans, of which the last is linked to the
        first."""
        from twisted.internet import reactor

        timers: Any = reactor
        before = set(timers.getDelayedCalls())
        spans, daemon = recording(self), self.running()
        client = DisqueClient(f"127.0.0.1:{daemon.port}", reactor=reactor)
        queue, done = Queue("mail"), Deferred[str]()
        queue.connect(client)

        @queue.job
        async def send(to: str) -> None:
            """Report it."""
            done.callback(to)

        await send.delay("alice")
        worker = Worker(client, [queue], reactor)
        worker.startService()
        self.assertEqual("alice", await done)
        await worker.stopService()
        await client.close()
        for call in set(timers.getDelayedCalls()) - before:
            call.cancel()  # a timer of heartbeats, which would find nothing to renew
        self.assertEqual(["send mail", "receive mail", "process mail"], sorted(spans.names())[::-1])
        (link,) = spans.only("process").links
        self.assertEqual(spans.only("send").context.span_id, link.context.span_id)
        self.assertEqual(daemon.port, spans.only("process").attributes["server.port"])

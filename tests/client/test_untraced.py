"""Clients where OpenTelemetry is not installed, as on most hosts."""

from __future__ import annotations

import asyncio
from typing import Any

from disque_tx.client import aio, blocking
from disque_tx.client.steps import tracing
from tests.client.scripted import JOB_ID, ScriptedNode, array, bulk, job
from tests.client.tx.network import NetworkTestCase

_ANSWERS: dict[str, Any] = {
    "ADDJOB": bulk(JOB_ID),
    "GETJOB": array(job()),
    "ACKJOB": b":1\r\n",
    "QLEN": b":3\r\n",
}
_EXPECTED = (JOB_ID, JOB_ID, True, 3)


class UntracedTests(NetworkTestCase):
    """A job is added, fetched and acknowledged, and its queue is asked for."""

    def setUp(self) -> None:
        super().setUp()
        self.patch(tracing, "ACTIVE", None)
        self.patch(tracing, "_looked", True)

    def scripted(self) -> ScriptedNode:
        """A node on a socket."""
        node = ScriptedNode(**_ANSWERS)
        self.addCleanup(node.close)
        return node

    def test_twisted(self) -> None:
        """The client of Twisted works without it."""
        client = self.client(self.node(**_ANSWERS))
        added = self.result(client.add_job("q", "b"))
        (taken,) = self.result(client.take("q"))
        done = self.result(taken.ack()), self.result(client.queue_length("q"))
        self.assertEqual(_EXPECTED, (added, taken.id, *done))

    def test_blocking(self) -> None:
        """So does the blocking client."""
        with blocking.Disque([self.scripted().address]) as client:
            added = client.add_job("q", "b")
            (taken,) = client.take("q")
            self.assertEqual(_EXPECTED, (added, taken.id, taken.ack(), client.queue_length("q")))

    def test_asyncio(self) -> None:
        """So does that of asyncio."""

        async def use() -> tuple[object, ...]:
            async with aio.Disque([self.scripted().address]) as client:
                added = await client.add_job("q", "b")
                (taken,) = await client.take("q")
                return added, taken.id, await taken.ack(), await client.queue_length("q")

        self.assertEqual(_EXPECTED, asyncio.run(use()))

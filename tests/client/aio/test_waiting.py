"""Requests that wait at nodes, each on a connection of its own."""

from __future__ import annotations

import asyncio

from disque_tx.client.aio import Disque
from tests.client.aio.test_session import AsyncTestCase
from tests.client.blocking.test_session import PONG
from tests.client.scripted import NO_ANSWER


class BoundTests(AsyncTestCase):
    """A program that adds more jobs at once than a node should have connections for."""

    def test_default(self) -> None:
        """Unless a program says otherwise, a hundred wait at nodes, as the page promises, and the
        others in the program."""
        node = self.node(ADDJOB=NO_ANSWER, PING=PONG)

        async def use(client: Disque) -> None:
            adding = [asyncio.ensure_future(client.add_job("q", "b")) for _ in range(110)]
            await self.wait_until(lambda: node.commands().count("ADDJOB") >= 100)
            for _ in range(20):
                await client.ping()
            for one in adding:
                one.cancel()

        self.run_client(use, node)
        self.assertEqual(100, node.commands().count("ADDJOB"))
        self.assertEqual(100 + 1, node.connections)

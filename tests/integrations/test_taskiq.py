"""What taskiq's broker asks of a node, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from taskiq import AckableMessage, BrokerMessage

from disque_tx.integrations.taskiq import DisqueBroker
from tests.integrations.nodes import JOB_ID, FrameworkCase


class BrokerTests(FrameworkCase):
    """Messages to a worker and back."""

    def run_broker(
        self, use: Callable[[DisqueBroker, AckableMessage], Awaitable[None]]
    ) -> DisqueBroker:
        """Do something with a message that was delivered to a broker, and end the broker."""

        async def run() -> DisqueBroker:
            broker = DisqueBroker(self.scripted.address, prefetch=2)
            messages = broker.listen()
            await use(broker, await anext(messages))
            await messages.aclose()
            await broker.shutdown()
            return broker

        self.deliver(b"message")
        return asyncio.run(run())

    def test_done(self) -> None:
        """A message that is done is acknowledged once, and not given back at the end."""

        async def use(broker: DisqueBroker, message: AckableMessage) -> None:
            self.assertTrue(broker._leases.holds(JOB_ID))
            done = message.ack()
            assert done is not None
            await done
            self.assertFalse(broker._leases.holds(JOB_ID))

        broker = self.run_broker(use)
        self.assertEqual([["ACKJOB", JOB_ID]], self.asked())
        self.assertEqual({}, broker._held)

    def test_not_done(self) -> None:
        """What a worker has not done when it ends is delivered to others at once."""

        async def use(broker: DisqueBroker, message: AckableMessage) -> None:
            self.assertEqual(b"message", message.data)

        broker = self.run_broker(use)
        self.assertEqual([["NACK", JOB_ID]], self.asked())
        self.assertEqual({}, broker._held)

    def test_kick(self) -> None:
        """A task is added with what its labels say."""

        async def use(broker: DisqueBroker, _: AckableMessage) -> None:
            labels = {"delay": "1.5", "ttl": 7, "queue_name": "other"}
            await broker.kick(
                BrokerMessage(task_id="1", task_name="t", message=b"m", labels=labels)
            )

        self.run_broker(use)
        command, queue, body, _timeout, *options = self.asked()[0]
        self.assertEqual(["ADDJOB", "other", "m"], [command, queue, body])
        found = dict(zip(options[::2], options[1::2], strict=False))
        wanted = {"DELAY": "2", "RETRY": "60", "TTL": "9"}
        self.assertEqual(wanted, {name: found[name] for name in wanted})

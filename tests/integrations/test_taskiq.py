"""What taskiq's broker asks of a node, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from taskiq import AckableMessage, BrokerMessage

from disque_tx.client.options import AddOptions
from disque_tx.integrations.taskiq import DisqueBroker
from tests.integrations.nodes import JOB_ID, NOTHING, FrameworkCase, array, job


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

    def test_room(self) -> None:
        """A worker asks for as many messages as it may still hold, and for one at least, because
        taskiq takes a message more than it works on."""

        async def run() -> None:
            broker = DisqueBroker(self.scripted.address, prefetch=3)
            messages = broker.listen()
            asked = []
            held = []
            for _ in range(4):
                held.append(await anext(messages))
                asked.append(len(self.counts()))
            self.assertEqual([3, 3, 3, 4], asked)
            for message in held[:3]:
                done = message.ack()
                assert done is not None
                await done
            held.append(await anext(messages))
            self.assertEqual(6, len(self.counts()))
            self.assertEqual([b"%d" % number for number in range(5)], [m.data for m in held])
            await messages.aclose()
            await broker.shutdown()

        found = [array(job(JOB_ID.replace("I7A", f"X{n}A"), b"%d" % n)) for n in range(5)]
        self.scripted.answer("GETJOB", *found, NOTHING)
        asyncio.run(run())
        self.assertEqual(["ACKJOB"] * 3 + ["NACK"] * 2, self.commands())

    def test_no_node_at_the_end(self) -> None:
        """A worker ends though no node takes its messages back; the next one is not even tried."""

        async def use(broker: DisqueBroker, _: AckableMessage) -> None:
            broker._held["second"] = broker._held[JOB_ID]
            self.scripted.answer("NACK", b"-ERR no\r\n")

        broker = self.run_broker(use)
        self.assertEqual((["NACK"], {}), (self.commands(), broker._held))

    def test_labels(self) -> None:
        """Who writes a label that is no number reads which one, when the task is sent."""
        broker = DisqueBroker(self.scripted.address, queue_name="own", retry_s=7, replicate=2)
        placed = broker.placed({"delay": "2.1", "priority": "12", "ttl": 1.5}, 0.5)
        self.assertEqual(
            ("own\x069", AddOptions(replicate=2, delay_s=1, retry_s=7, ttl_s=3)), placed
        )
        for name in ("delay", "ttl", "priority"):
            error = self.assertRaises(ValueError, broker.placed, {name: "soon"})
            self.assertEqual(f"The label {name} is a number, not 'soon'.", str(error))
        error = self.assertRaises(ValueError, DisqueBroker, self.scripted.address, prefetch=0)
        self.assertEqual("prefetch is at least 1, not 0.", str(error))

"""What dramatiq's broker asks of a node, and in which order."""

from __future__ import annotations

import threading
from typing import Any

from dramatiq import Consumer, Message, MessageProxy
from dramatiq.errors import ConnectionFailed, QueueJoinTimeout
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.errors import OutOfMemory
from disque_tx.integrations import dramatiq
from disque_tx.integrations.dramatiq import DisqueBackend, DisqueBroker
from tests.cli.livenode import LiveNode
from tests.client.scripted import HANG_UP
from tests.integrations.nodes import JOB_ID, NOTHING, FrameworkCase, array, job

_OOM = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
_DEAD = "dramatiq:default.XQ"


class ConsumerTests(FrameworkCase):
    """The end of a message."""

    def setUp(self) -> None:
        super().setUp()
        self.broker = DisqueBroker(self.scripted.address, middleware=[], dead_message_ttl_s=77)
        self.addCleanup(self.broker.close)
        self.broker.declare_queue("default")
        self.broker.leases = self.held = self.leases(self.broker.client.servers)
        self.message: Message[Any] = Message(
            queue_name="default", actor_name="send", args=(1,), kwargs={}, options={}
        )

    def fetched(self) -> tuple[Consumer, MessageProxy]:
        """A consumer of one message at a time, and the message it got."""
        self.deliver(self.message.encode())
        consumer = self.broker.consume("default", prefetch=1, timeout=1)
        message = next(consumer)
        assert message is not None
        self.assertTrue(self.broker.leases.holds(JOB_ID))
        return consumer, message

    def assert_free(self, consumer: Consumer) -> None:
        """Assert that nothing is held any more, and the next message is asked for."""
        self.assertFalse(self.broker.leases.holds(JOB_ID))
        before = len(self.counts())
        self.assertIsNone(next(consumer))
        self.assertEqual(["1"], self.counts()[before:][:1])

    def test_ack(self) -> None:
        """A message that is done is acknowledged, and makes room for the next one."""
        consumer, message = self.fetched()
        consumer.ack(message)
        self.assertEqual([["ACKJOB", JOB_ID]], self.asked())
        self.assert_free(consumer)

    def test_nack(self) -> None:
        """A message that failed for good is kept among the dead ones first and acknowledged then:
        a crash in between may double it, and never loses it."""
        consumer, message = self.fetched()
        consumer.nack(message)
        added, acknowledged = self.asked()
        body = self.message.encode().decode()
        self.assertEqual(["ADDJOB", _DEAD, body], added[:3])
        self.assertEqual("77", added[added.index("TTL") + 1])
        self.assertEqual(["ACKJOB", JOB_ID], acknowledged)
        self.assert_free(consumer)

    def test_nack_refused(self) -> None:
        """A message that cannot be kept is not acknowledged; it comes back after its RETRY, and
        does not take the place of others until then."""
        consumer, message = self.fetched()
        self.scripted.answer("ADDJOB", _OOM)
        self.assertRaises(OutOfMemory, consumer.nack, message)
        self.assertEqual(["ADDJOB"], self.commands())
        self.assert_free(consumer)

    def test_nack_without_answer(self) -> None:
        """While it is not known whether the message is kept, it is not acknowledged, and stays
        held, because dramatiq tries again."""
        consumer, message = self.fetched()
        self.scripted.answer("ADDJOB", HANG_UP)
        self.assertRaises(ConnectionFailed, consumer.nack, message)
        self.assertEqual({"ADDJOB"}, set(self.commands()))
        self.assertTrue(self.broker.leases.holds(JOB_ID))

    def test_damaged(self) -> None:
        """A job that is no message is kept, too, before it is acknowledged."""
        self.deliver(b"\xff")
        consumer = self.broker.consume("default", prefetch=1, timeout=1)
        self.assertIsNone(next(consumer))
        added, acknowledged = self.asked()
        self.assertEqual(["ADDJOB", _DEAD, "\\xff"], added[:3])
        self.assertEqual(["ACKJOB", JOB_ID], acknowledged)
        self.assert_free(consumer)

    def test_damaged_is_logged(self) -> None:
        """Who looks for a lost message finds in the log which job was none, and where it is."""
        self.deliver(b"\xff")
        consumer = self.broker.consume("default", prefetch=1, timeout=1)
        with self.assertLogs(self.broker.logger, "ERROR") as logged:
            self.assertIsNone(next(consumer))
        (line,) = [record.getMessage() for record in logged.records]
        begin = f"Job {JOB_ID} is no message, and was moved to the dead messages: "
        self.assertTrue(line.startswith(begin), line)

    def test_full(self) -> None:
        """A consumer that holds all it may goes on as soon as one of its messages is done, and does
        not wait for its next look."""
        self.patch(dramatiq, "_ROOM_POLL_S", 60.0)
        self.deliver(self.message.encode())
        consumer = self.broker.consume("default", prefetch=1, timeout=60_000)
        message = next(consumer)
        assert message is not None
        waiting = threading.Thread(target=next, args=(consumer,), daemon=True)
        waiting.start()
        consumer.ack(message)
        waiting.join(20)
        self.assertFalse(waiting.is_alive())

    def test_damaged_refused(self) -> None:
        """While it cannot be kept, it is not acknowledged, and comes back after its RETRY; it does
        not take the place of messages until then."""
        self.deliver(b"\xff")
        self.scripted.answer("ADDJOB", _OOM)
        consumer = self.broker.consume("default", prefetch=1, timeout=1)
        self.assertRaises(OutOfMemory, next, consumer)
        self.assertEqual(["ADDJOB"], self.commands())
        self.assert_free(consumer)

    def test_requeue(self) -> None:
        """A message that a worker gives back at its end is not acknowledged, but queued again, when
        no heartbeat can come after that."""
        consumer, message = self.fetched()
        consumer.requeue([message])
        self.assertEqual([["NACK", JOB_ID]], self.asked())
        self.assertEqual([(JOB_ID, [])], self.held.withdrawn)
        self.assert_free(consumer)

    def test_closed(self) -> None:
        """What was fetched and not begun is queued again; what was begun stays held."""
        consumer, _ = self.fetched()
        second = JOB_ID.replace("I7A", "X7A")
        self.scripted.answer("GETJOB", array(job(second, self.message.encode())), NOTHING)
        consumer._prefetch = 2
        consumer._ready.append(consumer._fetched())
        consumer.close()
        self.assertEqual([["NACK", second]], self.asked())
        self.assertEqual([(second, [])], self.held.withdrawn)
        self.assertTrue(self.broker.leases.holds(JOB_ID))

    def test_enqueue(self) -> None:
        """A message is added with its terms; its delay is rounded up, and not part of its life."""
        self.assertEqual(self.message, self.broker.enqueue(self.message, delay=1500))
        ((command, queue, body, _timeout, *options),) = self.asked()
        self.assertEqual(["ADDJOB", "dramatiq:default"], [command, queue])
        self.assertEqual(self.message.encode().decode(), body)
        found = dict(zip(options[::2], options[1::2], strict=False))
        self.assertEqual(
            {"DELAY": "2", "RETRY": "60", "TTL": str(10 * 86_400 + 2)},
            {name: found[name] for name in ("DELAY", "RETRY", "TTL")},
        )


class BackendTests(FrameworkCase):
    """Results of dramatiq."""

    def test_stored(self) -> None:
        """A result is a job that is kept for its time, and that nobody fetches."""
        backend = DisqueBackend(self.scripted.address, replicate=2)
        message: Message[Any] = Message(
            queue_name="default", actor_name="send", args=(), kwargs={}, options={}
        )
        backend.store_result(message, {"total": 5}, 60_000)
        (words,) = self.asked()
        self.assertEqual("ADDJOB", words[0])
        self.assertIn("total", words[2])
        self.assertEqual("2", words[words.index("REPLICATE") + 1])
        self.assertEqual("60", words[words.index("TTL") + 1])


class JoinTests(SynchronousTestCase):
    """Tests of programs wait until everything is done."""

    def test_unfinished(self) -> None:
        """A queue is done when its only message is, not before; flushing it is an end as well."""
        node = LiveNode()
        self.addCleanup(node.stop)
        broker = DisqueBroker(f"disque://{node.address}", middleware=[])
        self.addCleanup(broker.close)
        broker.declare_queue("default")
        broker.join("default", timeout=0)
        message: Message[Any] = Message(
            queue_name="default", actor_name="send", args=(), kwargs={}, options={}
        )
        for delay in (None, 60_000):
            broker.enqueue(message, delay=delay)
            self.assertRaises(QueueJoinTimeout, broker.join, "default", timeout=0)
            broker.flush("default")
            broker.join("default", timeout=0)

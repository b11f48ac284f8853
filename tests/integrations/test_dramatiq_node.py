"""dramatiq's broker on a node: the order of messages, and what is left of them."""

from __future__ import annotations

import logging
from typing import Any

from dramatiq import Broker, Message, MessageProxy, Middleware
from dramatiq.errors import QueueNotFound
from dramatiq.results.errors import ResultMissing

from disque_tx.integrations.dramatiq import DisqueBackend, DisqueBroker
from tests.cli.livenode import VerbCase


def message(number: int, **options: Any) -> Message[Any]:
    """A message with this number."""
    return Message(
        queue_name="default", actor_name="send", args=(number,), kwargs={}, options=options
    )


class Listening(Middleware):  # type: ignore[misc]
    """Notes what a broker tells of itself."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def before_declare_queue(self, broker: Broker, queue_name: str) -> None:
        """A queue is declared."""
        self.heard.append(("declare", queue_name))

    def after_declare_queue(self, broker: Broker, queue_name: str) -> None:
        """A queue was declared."""
        self.heard.append(("declared", queue_name in broker.queues))

    def before_enqueue(self, broker: Broker, message: Message[Any], delay: Any) -> None:
        """A message is sent."""
        self.heard.append(("enqueue", delay))

    def after_enqueue(self, broker: Broker, message: Message[Any], delay: Any) -> None:
        """A message was sent."""
        self.heard.append(("enqueued", delay))


class NodeTests(VerbCase):
    """A broker on a node."""

    def setUp(self) -> None:
        super().setUp()
        logging.disable()
        self.addCleanup(logging.disable, logging.NOTSET)

    def broker(self, *middleware: Middleware, **options: Any) -> DisqueBroker:
        """A broker with these options."""
        broker = DisqueBroker(self.node.address, middleware=[*middleware], **options)
        self.addCleanup(broker.close)
        broker.declare_queue("default")
        return broker

    def taken(self, broker: DisqueBroker, count: int) -> list[MessageProxy]:
        """So many messages, by a consumer that fetches more at once."""
        self.consumer = broker.consume("default", prefetch=5, timeout=10)
        found = []
        for _ in range(count):
            one = next(self.consumer)
            assert one is not None
            found.append(one)
        return found

    def test_order(self) -> None:
        """Messages come in the order in which they were sent; those that were fetched too early
        go back when the consumer ends."""
        broker = self.broker()
        for number in range(4):
            broker.enqueue(message(number))
        found = self.taken(broker, 3)
        self.assertEqual([(0,), (1,), (2,)], [one.args for one in found])
        self.assertEqual(0, self.length("dramatiq:default"))
        self.consumer.close()
        self.assertEqual(1, self.length("dramatiq:default"))
        for one in found:
            self.consumer.ack(one)
        self.assertEqual(1, int(self.client.info()["registered_jobs"]))

    def test_priorities(self) -> None:
        """Urgent messages come first; a priority beyond the greatest one in use is that one."""
        broker = self.broker(max_priority=2)
        for number, priority in enumerate((0, 1, 9, None)):
            broker.enqueue(message(number, broker_priority=priority))
        found = self.taken(broker, 4)
        self.assertEqual([(2,), (1,), (0,), (3,)], [one.args for one in found])
        self.assertIn("broker_priority", broker.actor_options)
        self.assertLessEqual(self.broker().actor_options, broker.actor_options)
        for wrong in (-1, 10):
            self.assertRaises(ValueError, DisqueBroker, max_priority=wrong)

    def test_terms(self) -> None:
        """Who sets nothing has messages that come back after a minute, and are kept for ten days;
        those that failed for good for a week."""
        broker = self.broker()
        broker.enqueue(message(1))
        broker.bury("default", b"dead")
        for queue, days in (("dramatiq:default", 10), ("dramatiq:default.XQ", 7)):
            ((_, job_id, _),) = self.call("QPEEK", queue, 9)
            shown = self.call("SHOW", job_id)
            self.assertApproximates(days * 86_400, shown[shown.index(b"ttl") + 1], 60)
            self.assertEqual(60, shown[shown.index(b"retry") + 1])

    def test_told(self) -> None:
        """Middleware hears of a queue once, and of a message before it is sent and after that."""
        listening = Listening()
        broker = self.broker(listening)
        broker.declare_queue("default")
        broker.enqueue(message(1), delay=500)
        steps = [("declare", "default"), ("declared", True), ("enqueue", 500), ("enqueued", 500)]
        self.assertEqual(steps, listening.heard)

    def test_undeclared(self) -> None:
        """A queue that was not declared is an error with its name."""
        broker = self.broker()
        wrong = message(1).copy(queue_name="none")
        error = self.assertRaises(QueueNotFound, broker.enqueue, wrong)
        self.assertEqual(("none",), error.args)
        self.assertRaises(QueueNotFound, broker.consume, "none")

    def test_flushed(self) -> None:
        """Flushing drops all that waits, of every queue, and nothing that a worker holds."""
        broker = self.broker()
        broker.declare_queue("other")
        for number in range(501):
            broker.enqueue(message(number))
        broker.enqueue(message(1).copy(queue_name="other"), delay=60_000)
        self.consumer = broker.consume("default", prefetch=1, timeout=10)
        held = next(self.consumer)
        assert held is not None
        broker.flush_all()
        self.assertEqual(1, int(self.client.info()["registered_jobs"]))
        self.consumer.ack(held)
        self.assertEqual(0, int(self.client.info()["registered_jobs"]))

    def test_full(self) -> None:
        """A consumer that holds all it may fetches nothing, and goes on when one is done."""
        broker = self.broker()
        for number in range(2):
            broker.enqueue(message(number))
        consumer = broker.consume("default", prefetch=1, timeout=10)
        first = next(consumer)
        assert first is not None
        self.assertIsNone(next(consumer))
        self.assertEqual(1, self.length("dramatiq:default"))
        consumer.ack(first)
        found = [next(consumer), next(consumer)]
        self.assertEqual([(1,)], [one.args for one in found if one is not None])

    def test_damaged(self) -> None:
        """What is no message is kept apart with its bytes, and the next one is delivered."""
        self.add("dramatiq:default", b"\xff")
        broker = self.broker()
        broker.enqueue(message(1))
        (one,) = self.taken(broker, 1)
        self.assertEqual((1,), one.args)
        self.assertEqual(b"\xff", self.call("QPEEK", "dramatiq:default.XQ", 1)[0][2])

    def test_results(self) -> None:
        """A result is there for its time in whole seconds, and missing before."""
        backend = DisqueBackend(self.node.address)
        self.addCleanup(backend._results._client.close)
        sent = message(1)
        self.assertRaises(ResultMissing, backend.get_result, sent)
        backend.store_result(sent, {"total": 5}, 1_500)
        self.assertEqual({"total": 5}, backend.get_result(sent))
        key = backend.build_message_key(sent)
        ((_, job_id, _),) = self.call("QPEEK", f"{backend.namespace}:{key}", 9)
        shown = self.call("SHOW", job_id)
        self.assertIn(shown[shown.index(b"ttl") + 1], (1, 2))

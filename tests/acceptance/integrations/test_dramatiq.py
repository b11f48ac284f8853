"""Dramatiq on real nodes, with real workers."""

from __future__ import annotations

import subprocess
from typing import Any

import dramatiq
from dramatiq.errors import ConnectionFailed, QueueJoinTimeout, QueueNotFound
from dramatiq.results import ResultMissing, Results

from disque_tx.client.blocking import Disque
from disque_tx.integrations.dramatiq import DisqueBackend, DisqueBroker
from tests.acceptance.cluster.fleet import Fleet
from tests.acceptance.daemon import DaemonTestCase, wait_for
from tests.acceptance.integrations.frameworks import FrameworkTestCase, kill, stop

_APP = """
import dramatiq
from disque_tx.integrations.dramatiq import DisqueBroker
copies, retry_s = int(os.environ["COPIES"]), int(os.environ["RETRY"])
dramatiq.set_broker(DisqueBroker(os.environ["BROKER"], retry_s=retry_s, replicate=copies))

@dramatiq.actor
def note(text):
    report(text)

@dramatiq.actor
def slow(text, wait_s):
    report("begun " + text)
    time.sleep(wait_s)
    report("done " + text)

@dramatiq.actor(max_retries=2, min_backoff=100, max_backoff=200)
def failing():
    report("failed")
    raise ValueError("no")
"""


class WorkerTests(FrameworkTestCase):
    """Workers in processes of their own."""

    def begin(self, *addresses: str, copies: int = 1) -> None:
        """Write the program for these nodes."""
        self.variables |= {"BROKER": f"disque://{','.join(addresses)}", "COPIES": str(copies)}
        self.write("app", _APP)

    def node(self) -> Disque:
        """One node, and a client of it."""
        daemon = self.running()
        self.begin(f"127.0.0.1:{daemon.port}")
        client = Disque(f"127.0.0.1:{daemon.port}")
        self.addCleanup(client.close)
        return client

    def worker(self) -> subprocess.Popen[bytes]:
        """A worker with two threads."""
        return self.spawn("-m", "dramatiq", "app", "-p", "1", "-t", "2")

    def send(self, *calls: str) -> None:
        """Send messages from another process."""
        self.run_program("import app\n" + "\n".join(f"app.{call}" for call in calls))

    def test_life(self) -> None:
        """Messages are done, each once, now or after a delay; the worker ends when it is asked."""
        self.node()
        worker = self.worker()
        notes = [f"note.send('{number}')" for number in range(50)]
        self.send(*notes, "note.send_with_options(args=('later',), delay=1500)")
        self.wait_reported(*map(str, range(50)), "later")
        self.assertEqual({1}, set(self.reported().values()))
        self.assertEqual(0, stop(worker), self.output())

    def test_long(self) -> None:
        """A task that takes several times RETRY is not begun again while its worker lives."""
        self.shorten_retry()
        self.node()
        for _ in range(2):
            self.worker()
        self.send(*[f"slow.send('{number}', 7)" for number in range(3)])
        self.wait_reported(*[f"done {number}" for number in range(3)])
        self.assertEqual({1}, set(self.reported().values()))

    def test_killed(self) -> None:
        """The task of a worker that is killed is done by another one soon after RETRY."""
        self.shorten_retry()
        self.node()
        first = self.worker()
        self.send("slow.send('x', 5)")
        self.wait_reported("begun x")
        self.worker()
        kill(first)
        self.wait_reported("done x")

    def test_failing(self) -> None:
        """A message that fails too often is kept among the dead messages."""
        client = self.node()
        self.worker()
        self.send("failing.send()")
        wait_for(lambda: client.queue_length("dramatiq:default.XQ"), "a dead message")
        self.assertEqual(3, self.reported()["failed"])

    def test_node_killed(self) -> None:
        """Messages with copies are all done although a node dies with them."""
        self.shorten_retry()
        fleet = Fleet(3)
        self.addCleanup(fleet.discard)
        fleet.start()
        self.begin(*[f"{node.ip}:{node.port}" for node in fleet.nodes], copies=2)
        self.worker()
        self.send(*[f"slow.send('{number}', 0.1)" for number in range(40)])
        self.wait_reported("begun 5")
        fleet.nodes[1].kill()
        self.wait_reported(*[f"done {number}" for number in range(40)])


class BrokerTests(DaemonTestCase):
    """The broker by itself."""

    def setUp(self) -> None:
        self.daemon_under_test = self.running()
        self.url = f"disque://127.0.0.1:{self.daemon_under_test.port}"
        self.broker = self.broker_with()
        self.broker.declare_queue("q")

    def broker_with(self, **options: Any) -> DisqueBroker:
        """A broker that is closed after the test."""
        broker = DisqueBroker(self.url, retry_s=1, **options)
        self.addCleanup(broker.close)
        return broker

    def message(self, number: int, **options: Any) -> Any:
        """A message to an actor."""
        return dramatiq.Message("q", "actor", (number,), {}, options)

    def next(self, consumer: Any) -> Any:
        """The next message, as soon as there is one."""
        return wait_for(lambda: next(consumer), "a message")

    def test_prefetch(self) -> None:
        """A consumer holds no more messages than it may, and gives back what is not begun."""
        for number in range(5):
            self.broker.enqueue(self.message(number))
        consumer = self.broker.consume("q", prefetch=2, timeout=100)
        held = [self.next(consumer), self.next(consumer)]
        self.assertIsNone(next(consumer))
        consumer.ack(held[0])
        third = self.next(consumer)
        consumer.requeue([third])
        consumer.close()
        client = self.broker.client
        self.assertEqual(3, client.queue_length("dramatiq:q"))

    def test_leased(self) -> None:
        """A message that is held for several times RETRY is not delivered to another consumer."""
        self.broker.enqueue(self.message(1))
        first = self.broker.consume("q", timeout=100)
        message = self.next(first)
        other = self.broker_with()
        other.declare_queue("q")
        self.assertIsNone(next(other.consume("q", timeout=3000)))
        first.ack(message)
        self.broker.join("q", timeout=10_000)

    def test_priorities(self) -> None:
        """Among messages that wait, the most urgent is delivered first."""
        broker = self.broker_with(max_priority=9)
        broker.declare_queue("q")
        for priority in (0, 3, 20, 9, 5):
            broker.enqueue(self.message(priority, broker_priority=priority))
        consumer = broker.consume("q", prefetch=5, timeout=1000)
        found = [self.next(consumer).args[0] for _ in range(5)]
        self.assertEqual([20, 9, 5, 3, 0], found)

    def test_join_and_flush(self) -> None:
        """join() waits for delayed messages too, and flush() drops them."""
        self.broker.enqueue(self.message(1))
        self.broker.enqueue(self.message(2), delay=3_600_000)
        self.assertRaises(QueueJoinTimeout, self.broker.join, "q", timeout=100)
        self.broker.flush_all()
        self.broker.join("q", timeout=10_000)

    def test_unknown_queue(self) -> None:
        """A queue that nobody declared is an error."""
        message = dramatiq.Message("other", "actor", (), {}, {})
        self.assertRaises(QueueNotFound, self.broker.enqueue, message)
        self.assertRaises(QueueNotFound, self.broker.consume, "other")

    def test_damaged(self) -> None:
        """A job that is no message is kept among the dead messages, and others go on."""
        self.broker.client.add_job("dramatiq:q", b"\xff")
        self.broker.enqueue(self.message(1))
        consumer = self.broker.consume("q", timeout=100)
        self.assertEqual((1,), self.next(consumer).args)
        (dead,) = self.broker.client.queue_peek("dramatiq:q.XQ")
        self.assertEqual(b"\xff", dead.body)

    def test_away(self) -> None:
        """A cluster that is away is dramatiq's own error, which its worker survives."""
        self.daemon_under_test.kill()
        broker = DisqueBroker(self.url)
        broker.client = Disque(self.url, patience_s=0)
        broker.declare_queue("q")
        self.assertRaises(ConnectionFailed, broker.enqueue, self.message(1))
        self.assertRaises(ConnectionFailed, next, broker.consume("q", timeout=1))

    def test_settings(self) -> None:
        """Wrong settings are named at the start."""
        for options in ({"retry_s": 0}, {"ttl_s": "1"}, {"replicate": 0}, {"max_priority": 10}):
            arguments: Any = options
            self.assertRaises(ValueError, DisqueBroker, self.url, **arguments)

    def test_results(self) -> None:
        """A result can be read again and again."""
        backend = DisqueBackend(self.url)
        self.broker.add_middleware(Results(backend=backend))
        message = self.message(1)
        self.assertRaises(ResultMissing, backend.get_result, message)
        backend.store_result(message, {"a": [1]}, 60_000)
        for _ in range(2):
            self.assertEqual({"a": [1]}, backend.get_result(message))

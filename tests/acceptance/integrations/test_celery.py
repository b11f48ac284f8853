"""Celery on real nodes, with real workers."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

from kombu import Connection, Consumer, Exchange, Producer, Queue
from kombu.exceptions import OperationalError

import disque_tx.integrations.celery  # noqa: F401 -- registers disque://
from disque_tx.client.blocking import Disque
from tests.acceptance.cluster.fleet import Fleet
from tests.acceptance.daemon import DaemonTestCase, wait_for
from tests.acceptance.integrations.frameworks import FrameworkTestCase, kill, stop

_APP = """
import json
import disque_tx.integrations.celery
from celery import Celery
app = Celery("app", broker=os.environ["BROKER"])
options = json.loads(os.environ.get("OPTIONS", "{}"))
app.conf.broker_transport_options = {"retry": int(os.environ["RETRY"]), **options}
app.conf.task_ignore_result = True

@app.task
def note(text):
    report(text)

@app.task(acks_late=True)
def slow(text, wait_s):
    report("begun " + text)
    time.sleep(wait_s)
    report("done " + text)

@app.task(bind=True, max_retries=3)
def flaky(self):
    if self.request.retries < 2:
        raise self.retry(countdown=1)
    report(f"retries {self.request.retries}")
"""
_RETRY_S = 2


class WorkerTests(FrameworkTestCase):
    """One node, and prefork workers."""

    def setUp(self) -> None:
        super().setUp()
        self.node = self.running()
        self.variables["BROKER"] = f"disque://127.0.0.1:{self.node.port}"
        self.write("app", _APP)

    def worker(self, *options: str) -> subprocess.Popen[bytes]:
        """A worker with two processes."""
        words = ("-m", "celery", "-A", "app", "worker", "-c", "2", "-l", "INFO")
        return self.spawn(*words, "-n", f"{time.monotonic_ns()}@here", *options)

    def send(self, *calls: str) -> None:
        """Call tasks from another process."""
        self.run_program("import app\n" + "\n".join(f"app.{call}" for call in calls))

    def test_life(self) -> None:
        """Tasks are done, each once, now or after a countdown, and can be retried."""
        worker = self.worker()
        notes = [f"note.delay('{number}')" for number in range(50)]
        begun_s = time.monotonic()
        self.send(*notes, "note.apply_async(('later',), countdown=3)", "flaky.delay()")
        self.wait_reported(*map(str, range(50)), "later", "retries 2")
        self.assertGreater(time.monotonic() - begun_s, 2)
        self.assertEqual({1}, set(self.reported().values()))
        self.assertEqual(0, stop(worker), self.output())

    def test_long(self) -> None:
        """A task that takes several times RETRY is not begun again while its worker lives, with
        other workers beside it, however long it waited before."""
        self.shorten_retry()
        with Disque(f"127.0.0.1:{self.node.port}") as client:
            client.policy_set("*", {"retry-from": "delivery"})
        for _ in range(2):
            self.worker()
        self.send(*[f"slow.delay('{number}', {4 * _RETRY_S})" for number in range(3)])
        self.wait_reported(*[f"done {number}" for number in range(3)])
        self.assertEqual({1}, set(self.reported().values()))

    def test_killed(self) -> None:
        """The task of a worker that is killed is done by another one soon after RETRY."""
        self.shorten_retry()
        first = self.worker()
        self.send("slow.delay('x', 5)")
        self.wait_reported("begun x")
        self.worker()
        kill(first)
        self.wait_reported("done x")
        self.assertEqual(2, self.reported()["begun x"])

    def test_stopped(self) -> None:
        """A worker that stops finishes what it has begun, and gives the rest back at once."""
        first = self.worker("--prefetch-multiplier", "10")
        self.send(*[f"slow.delay('{number}', 1)" for number in range(12)])
        self.wait_reported("begun 0")
        self.assertEqual(0, stop(first), self.output())
        self.worker()
        self.wait_reported(*[f"done {number}" for number in range(12)])
        self.assertEqual({1}, set(self.reported().values()))

    def test_countdown_in_the_node(self) -> None:
        """A task for tomorrow waits in the node, not in a worker, and survives its restart."""
        self.worker()
        self.send("note.apply_async(('x',), countdown=86400)", "note.delay('now')")
        self.wait_reported("now")
        client = Disque(f"127.0.0.1:{self.node.port}")
        self.addCleanup(client.close)
        delays = [job.delay_s for job in client.job_scan() if job.state == "active"]
        self.assertEqual(1, sum(86_390 <= delay <= 86_400 for delay in delays))

    def test_expires(self) -> None:
        """A task that is too old is given up by a worker, which notes it, and not by the node,
        after which everybody would wait for its result in vain."""
        client = Disque(f"127.0.0.1:{self.node.port}")
        self.addCleanup(client.close)
        self.send("note.apply_async(('late',), expires=0.5)")
        time.sleep(2)
        self.assertEqual(1, client.queue_length("celery"))
        self.worker()
        self.send("note.delay('now')")
        self.wait_reported("now")
        self.assertNotIn("late", self.reported())
        self.assertIn("Discarding revoked task: app.note", self.output())

    def test_remote_control(self) -> None:
        """``celery inspect`` finds all workers, and a task can be revoked before it begins."""
        for _ in range(2):
            self.worker()
        ask = "import app, json; print(json.dumps(app.app.control.ping(timeout=2)))"
        wait_for(lambda: len(json.loads(self.run_program(ask))) == 2, "two workers answer")
        self.run_program(
            "import app\n"
            "result = app.note.apply_async(('revoked',), countdown=3)\n"
            "app.app.control.revoke(result.id)\n"
            "app.note.apply_async(('after',), countdown=5)\n"
        )
        self.wait_reported("after")
        self.assertNotIn("revoked", self.reported())

    def test_node_away(self) -> None:
        """A worker goes on by itself after its node was away."""
        self.worker()
        self.send("note.delay('before')")
        self.wait_reported("before")
        self.node.kill()
        self.node.start()
        self.send("note.delay('after')")
        self.wait_reported("after")


class MessageTests(DaemonTestCase):
    """kombu's own interface, without an event loop."""

    def setUp(self) -> None:
        self.node = self.running()
        self.url = f"disque://127.0.0.1:{self.node.port}"
        self.raw = Disque(f"127.0.0.1:{self.node.port}")
        self.addCleanup(self.raw.close)

    def connection(self, **options: Any) -> Any:
        """A connection that is closed after the test."""
        connection = Connection(self.url, transport_options=options)
        self.addCleanup(connection.release)
        return connection

    def received(self, connection: Any, queue: Any, count: int, **options: Any) -> list[Any]:
        """Bodies from a queue, each acknowledged, until there are ``count``."""
        bodies: list[Any] = []

        def take(body: Any, message: Any) -> None:
            bodies.append(body)
            if not options.get("no_ack"):
                message.ack()

        with Consumer(connection.channel(), [queue], callbacks=[take], **options):
            while len(bodies) < count:
                connection.drain_events(timeout=60)
        return bodies

    def test_priorities(self) -> None:
        """Among messages that wait, the most urgent is delivered first."""
        connection = self.connection()
        queue = Queue("q", Exchange("e"), routing_key="q")
        producer = Producer(connection.channel(), Exchange("e"), routing_key="q")
        for priority in (0, 5, 9, 3, 9, 7, 0):
            producer.publish(priority, priority=priority, declare=[queue])
        self.assertEqual([9, 9, 7, 5, 3, 0, 0], self.received(connection, queue, 7))

    def test_topic(self) -> None:
        """A message reaches all queues whose pattern matches, bound by whichever process."""
        exchange = Exchange("news", "topic")
        binding = self.connection()
        for name, pattern in (("all", "#"), ("sport", "sport.*"), ("art", "art.*")):
            Queue(name, exchange, routing_key=pattern).bind(binding.channel()).declare()
        other = self.connection()
        exchange.bind(other.channel()).declare()
        Producer(other.channel(), exchange).publish("goal", routing_key="sport.football")
        reading = self.connection()
        for name in ("all", "sport"):
            self.assertEqual(["goal"], self.received(reading, Queue(name), 1))
        self.assertEqual(0, self.raw.queue_length("art"))

    def test_fanout(self) -> None:
        """A broadcast reaches every queue once."""
        exchange = Exchange("all", "fanout")
        for name in ("a", "b"):
            Queue(name, exchange).bind(self.connection().channel()).declare()
        sending = self.connection()
        exchange.bind(sending.channel()).declare()
        Producer(sending.channel(), exchange).publish("x")
        self.assertEqual([1, 1], [self.raw.queue_length(name) for name in ("a", "b")])

    def test_unbound(self) -> None:
        """A queue that was unbound gets no more messages."""
        exchange = Exchange("e", "topic")
        connection = self.connection()
        queue = Queue("q", exchange, routing_key="x").bind(connection.channel())
        queue.declare()
        queue.unbind_from(exchange, routing_key="x")
        other = self.connection()
        exchange.bind(other.channel()).declare()
        Producer(other.channel(), exchange).publish("lost", routing_key="x")
        self.assertEqual(0, self.raw.queue_length("q"))

    def test_requeued(self) -> None:
        """A message that is requeued comes back at once, and says so; one that is rejected does
        not come back."""
        connection = self.connection()
        simple = connection.SimpleQueue("q")
        simple.put("x")
        first = simple.get(timeout=60)
        self.assertFalse(first.delivery_info.get("redelivered"))
        first.requeue()
        second = simple.get(timeout=60)
        self.assertTrue(second.delivery_info.get("redelivered"))
        second.reject()
        self.assertEqual([], list(self.raw.job_scan("q", ("queued", "active"))))
        simple.close()

    def test_prefetch(self) -> None:
        """A consumer holds no more messages than its limit; closed, it gives them back at once."""
        connection = self.connection(retry=600)
        channel = connection.channel()
        producer = Producer(channel)
        queue = Queue("q")
        for number in range(10):
            producer.publish(number, routing_key="q")
        held: list[Any] = []
        channel.basic_qos(0, 3, False)
        consumer = Consumer(channel, [queue], callbacks=[lambda _, message: held.append(message)])
        consumer.consume()
        while len(held) < 3:
            connection.drain_events(timeout=60)
        self.assertRaises(TimeoutError, connection.drain_events, timeout=0.5)
        self.assertEqual((3, 7), (len(held), self.raw.queue_length("q")))
        channel.close()
        self.assertEqual(10, self.raw.queue_length("q"))

    def test_other_queues(self) -> None:
        """A channel that waited at one queue in vain takes messages of the next one at once, as a
        program does that asks its workers twice."""
        connection = self.connection()
        channel = connection.channel()
        bodies: list[Any] = []
        for name in ("first", "second"):
            queue = Queue(name, channel=channel)
            queue.declare()
            with Consumer(channel, [queue], on_message=lambda m: bodies.append(m.payload)):
                self.assertRaises(TimeoutError, connection.drain_events, timeout=0.1)
                Producer(connection.channel()).publish(name, routing_key=name)
                connection.drain_events(timeout=5)
                self.assertRaises(TimeoutError, connection.drain_events, timeout=0.1)
        self.assertEqual(["first", "second"], bodies)

    def test_no_ack(self) -> None:
        """A consumer that does not acknowledge gets each message once."""
        connection = self.connection(retry=1)
        Producer(connection.channel()).publish("x", routing_key="q")
        self.assertEqual(["x"], self.received(connection, Queue("q"), 1, no_ack=True))
        self.assertEqual([], self.raw.take("q", timeout_s=3))

    def test_purged(self) -> None:
        """A queue that is purged is empty, and the number of its messages is returned."""
        connection = self.connection()
        channel = connection.channel()
        for number in range(12):
            Producer(channel).publish(number, routing_key="q", priority=number % 3)
        queue = Queue("q").bind(channel)
        self.assertEqual(12, queue.queue_declare(passive=True).message_count)
        self.assertEqual(12, queue.purge())
        self.assertEqual(0, queue.queue_declare(passive=True).message_count)

    def test_damaged(self) -> None:
        """A job that is no message becomes a dead letter with the reason, and others go on."""
        for body in (b"\xff", b"[]", b'{"body": 1}', b"[" * 100_000):
            self.raw.add_job("q", body)
        connection = self.connection()
        Producer(connection.channel()).publish("fine", routing_key="q")
        self.assertEqual(["fine"], self.received(connection, Queue("q"), 1))
        letters = self.raw.queue_peek("dead:q", 10)
        self.assertEqual(4, len(letters))
        self.assertIn("no message", json.loads(letters[0].body)["reason"])
        self.assertEqual(0, self.raw.queue_length("q"))

    def test_expired(self) -> None:
        """A message with a limited life is gone after it."""
        connection = self.connection()
        producer = Producer(connection.channel())
        for life in (5, None):
            producer.publish(f"lives for {life}", routing_key="q", expiration=life)
        first, second = [job.id for job in self.raw.queue_peek("q", 10)]
        wait_for(lambda: self.raw.show(first) is None, "the message expires")
        self.assertEqual([second], [job.id for job in self.raw.queue_peek("q", 10)])
        self.assertEqual(["lives for None"], self.received(connection, Queue("q"), 1))

    def test_away(self) -> None:
        """A cluster that is away is an OperationalError, as with any broker."""
        self.node.kill()
        connection = Connection(self.url, connect_timeout=0.2)
        with self.assertRaises(OperationalError):
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)

    def test_next_url(self) -> None:
        """With several URLs, the next one is used while nobody answers at the first."""
        connection = Connection(["disque://127.0.0.1:1", self.url], connect_timeout=0.2)
        self.addCleanup(connection.release)
        queue = Queue("next")
        connection.ensure_connection(max_retries=3, interval_start=0, interval_step=0)
        Producer(connection.channel()).publish("x", routing_key="next", declare=[queue])
        self.assertEqual(["x"], self.received(connection, queue, 1))


class ClusterTests(FrameworkTestCase):
    """Three nodes, of which one is killed."""

    def test_node_killed(self) -> None:
        """Tasks with copies are all done although a node dies with them."""
        self.shorten_retry()
        fleet = Fleet(3)
        self.addCleanup(fleet.discard)
        fleet.start()
        nodes = ",".join(f"{node.ip}:{node.port}" for node in fleet.nodes)
        self.variables["BROKER"] = f"disque://{nodes}"
        self.variables["OPTIONS"] = '{"replicate": 2}'
        self.write("app", _APP)
        words = ("-m", "celery", "-A", "app", "worker", "-c", "2", "-l", "INFO")
        self.spawn(*words, "-n", "one@here")
        sent = "\n".join(f"app.slow.delay('{number}', 0.1)" for number in range(60))
        self.run_program(f"import app\n{sent}")
        self.wait_reported("begun 5")
        fleet.nodes[1].kill()
        self.wait_reported(*[f"done {number}" for number in range(60)])

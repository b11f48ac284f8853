"""Celery's transport and results on a node, as kombu and Celery use them."""

from __future__ import annotations

import logging
import socket
from typing import Any

from celery import Celery
from celery.exceptions import ImproperlyConfigured
from kombu import Connection, Consumer, Exchange, Queue
from twisted.internet.task import Clock

from disque_tx import __version__
from disque_tx.client.errors import CannotConnect, Refused
from disque_tx.integrations.celery.bindings import Bindings
from disque_tx.integrations.celery.results import DisqueBackend
from tests.acceptance.daemon import free_port
from tests.cli.livenode import VerbCase

_TRANSPORT = "disque_tx.integrations.celery.transport:Transport"


class NodeCase(VerbCase):
    """A connection of kombu to a node."""

    def setUp(self) -> None:
        super().setUp()
        logging.disable()  # of jobs that become dead letters
        self.addCleanup(logging.disable, logging.NOTSET)
        self.connection = self.connected()
        self.channel = self.connection.channel()

    def connected(self) -> Connection:
        """Another connection."""
        connection = Connection(f"disque://{self.node.address}", transport=_TRANSPORT)
        self.addCleanup(connection.release)
        return connection

    def send(self, body: str, **words: Any) -> None:
        """Publish a message."""
        self.connection.Producer(self.channel).publish(body, **words)

    def bodies(self, queue: str) -> list[Any]:
        """Take all messages of a queue, and acknowledge them."""
        found = []
        while (message := self.channel.basic_get(queue)) is not None:
            found.append(message.body if isinstance(message.body, str) else message.body.decode())
            message.ack()
        return found

    def option(self, queue: str, name: bytes) -> Any:
        """What the job of a queue was added with."""
        ((_, job_id, _),) = self.call("QPEEK", queue, 9)
        shown = self.call("SHOW", job_id)
        return shown[shown.index(name) + 1]


class QueueTests(NodeCase):
    """Queues and exchanges."""

    def test_counted(self) -> None:
        """A queue knows how many messages wait in it, of all priorities; purging tells how many
        there were."""
        queue = Queue("q", routing_key="q")(self.channel)
        queue.declare()
        for number, priority in enumerate((0, 9, 3)):
            self.send(str(number), routing_key="q", priority=priority)
        self.assertEqual(3, queue.queue_declare(passive=False).message_count)
        self.assertEqual((3, 0), (queue.purge(), queue.purge()))

    def test_priorities(self) -> None:
        """Urgent messages come first."""
        Queue("q", routing_key="q")(self.channel).declare()
        for number, priority in enumerate((0, 9, 3)):
            self.send(str(number), routing_key="q", priority=priority)
        self.assertEqual(["1", "2", "0"], self.bodies("q"))

    def test_ttl(self) -> None:
        """The time that a declaration gives to messages is theirs, in whole seconds, one at
        least; other values are nobody's."""
        for ttl_ms, seconds in ((90_500, 91), (90_000, 90), (0, 1)):
            name = f"q{ttl_ms}"
            arguments = {"x-message-ttl": ttl_ms}
            Queue(name, routing_key=name, queue_arguments=arguments)(self.channel).declare()
            self.send("x", routing_key=name)
            self.assertIn(self.option(name, b"ttl"), (seconds, seconds - 1))
        Queue("n", routing_key="n", queue_arguments={"x-message-ttl": -1})(self.channel).declare()
        self.send("x", routing_key="n")
        self.assertGreater(self.option("n", b"ttl"), 1_000)

    def test_topics(self) -> None:
        """A message goes to each queue that is bound to its topic, also by another process."""
        exchange = Exchange("news", "topic")
        bound = [
            Queue("sport", exchange, routing_key="sport.#")(self.channel),
            Queue("all", exchange, routing_key="#")(self.channel),
        ]
        for queue in bound:
            queue.declare()
        other = self.connected().channel()
        exchange(other).declare()
        producer = self.connection.Producer(other)
        producer.publish("goal", exchange=exchange, routing_key="sport.today")
        producer.publish("vote", exchange=exchange, routing_key="home")
        self.assertEqual(["goal"], self.bodies("sport"))
        self.assertEqual(["goal", "vote"], self.bodies("all"))

    def test_unbound(self) -> None:
        """A queue that is unbound gets no more messages, neither of this program nor of others, and
        keeps its other bindings; one that is deleted gets none either."""
        exchange = Exchange("news", "topic")
        sport = Queue("sport", exchange, routing_key="sport.#")(self.channel)
        whole = Queue("all", exchange, routing_key="#")(self.channel)
        for queue in (sport, whole):
            queue.declare()
        sport.bind_to(exchange, routing_key="games.#")
        sport.unbind_from(exchange, routing_key="sport.#")
        for topic in ("sport.today", "games.today"):
            self.send(topic, exchange=exchange, routing_key=topic)
        self.assertEqual(["games.today"], self.bodies("sport"))
        self.assertEqual(["sport.today", "games.today"], self.bodies("all"))
        self.channel.queue_delete("all")
        self.send("left", exchange=exchange, routing_key="home")
        self.assertEqual((0, 0), (self.length("all"), self.length("sport")))
        ((key, _, queue),) = self.channel.broker.bindings.table("news", fresh=True)
        self.assertEqual(("games.#", "sport"), (key, queue))

    def test_known(self) -> None:
        """Bindings of this program are known to it at once, and those of others after five seconds:
        nodes are not asked for each message."""
        clock = Clock()
        mine, other = (
            Bindings(self.client, "", None, clock.seconds),
            Bindings(self.client, "", 1, clock.seconds),
        )
        self.assertEqual([], mine.table("e"))
        mine.add("e", ("k", None, "a"), durable=True)
        self.assertEqual([("k", None, "a")], mine.table("e"))
        other.add("e", ("k", None, "b"), durable=True)
        clock.advance(4.9)
        self.assertEqual([("k", None, "a")], mine.table("e"))
        self.assertEqual(2, len(mine.table("e", fresh=True)))
        other.remove("e", "b")
        other.remove("e", "a", "another key")
        clock.advance(5)
        self.assertEqual([("k", None, "a")], mine.table("e"))
        mine.remove("e", "a")
        self.assertEqual([], mine.table("e"))

    def test_asked_seldom(self) -> None:
        """Nodes are not asked for bindings with each message to a queue that is bound; they are
        where none is known to be, because another program may have bound one."""
        exchange = Exchange("news", "direct")
        Queue("sport", exchange, routing_key="sport")(self.channel).declare()
        other = self.connected().channel()
        exchange(other).declare()
        producer = self.connection.Producer(other)
        producer.publish("first", exchange=exchange, routing_key="sport")
        before = self.peeks()
        for _ in range(3):
            producer.publish("more", exchange=exchange, routing_key="sport")
        self.assertEqual(before, self.peeks())
        producer.publish("lost", exchange=exchange, routing_key="home")
        self.assertGreater(self.peeks(), before)
        self.assertEqual(["first", *["more"] * 3], self.bodies("sport"))

    def peeks(self) -> str:
        """How often the node was asked for bindings."""
        return self.client.info("commandstats").get("cmdstat_qpeek", "calls=0").split(",")[0]

    def test_passing(self) -> None:
        """A binding that ends with its process is not made again after it was removed, and others
        of that queue are."""
        bindings = self.channel.broker.bindings
        kept, gone = ("k", None, "a"), ("other", None, "a")
        for binding in (kept, gone):
            bindings.add("e", binding, durable=False)
        bindings.remove("x", "a")
        bindings.remove("e", "b")
        bindings.remove("e", "a", "other")
        self.assertEqual({("e", kept)}, bindings._passing)
        self.assertEqual([kept], bindings.table("e"))

    def test_fanout(self) -> None:
        """Each queue of a fanout exchange gets a message once; bindings of queues that end with
        their process are kept for a minute only."""
        exchange = Exchange("all", "fanout")
        Queue("a", exchange)(self.channel).declare()
        Queue("b", exchange, auto_delete=True)(self.channel).declare()
        self.send("x", exchange=exchange)
        self.assertEqual((["x"], ["x"]), (self.bodies("a"), self.bodies("b")))
        kept = {}
        for _, job_id, body in self.call("QPEEK", "kombu:bindings:all", 9):
            shown = self.call("SHOW", job_id)
            options = [shown[shown.index(name) + 1] for name in (b"retry", b"ttl", b"repl")]
            kept[b'"b"' in body] = options
        self.assertEqual([0, 1], [kept[True][0], kept[True][2]])
        self.assertTrue(50 < kept[True][1] <= 60)
        self.assertEqual(10, kept[False][0])
        self.assertApproximates(10 * 365 * 86_400, kept[False][1], 60)

    def test_bound_again(self) -> None:
        """A queue that is declared by each process has one binding, and strange jobs among the
        bindings are none."""
        exchange = Exchange("e", "direct")
        self.add("kombu:bindings:e", "no JSON", '["k", 5, "q"]', '[5, null, "q"]', '["k", null]')
        for _ in range(2):
            Queue("q", exchange, routing_key="k")(self.channel).declare()
        table = self.channel.broker.bindings.table("e", fresh=True)
        self.assertEqual([("k", None, "q")], [(key, None, queue) for key, _, queue in table])
        self.assertEqual(5, self.length("kombu:bindings:e"))


class DeliveryTests(NodeCase):
    """Messages to consumers."""

    def setUp(self) -> None:
        super().setUp()
        self.queue = Queue("q", routing_key="q")(self.channel)
        self.queue.declare()
        self.found: list[Any] = []

    def drain(self, count: int) -> list[Any]:
        """Wait for so many messages."""
        while len(self.found) < count:
            self.connection.drain_events(timeout=30)
        return self.found

    def test_prefetch(self) -> None:
        """A consumer gets as many messages as it may hold, and the next when it has acknowledged
        them, all at once if it likes."""
        for number in range(5):
            self.send(str(number), routing_key="q")
        self.channel.basic_qos(0, 2, False)
        with Consumer(self.channel, [self.queue], on_message=self.found.append):
            self.drain(2)
            self.assertRaises(socket.timeout, self.connection.drain_events, timeout=0.05)
            self.assertEqual(2, len(self.found))
            self.found[1].ack(multiple=True)
            self.assertEqual({}, self.channel._taken)
            self.drain(4)
        self.assertEqual([b"0", b"1", b"2", b"3"], [message.body for message in self.found])
        self.assertFalse(self.found[0].properties.get("redelivered", False))

    def test_redelivered(self) -> None:
        """A message that was given back is known as such when it comes again."""
        self.send("x", routing_key="q")
        first = self.channel.basic_get("q")
        self.assertFalse(first.delivery_info.get("redelivered", False))
        first.requeue()
        again = self.channel.basic_get("q")
        self.assertTrue(again.delivery_info["redelivered"])
        self.assertEqual(first.delivery_tag, again.delivery_tag)
        self.channel.basic_recover(requeue=True)
        self.assertEqual(1, self.length("q"))
        self.assertRaises(NotImplementedError, self.channel.basic_recover)

    def test_damaged(self) -> None:
        """A job that is no message becomes a dead letter that says so, and the next one is
        delivered."""
        self.add("q", b"\xff")
        self.send("x", routing_key="q")
        self.assertEqual(["x"], self.bodies("q"))
        status, output, _ = self.disque("dead", "list", "q", "--json")
        self.assertEqual(0, status)
        self.assertIn("This is no message of kombu", output)
        self.assertIn(b'"worker": "celery"', self.call("QPEEK", "dead:q", 1)[0][2])
        self.assertApproximates(30 * 86_400, self.option("dead:q", b"ttl"), 60)
        self.assertEqual(60, self.option("dead:q", b"retry"))

    def test_unacknowledged(self) -> None:
        """Without acknowledgements a message is done when it is taken."""
        self.send("x", routing_key="q")
        self.assertEqual(b"x", self.channel.basic_get("q", no_ack=True).body)
        self.assertEqual(0, int(self.client.info()["registered_jobs"]))


class TransportTests(NodeCase):
    """The connection."""

    def test_properties(self) -> None:
        """What kombu asks of a connection is answered, and passwords are not shown."""
        transport = self.connection.transport
        self.assertIs(True, transport.verify_connection(None))
        self.assertEqual(__version__, transport.driver_version())
        url = Connection("disque://:secret@a.example:1", transport=_TRANSPORT)
        self.assertEqual("disque://:**@a.example:1", url.as_uri())
        self.assertIn("secret", url.as_uri(include_password=True))
        can = transport.implements
        self.assertTrue(can.asynchronous)
        self.assertEqual({"direct", "topic", "fanout"}, set(can.exchange_type))
        self.assertFalse(self.channel.do_restore)
        self.assertTrue(self.channel.supports_fanout)

    def test_away(self) -> None:
        """A node that is away is an error of the connection, which Celery survives; a refusal is
        one of the channel."""
        url = f"disque://127.0.0.1:{free_port()}"
        away = Connection(url, transport=_TRANSPORT, connect_timeout=0.1)
        self.addCleanup(away.release)
        self.assertRaises(CannotConnect, away._establish_connection)
        kinds = self.connection.transport
        self.assertIn(CannotConnect, kinds.connection_errors)
        self.assertIn(Refused, kinds.channel_errors)
        self.assertNotIn(Refused, kinds.connection_errors)


class ResultTests(NodeCase):
    """Results of tasks."""

    def backend(self, expires: Any = 77, **options: Any) -> DisqueBackend:
        """A backend of an application with these options."""
        app = Celery("app", set_as_current=False)
        app.conf.result_backend_transport_options = options
        backend = DisqueBackend(app, f"disque://{self.node.address}", expires=expires)
        self.addCleanup(backend._results._client.close)
        return backend

    def test_values(self) -> None:
        """Values are kept for their time, newer ones in front of older ones, until they are
        deleted."""
        backend = self.backend(queue_name_prefix="app:")
        for value in ("old", b"new"):
            backend.set(b"key", value)
        self.assertEqual(b"new", backend.get("key"))
        self.assertEqual([b"new", None], backend.mget(["key", b"other"]))
        ((_, job_id, _), _) = self.call("QPEEK", "app:key", 9)
        shown = self.call("SHOW", job_id)
        self.assertTrue(70 < shown[shown.index(b"ttl") + 1] <= 77)
        backend.delete("key")
        self.assertEqual((None, 0), (backend.get("key"), self.length("app:key")))

    def test_forever(self) -> None:
        """A result without an end, or with one that no node can wait for, is kept for ten years."""
        ten_years_s = 10 * 365 * 86_400
        for expires in (0, ten_years_s + 1, 2**40):
            self.backend(expires).set(f"k{expires}", "x")
            ttl_s = self.option(f"k{expires}", b"ttl")
            self.assertTrue(ten_years_s - 60 < ttl_s <= ten_years_s, (expires, ttl_s))

    def test_options(self) -> None:
        """Options of others are left to these; unknown ones are refused with those that there
        are."""
        self.backend(retry_policy={}, global_keyprefix="x", replicate=1).set("k", "x")
        error = self.assertRaises(ImproperlyConfigured, self.backend, retries=1)
        expected = (
            "The results have no transport option 'retries'. They have replicate,"
            " queue_name_prefix."
        )
        self.assertEqual(expected, str(error))
        error = self.assertRaises(ImproperlyConfigured, self.backend, replicate=0)
        self.assertTrue(str(error).startswith("result_backend: "), error)

    def test_errors(self) -> None:
        """Celery tries again when the node is away, and does not when it refuses."""
        backend = self.backend()
        self.assertTrue(backend.exception_safe_to_retry(CannotConnect({})))
        self.assertFalse(backend.exception_safe_to_retry(ValueError()))
        self.assertEqual(f"disque://{self.node.address}", backend.as_uri())

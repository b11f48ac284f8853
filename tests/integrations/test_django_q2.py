"""Django-Q2's broker on a node: what each of its operations answers, and what it leaves."""

from __future__ import annotations

from typing import Any

from django.conf import settings

if not settings.configured:
    settings.configure(USE_TZ=True)

from django.core.exceptions import ImproperlyConfigured
from django_q.conf import Conf

from disque_tx.integrations.django_q2 import DisqueBroker
from tests.cli.livenode import VerbCase


class BrokerTests(VerbCase):
    """One node, on which a broker has the queue ``shop``."""

    def setUp(self) -> None:
        super().setUp()
        self.patch(Conf, "RETRY", 300)
        self.patch(Conf, "BULK", 2)
        self.broker = self.configured()

    def configured(self, **changes: Any) -> DisqueBroker:
        """A broker with these settings."""
        self.patch(Conf, "conf", {"disque_nodes": [self.node.address], **changes})
        broker = DisqueBroker("shop")
        self.addCleanup(broker.connection.close)
        return broker

    def option(self, job_id: str, name: bytes) -> Any:
        """What a job was added with."""
        shown = self.call("SHOW", job_id)
        return shown[shown.index(name) + 1]

    def test_terms(self) -> None:
        """A task comes back after the time of the settings, and is kept for ten days; how many
        nodes have it is a setting, too."""
        job_id = self.broker.enqueue("task")
        self.assertEqual(300, self.option(job_id, b"retry"))
        self.assertApproximates(10 * 86_400, self.option(job_id, b"ttl"), 5)
        job_id = self.configured(disque_replicate=1).enqueue("task")
        self.assertEqual(1, self.option(job_id, b"repl"))
        self.patch(Conf, "RETRY", 0)
        self.assertRaises(ImproperlyConfigured, self.broker.enqueue, "task")

    def test_life(self) -> None:
        """Tasks are handed out as many at a time as the settings say, as text, and count as locked
        until they are acknowledged."""
        added = [self.broker.enqueue(text) for text in ("a", "b", "c")]
        self.add("shop", b"\xff")
        self.assertEqual((4, 0), (self.broker.queue_size(), self.broker.lock_size()))
        taken = self.broker.dequeue()
        self.assertEqual([(added[0], "a"), (added[1], "b")], taken)
        self.assertEqual((2, 2), (self.broker.queue_size(), self.broker.lock_size()))
        self.assertIs(True, self.broker.acknowledge(added[0]))
        self.assertIs(False, self.broker.acknowledge(added[0]))
        self.assertIs(True, self.broker.fail(added[1]))
        self.assertIs(False, self.broker.fail(added[1]))
        self.assertEqual(0, self.broker.lock_size())
        rest = self.broker.dequeue() or []
        self.assertEqual(["c", "\ufffd"], [text for _, text in rest])
        self.assertIs(True, self.broker.delete(added[2]))
        self.patch(self.broker, "list_key", "empty")
        self.assertEqual(None, self.broker.dequeue())

    def test_fast(self) -> None:
        """Who wants FASTACK gets it."""
        for fast, commands in ((False, "1 0"), (True, "0 1")):
            broker = self.configured(disque_fastack=fast)
            before = self.counted()
            self.assertIs(True, broker.acknowledge(broker.enqueue("x")))
            self.assertIs(False, broker.acknowledge("D-aaaaaaaa-" + "0" * 24 + "-05a1"))
            after = self.counted()
            spent = [(last - first) // 2 for first, last in zip(before, after, strict=True)]
            self.assertEqual(commands, " ".join(map(str, spent)))

    def counted(self) -> list[int]:
        """How often a node was asked for ACKJOB, and for FASTACK."""
        stats = self.client.info("commandstats")
        found = [stats.get(f"cmdstat_{name}", "calls=0") for name in ("ackjob", "fastack")]
        return [int(text.split(",")[0].removeprefix("calls=")) for text in found]

    def test_purge(self) -> None:
        """All tasks are removed, and their number is told, however many there are."""
        for number in range(501):
            self.broker.enqueue(str(number))
        self.add("other", "x")
        self.assertEqual(501, self.broker.purge_queue())
        self.assertEqual((0, 0), (self.broker.queue_size(), self.broker.purge_queue()))
        self.broker.enqueue("x")
        self.assertEqual((1, 1), (self.broker.delete_queue(), self.length("other")))

    def test_server(self) -> None:
        """The server answers, and says what it is."""
        self.assertIs(True, self.broker.ping())
        self.assertEqual("Disque 1.0-rc1", self.broker.info())

    def test_settings(self) -> None:
        """Settings that cannot be used are refused when the broker is made, with their name."""
        for changes, said in (
            ({"disque_nodes": ["no address:x"]}, "Q_CLUSTER['disque_nodes']: "),
            ({"disque_replicate": 0}, "Q_CLUSTER: replicate is a whole number from 1 to "),
        ):
            self.patch(Conf, "conf", changes)
            error = self.assertRaises(ImproperlyConfigured, DisqueBroker.get_connection)
            self.assertTrue(str(error).startswith(said), error)
        self.patch(Conf, "conf", {"disque_nodes": None})
        client = DisqueBroker.get_connection()
        self.addCleanup(client.close)
        self.assertIn("127.0.0.1:7711", repr(client))

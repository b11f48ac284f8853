"""``disque import beanstalkd``, and the client of beanstalkd that it uses."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.verbs.imports.beanstalk import Beanstalk
from disque_tx.commands.direct import DirectNode
from disque_tx.protocols.beanstalk.connection import BeanstalkConnection
from disque_tx.protocols.beanstalk.tubes import Tubes
from disque_tx.services.clients.direct import DirectFactory
from disque_tx.worker.settling.deadletters import Letter
from tests.cli.livenode import LiveNode, VerbCase


class TubeServer:
    """A node that serves beanstalkd's protocol. ``client``: a connection to it."""

    def __init__(self) -> None:
        self._node = LiveNode(self._listen)
        self.address = f"127.0.0.1:{self.port}"
        self.client = Beanstalk(self.address)

    def stop(self) -> None:
        """No more clients."""
        self.client.close()
        self._node.stop()

    def put(self, tube: str, body: str, priority: int = 2000, delay_s: int = 0) -> None:
        """A job of a tube."""
        self.client._expect(f"use {tube}", "USING")
        self.client._expect(f"put {priority} {delay_s} 60 {len(body)}\r\n{body}", "INSERTED")

    def _listen(self, node: LiveNode) -> None:
        """A listener, before the node starts."""
        running = node.node
        direct = DirectNode(running.server, running.runtime.dispatcher)
        tubes = Tubes(direct, running.settings, node.reactor.callLater)
        factory = DirectFactory(
            running.runtime,
            running.admission,
            b"beanstalk",
            lambda: BeanstalkConnection(tubes),
            b"INTERNAL_ERROR\r\n",
        )
        listening = node.reactor.listenTCP(0, factory, interface="127.0.0.1")
        self.port: int = listening.getHost().port


class BeanstalkTests(SynchronousTestCase):
    """The client, with jobs in two tubes."""

    def setUp(self) -> None:
        server = TubeServer()
        self.addCleanup(server.stop)
        self.client = server.client
        server.put("default", "a", 10)
        server.put("mail", "b", 10)

    def test_this_tube_only(self) -> None:
        """An import takes the jobs of the tube that it was told, and of no other."""
        self.client.use("mail")
        found = self.client.reserve()
        assert found is not None
        self.assertEqual(b"b", found.body)
        self.assertIsNone(self.client.reserve())
        self.assertEqual(["default", "mail"], self.client.tubes())

    def test_life(self) -> None:
        """A job is seen, taken, given back, and gone after its move."""
        self.client.use("mail")
        seen = self.client.peek("ready")
        found = self.client.reserve()
        assert found is not None
        self.assertEqual(seen, found)
        stats = self.client.job_stats(found.id)
        assert stats is not None
        self.assertEqual(("10", "reserved"), (stats["pri"], stats["state"]))
        self.client.release(found.id, 7)
        stats = self.client.job_stats(found.id)
        assert stats is not None
        self.assertEqual(("7", "ready"), (stats["pri"], stats["state"]))
        self.assertTrue(self.client.delete(found.id))
        self.assertFalse(self.client.delete(found.id))
        self.assertIsNone(self.client.job_stats(found.id))
        figures = self.client.tube_stats("mail")
        assert figures is not None
        self.assertEqual("0", figures["current-jobs-ready"])


class ImportTests(VerbCase):
    """The program, from one node with tubes to another one."""

    def setUp(self) -> None:
        super().setUp()
        self.server = TubeServer()
        self.addCleanup(self.server.stop)

    def run_import(self, *words: str) -> tuple[int, str, str]:
        """Run the program to its end."""
        return self.disque("import", "beanstalkd", self.server.address, *words)

    def bodies(self, queue: str) -> list[bytes]:
        """The bodies of all jobs of a queue, in their order."""
        return [job.data for job in self.client.take(queue, count=100, no_hang=True)]

    def test_moved(self) -> None:
        """Jobs are moved in the order of their priorities, a delayed one keeps its delay, a buried
        one becomes a dead letter, and none of them stays."""
        for body, priority in (("later", 3), ("sooner", 2), ("buried", 1)):
            self.server.put("mail", body, priority)
        self.server.put("mail", "delayed", delay_s=3600)
        found = self.server.client
        found.use("mail")
        buried = found.reserve()
        assert buried is not None
        found._call(f"bury {buried.id} 1")
        self.assertEqual((0, "", "4 jobs moved, 0 left\n"), self.run_import())
        self.assertEqual([b"sooner", b"later"], self.bodies("mail"))
        (letter,) = map(Letter.decoded, self.bodies("dead:mail"))
        self.assertEqual((b"buried", "mail"), (letter.body, letter.queue))
        self.assertEqual(1, self.client.queue_counts("mail").counts.delayed)
        self.assertIsNone(found.peek("delayed"))
        self.assertIsNone(found.peek("buried"))

    def test_buried(self) -> None:
        """A buried job waits a month for people, with all that is needed to put it back into its
        queue, and with how often it has failed."""
        self.server.put("mail", "buried", 1)
        found = self.server.client
        found.use("mail")
        for _ in range(2):
            taken = found.reserve()
            assert taken is not None
            found.release(taken.id, 1)
        taken = found.reserve()
        assert taken is not None
        found._call(f"bury {taken.id} 1")
        self.assertEqual(0, self.run_import("--ttl", "7000", "--to", "all")[0])
        (job,) = self.client.take("dead:all", no_hang=True)
        details = self.client.show(job.id)
        assert details is not None
        self.assertEqual(30 * 86_400, details.ttl_s)
        letter = Letter.decoded(job.data)
        expected = ("all", f"beanstalkd:mail:{taken.id}", "It was buried in beanstalkd.", 60, 7000)
        shown = (letter.queue, letter.id, letter.reason, letter.retry_s, letter.ttl_s)
        self.assertEqual(expected, shown)
        self.assertEqual(2, letter.nacks)

    def test_refused(self) -> None:
        """A job that is not taken here goes back to its tube as it was, for the workers there, and
        the others are not touched."""
        self.server.put("mail", "second", 20)
        self.server.put("mail", "first", 10)
        self.call("PAUSE", "mail", "in")
        status, _, error = self.run_import("--tube", "mail")
        self.assertEqual((1, 0), (status, self.length("mail")))
        self.assertIn("PAUSED", error)
        client = self.server.client
        client.use("mail")
        found = client.peek("ready")
        assert found is not None
        stats = client.job_stats(found.id)
        assert stats is not None
        self.assertEqual((b"first", "10", "ready"), (found.body, stats["pri"], stats["state"]))
        figures = client.tube_stats("mail")
        assert figures is not None
        self.assertEqual("2", figures["current-jobs-ready"])

    def test_choice(self) -> None:
        """An import takes the tubes that it was told, and urgent jobs go where they were sent."""
        self.server.put("mail", "urgent", 1023)
        self.server.put("mail", "plain", 1024)
        self.server.put("other", "stays")
        words = ("--tube", "mail", "--to", "all", "--urgent-to", "urgent")
        self.assertEqual((0, "", "2 jobs moved, 0 left\n"), self.run_import(*words))
        self.assertEqual([[b"urgent"], [b"plain"]], [*map(self.bodies, ("urgent", "all"))])
        figures = self.server.client.tube_stats("other")
        assert figures is not None
        self.assertEqual("1", figures["current-jobs-ready"])

    def test_dry_run(self) -> None:
        """Without moving anything it is shown what would be moved, and what would stay and why."""
        self.server.put("mail", "a")
        self.server.put("mail", "b")
        self.server.client.use("mail")
        self.server.client.reserve()
        status, output, error = self.run_import("--dry-run", "--tube", "mail")
        self.assertEqual((0, "1 job would be moved, 1 left\n"), (status, error))
        reason = "reserved: workers have them; import again when they are done"
        self.assertEqual(f"left\tmail\t1 job\t{reason}\n", output)
        self.assertEqual(0, self.length("mail"))

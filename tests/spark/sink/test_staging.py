"""Staged jobs are made visible exactly once, or removed."""

from __future__ import annotations

from disque_tx.spark.errors import WriteRefused
from disque_tx.spark.sink.staging import discard_staged, publish, withdraw
from tests.client.scripted import DIE, HANG_UP, ScriptedNode, array, bulk
from tests.spark.nodes import IDS, NIL, NodesTestCase, address_of, shown

_QUEUE = bulk("staged:q")
_STAGED = [shown(job_id, queue=_QUEUE, state=bulk("queued")) for job_id in IDS]
_ACKED = [shown(job_id, queue=_QUEUE, state=bulk("acked")) for job_id in IDS]


class RemovalTests(NodesTestCase):
    """Jobs of a write that failed or was killed."""

    def test_withdraw(self) -> None:
        """Staged jobs are removed on all holders, by ACKJOB."""
        node = self.node(ACKJOB=b":1\r\n")
        withdraw(self.servers(node), {address_of(node): {b"q": IDS[:1]}})
        self.assertEqual([[b"ACKJOB", IDS[0].encode()]], node.requests)

    def test_discard(self) -> None:
        """The jobs of a killed write are found page by page, each once, in their own queue only."""
        page = array(bulk("7"), array(_STAGED[0], _STAGED[1]))
        last = array(bulk("0"), array(_STAGED[0]))
        node = self.node(JSCAN=[page, last], ACKJOB=b":1\r\n")
        self.assertEqual(2, discard_staged(node.address, "q"))
        self.assertEqual(["JSCAN", "JSCAN", "ACKJOB", "ACKJOB"], node.commands())
        self.assertIn(b"staged:q", node.requests[0])


class PublishingTests(NodesTestCase):
    """The requests that make jobs visible."""

    def show(self, *nodes: ScriptedNode, jobs: int = 1) -> None:
        """Make jobs visible that were added on the first of the nodes."""
        staged = {address_of(nodes[0]): {b"q": IDS[:jobs]}}
        publish(self.servers(*nodes), staged, self.time.sleep)

    def refusal(self, *nodes: ScriptedNode, jobs: int = 1) -> str:
        """The error when not all jobs can be made visible."""
        with self.assertRaises(WriteRefused) as raised:
            self.show(*nodes, jobs=jobs)
        return str(raised.exception)

    def test_all(self) -> None:
        """The jobs are moved on the nodes on which they were added, many at once."""
        one, other = self.node(QMOVE=b":2\r\n"), self.node(QMOVE=b":1\r\n")
        staged = {address_of(one): {b"q": IDS[:2]}, address_of(other): {b"r": IDS[2:3]}}
        publish(self.servers(one, other), staged, self.time.sleep)
        words = [b"QMOVE", b"staged:q", b"q", b"ID", IDS[0].encode(), IDS[1].encode()]
        self.assertEqual([words], one.requests)
        self.assertEqual([b"QMOVE", b"staged:r", b"r"], other.requests[0][:3])

    def test_reply_lost(self) -> None:
        """When the connection is lost, only those jobs are moved again that are still there."""
        home = self.node(QMOVE=[HANG_UP, b":1\r\n"], SHOW=[NIL, _STAGED[1], _ACKED[2]])
        holder = self.node(QMOVE=b":1\r\n")
        self.show(home, holder, jobs=3)
        self.assertEqual(["QMOVE", *["SHOW"] * 3, "QMOVE"], home.commands())
        self.assertEqual([IDS[1].encode()], home.requests[-1][4:])
        self.assertEqual([], holder.commands())

    def test_all_moved_and_reply_lost(self) -> None:
        """Nothing is moved again when all were moved before the connection was lost."""
        home = self.node(QMOVE=HANG_UP, SHOW=NIL)
        self.show(home)
        self.assertEqual(["QMOVE", "SHOW"], home.commands())

    def test_some(self) -> None:
        """When a node moves fewer than it was asked for, it is asked for the others."""
        home = self.node(QMOVE=[b":1\r\n", b":1\r\n"], SHOW=[_ACKED[0], _STAGED[1]])
        self.show(home, jobs=2)
        self.assertEqual(2, home.commands().count("QMOVE"))

    def test_holder(self) -> None:
        """When the node is down before the request was sent, or no longer has the job, another
        holder queues and moves it."""
        dead = self.node()
        dead.close()
        empty = self.node(QMOVE=b":0\r\n", SHOW=NIL)
        for home in (dead, empty):
            holder = self.node(ENQUEUE=b":1\r\n", QMOVE=b":1\r\n")
            self.show(home, holder)
            self.assertEqual(["ENQUEUE", "QMOVE"], holder.commands())

    def test_node_lost(self) -> None:
        """A node that is lost gets some time to come back, before another holder moves its
        jobs."""
        home = self.node(QMOVE=DIE)
        holder = self.node(ENQUEUE=b":1\r\n", QMOVE=b":1\r\n")
        self.show(home, holder)
        self.assertEqual(["ENQUEUE", "QMOVE"], holder.commands())
        self.assertGreaterEqual(sum(self.time.sleeps_s), 10)

    def test_already_done(self) -> None:
        """A job that is already acknowledged on another holder was moved."""
        home = self.node(QMOVE=DIE)
        holder = self.node(ENQUEUE=b":0\r\n", QMOVE=b":0\r\n", SHOW=_ACKED[0])
        self.show(home, holder)

    def test_lost_repeatedly(self) -> None:
        """When the connection is lost repeatedly, the write fails."""
        home = self.node(QMOVE=HANG_UP, SHOW=_STAGED[0])
        self.assertIn("although asked repeatedly", self.refusal(home))
        self.assertLess(home.commands().count("QMOVE"), 10)

    def test_not_all_visible(self) -> None:
        """When some jobs cannot be moved, the write fails, with their number and the reason."""
        home = self.node(QMOVE=b":1\r\n", SHOW=[_ACKED[0], NIL, NIL])
        text = self.refusal(home, jobs=3)
        self.assertIn("2 of 3 staged jobs could not be made visible", text)
        self.assertIn(f"no longer staged at {home.address}.", text)

    def test_refused(self) -> None:
        """What a node refuses, as an original does, is not tried again."""
        home = self.node(QMOVE=b"-ERR unknown command 'QMOVE'\r\n")
        self.assertIn("unknown command", self.refusal(home))
        self.assertEqual(["QMOVE"], home.commands())

"""Staged jobs are made visible exactly once, or removed."""

from __future__ import annotations

import hiredis

from disque_tx.client.requests.replies import details
from disque_tx.client.values import JobDetails
from disque_tx.spark.errors import WriteRefused
from disque_tx.spark.sink.staging import discard_staged, is_staged, queue_all, withdraw
from tests.client.scripted import DIE, HANG_UP, ScriptedNode, array, bulk
from tests.spark.nodes import IDS, NIL, NodesTestCase, address_of, shown

#: A job that a staged write has added, a while later.
STAGED = {
    "ttl": b":900\r\n",
    "delay": b":999\r\n",
    "next_requeue_within": b":899100\r\n",
}


class StagingTests(NodesTestCase):
    """The requests of a staged write."""

    def job(self, **changed: bytes) -> JobDetails:
        """A staged job, with these changes."""
        reader = hiredis.Reader()
        reader.feed(shown(IDS[0], **{**STAGED, **changed}))
        found = details(reader.gets())
        assert found is not None
        return found

    def test_recognition(self) -> None:
        """A staged job is active, delayed, and would first be queued just before it expires; a
        visible job, or one that is merely delayed, is not staged."""
        self.assertTrue(is_staged(self.job()))
        for changed in (
            {"state": bulk("queued")},
            {"state": bulk("acked")},
            {"next_requeue_within": NIL},
            {"next_requeue_within": b":55000\r\n"},
            {"delay": b":0\r\n", "next_requeue_within": b":899000\r\n"},
            {"ttl": b":60\r\n", "next_requeue_within": b":59000\r\n"},
        ):
            self.assertFalse(is_staged(self.job(**changed)), changed)

    def test_withdraw(self) -> None:
        """Jobs that are still hidden are removed on all holders, by ACKJOB; visible ones stay."""
        node = self.node(
            SHOW=[shown(IDS[0], **STAGED), shown(IDS[1], state=bulk("queued")), NIL],
            ACKJOB=b":1\r\n",
        )
        self.assertEqual(1, withdraw(self.servers(node), {address_of(node): IDS[:3]}))
        self.assertEqual([b"ACKJOB", IDS[0].encode()], node.requests[-1])

    def test_discard(self) -> None:
        """The jobs of a killed write are found page by page, each once."""
        page = array(bulk("7"), array(shown(IDS[0], **STAGED), shown(IDS[1])))
        last = array(bulk("0"), array(shown(IDS[0], **STAGED)))
        node = self.node(JSCAN=[page, last], SHOW=shown(IDS[0], **STAGED), ACKJOB=b":1\r\n")
        self.assertEqual(1, discard_staged(node.address, "q"))
        self.assertEqual(["JSCAN", "JSCAN", "SHOW", "ACKJOB"], node.commands())


_QUEUED = shown(IDS[0], state=bulk("queued"))
_STAGED = shown(IDS[0], **STAGED)
_DONE = b":1\r\n"
_NOT_DONE = b":0\r\n"


class ShowingTests(NodesTestCase):
    """The requests of queue_all."""

    def show(self, *nodes: ScriptedNode, jobs: int = 1) -> None:
        """Make jobs visible that were added on the first of the nodes."""
        queue_all(self.servers(*nodes), {address_of(nodes[0]): IDS[:jobs]}, self.time.sleep)

    def refusal(self, *nodes: ScriptedNode, jobs: int = 1) -> str:
        """The error when not all jobs can be made visible."""
        with self.assertRaises(WriteRefused) as raised:
            self.show(*nodes, jobs=jobs)
        return str(raised.exception)

    def test_all(self) -> None:
        """Each job is queued on the node on which it was added."""
        one, other = self.node(ENQUEUE=_DONE), self.node(ENQUEUE=_DONE)
        queue_all(
            self.servers(one, other),
            {address_of(one): IDS[:2], address_of(other): IDS[2:3]},
            self.time.sleep,
        )
        self.assertEqual((["ENQUEUE"] * 2, ["ENQUEUE"]), (one.commands(), other.commands()))

    def test_holder(self) -> None:
        """When the node is down before the request was sent, or no longer has the job, another
        holder queues it."""
        dead = self.node()
        dead.close()
        empty = self.node(ENQUEUE=_NOT_DONE, SHOW=NIL)
        for home in (dead, empty):
            holder = self.node(ENQUEUE=_DONE)
            self.show(home, holder)
            self.assertEqual(["ENQUEUE"], holder.commands())

    def test_reply_lost(self) -> None:
        """A job that was queued before the connection was lost is not queued again, and the write
        succeeds."""
        for job in (_QUEUED, shown(IDS[0]), shown(IDS[0], state=bulk("acked")), NIL):
            home, holder = self.node(ENQUEUE=[_DONE, HANG_UP], SHOW=job), self.node(ENQUEUE=_DONE)
            self.show(home, holder, jobs=2)
            self.assertEqual(["ENQUEUE", "ENQUEUE", "SHOW"], home.commands())
            self.assertEqual([], holder.commands())

    def test_request_lost(self) -> None:
        """A job that was not queued before the connection was lost is queued again by its node."""
        home, holder = self.node(ENQUEUE=[HANG_UP, _DONE], SHOW=_STAGED), self.node(ENQUEUE=_DONE)
        self.show(home, holder)
        self.assertEqual(["ENQUEUE", "SHOW", "ENQUEUE"], home.commands())
        self.assertEqual([], holder.commands())

    def test_lost_on_a_connection_in_use(self) -> None:
        """The same applies to a connection that was used before."""
        home = self.node(ENQUEUE=[_DONE, HANG_UP], SHOW=_QUEUED)
        servers = self.servers(home)
        queue_all(servers, {address_of(home): IDS[:1]}, self.time.sleep)
        queue_all(servers, {address_of(home): IDS[1:2]}, self.time.sleep)
        self.assertEqual(2, home.commands().count("ENQUEUE"))

    def test_lost_repeatedly(self) -> None:
        """When the connection is lost repeatedly, the write fails."""
        home = self.node(ENQUEUE=HANG_UP, SHOW=_STAGED)
        self.assertIn("lost repeatedly", self.refusal(home))
        self.assertLess(home.commands().count("ENQUEUE"), 10)

    def test_node_lost(self) -> None:
        """When the node does not return in time, another holder queues the job."""
        home, holder = self.node(ENQUEUE=DIE), self.node(ENQUEUE=_DONE)
        self.show(home, holder)
        self.assertEqual(["ENQUEUE"], holder.commands())
        self.assertGreaterEqual(sum(self.time.sleeps_s), 10)

    def test_already_done(self) -> None:
        """A job that is already acknowledged on another holder was visible."""
        home = self.node(ENQUEUE=DIE)
        holder = self.node(ENQUEUE=_NOT_DONE, SHOW=shown(IDS[0], state=bulk("acked")))
        self.show(home, holder)

    def test_not_all_visible(self) -> None:
        """When some jobs cannot be queued, the write fails, with their number and the reason."""
        home = self.node(ENQUEUE=[_DONE, _NOT_DONE], SHOW=NIL)
        text = self.refusal(home, jobs=3)
        self.assertIn("2 of 3 staged jobs could not be made visible", text)
        self.assertIn(f"{IDS[1]} is no longer staged at {home.address}.", text)

"""Staged jobs: made visible exactly once, or removed."""

from __future__ import annotations

import hiredis

from disque_tx.client.replies import details
from disque_tx.client.values import JobDetails
from disque_tx.spark.errors import WriteRefused
from disque_tx.spark.sink.staging import discard_staged, is_staged, queue_all, withdraw
from tests.client.scripted import DIE, HANG_UP, ScriptedNode, array, bulk
from tests.spark.nodes import IDS, NIL, NodesTestCase, at, shown

#: A job as a staged write adds it, a while later.
STAGED = {
    "ttl": b":900\r\n",
    "delay": b":999\r\n",
    "next_requeue_within": b":899100\r\n",
}


class StagingTests(NodesTestCase):
    """What a staged write says to nodes."""

    def job(self, **changed: bytes) -> JobDetails:
        """A staged job, but for what is changed."""
        reader = hiredis.Reader()
        reader.feed(shown(IDS[0], **{**STAGED, **changed}))
        found = details(reader.gets())
        assert found is not None
        return found

    def test_told_apart(self) -> None:
        """A staged job is active, delayed, and would first be queued just before it expires; one
        that was shown and delivered, or is merely delayed, is not."""
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

    def test_take_back(self) -> None:
        """What is still hidden is removed wherever there are copies, which ACKJOB does; what was
        shown already stays."""
        node = self.node(
            SHOW=[shown(IDS[0], **STAGED), shown(IDS[1], state=bulk("queued")), NIL],
            ACKJOB=b":1\r\n",
        )
        self.assertEqual(1, withdraw(self.servers(node), {at(node): IDS[:3]}))
        self.assertEqual([b"ACKJOB", IDS[0].encode()], node.requests[-1])

    def test_discard(self) -> None:
        """What a killed write left is found page by page, each job once."""
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
    """What queue_all sends to nodes."""

    def show(self, *nodes: ScriptedNode, jobs: int = 1) -> None:
        """Show jobs that were added at the first of the nodes."""
        queue_all(self.servers(*nodes), {at(nodes[0]): IDS[:jobs]}, self.time.sleep)

    def refusal(self, *nodes: ScriptedNode, jobs: int = 1) -> str:
        """Why not all can be shown."""
        with self.assertRaises(WriteRefused) as raised:
            self.show(*nodes, jobs=jobs)
        return str(raised.exception)

    def test_all(self) -> None:
        """Each job is queued at the node at which it was added."""
        one, other = self.node(ENQUEUE=_DONE), self.node(ENQUEUE=_DONE)
        queue_all(
            self.servers(one, other), {at(one): IDS[:2], at(other): IDS[2:3]}, self.time.sleep
        )
        self.assertEqual((["ENQUEUE"] * 2, ["ENQUEUE"]), (one.commands(), other.commands()))

    def test_holder(self) -> None:
        """Where the node is away before anything was sent, or has forgotten the job, another holder
        queues it."""
        dead = self.node()
        dead.close()
        empty = self.node(ENQUEUE=_NOT_DONE, SHOW=NIL)
        for home in (dead, empty):
            holder = self.node(ENQUEUE=_DONE)
            self.show(home, holder)
            self.assertEqual(["ENQUEUE"], holder.commands())

    def test_answer_lost(self) -> None:
        """A job that was queued before the connection was lost is not queued again, anywhere, and
        the write succeeds."""
        for job in (_QUEUED, shown(IDS[0]), shown(IDS[0], state=bulk("acked")), NIL):
            home, holder = self.node(ENQUEUE=[_DONE, HANG_UP], SHOW=job), self.node(ENQUEUE=_DONE)
            self.show(home, holder, jobs=2)
            self.assertEqual(["ENQUEUE", "ENQUEUE", "SHOW"], home.commands())
            self.assertEqual([], holder.commands())

    def test_request_lost(self) -> None:
        """A job that was not queued before the connection was lost is queued then, by its node."""
        home, holder = self.node(ENQUEUE=[HANG_UP, _DONE], SHOW=_STAGED), self.node(ENQUEUE=_DONE)
        self.show(home, holder)
        self.assertEqual(["ENQUEUE", "SHOW", "ENQUEUE"], home.commands())
        self.assertEqual([], holder.commands())

    def test_lost_on_a_connection_in_use(self) -> None:
        """An old connection is not repeated on either."""
        home = self.node(ENQUEUE=[_DONE, HANG_UP], SHOW=_QUEUED)
        servers = self.servers(home)
        queue_all(servers, {at(home): IDS[:1]}, self.time.sleep)
        queue_all(servers, {at(home): IDS[1:2]}, self.time.sleep)
        self.assertEqual(2, home.commands().count("ENQUEUE"))

    def test_lost_again_and_again(self) -> None:
        """It does not go on for ever."""
        home = self.node(ENQUEUE=HANG_UP, SHOW=_STAGED)
        self.assertIn("lost repeatedly", self.refusal(home))
        self.assertLess(home.commands().count("ENQUEUE"), 10)

    def test_gone_for_good(self) -> None:
        """A node that does not come back in time is replaced by another holder."""
        home, holder = self.node(ENQUEUE=DIE), self.node(ENQUEUE=_DONE)
        self.show(home, holder)
        self.assertEqual(["ENQUEUE"], holder.commands())
        self.assertGreaterEqual(sum(self.time.sleeps_s), 10)

    def test_done_in_the_meantime(self) -> None:
        """A job that another holder knows as done was shown."""
        home = self.node(ENQUEUE=DIE)
        holder = self.node(ENQUEUE=_NOT_DONE, SHOW=shown(IDS[0], state=bulk("acked")))
        self.show(home, holder)

    def test_not_all_shown(self) -> None:
        """When some cannot be queued the write fails, and says how many and why."""
        home = self.node(ENQUEUE=[_DONE, _NOT_DONE], SHOW=NIL)
        text = self.refusal(home, jobs=3)
        self.assertIn("2 of 3 staged jobs could not be made visible", text)
        self.assertIn(f"{IDS[1]} is no longer staged at {home.address}.", text)

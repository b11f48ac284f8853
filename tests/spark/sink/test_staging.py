"""Jobs that wait to be shown."""

from __future__ import annotations

import hiredis

from disque_tx.client.replies import details
from disque_tx.client.values import JobDetails
from disque_tx.spark.sink.staging import discard_staged, is_staged, take_back
from tests.client.scripted import array, bulk
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
        self.assertEqual(1, take_back(self.servers(node), {at(node): IDS[:3]}))
        self.assertEqual([b"ACKJOB", IDS[0].encode()], node.requests[-1])

    def test_discard(self) -> None:
        """What a killed write left is found page by page, each job once."""
        page = array(bulk("7"), array(shown(IDS[0], **STAGED), shown(IDS[1])))
        last = array(bulk("0"), array(shown(IDS[0], **STAGED)))
        node = self.node(JSCAN=[page, last], SHOW=shown(IDS[0], **STAGED), ACKJOB=b":1\r\n")
        self.assertEqual(1, discard_staged(node.address, "q"))
        self.assertEqual(["JSCAN", "JSCAN", "SHOW", "ACKJOB"], node.commands())

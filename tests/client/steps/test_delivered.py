"""What a program does with a job that it got."""

from __future__ import annotations

from typing import Final

from disque_tx.client.blocking import TakenJob
from disque_tx.client.errors import BadJobId
from tests.client.blocking.test_session import SessionTestCase
from tests.client.scripted import JOB_ID, ScriptedNode, array, job

_BAD: Final = b"-BADID Invalid Job ID format.\r\n"


class NackTests(SessionTestCase):
    """A job is given back at a node that refuses it."""

    def taken(self, *answers: bytes) -> tuple[ScriptedNode, TakenJob]:
        """A job, and its node, which answers NACK like this."""
        node = self.node(GETJOB=array(job()), NACK=list(answers))
        taken = self.client(node).dequeue("q")
        assert taken is not None
        node.requests.clear()
        return node, taken

    def test_plain(self) -> None:
        """An ID that a node does not understand is an error at once: the same request again would
        be refused again."""
        node, taken = self.taken(_BAD)
        self.assertRaises(BadJobId, taken.nack)
        self.assertEqual([[b"NACK", JOB_ID.encode()]], node.requests)

    def test_options(self) -> None:
        """A node that takes options for IDs gets the request without them, whichever there were."""
        for delay_s, reason in ((5.0, None), (None, "broken"), (0.0, "")):
            node, taken = self.taken(_BAD, b":1\r\n")
            self.assertTrue(taken.nack(delay_s, reason))
            first, second = node.requests
            self.assertGreater(len(first), 2)
            self.assertEqual([b"NACK", JOB_ID.encode()], second)
            _, taken = self.taken(_BAD, _BAD)
            self.assertRaises(BadJobId, taken.nack, delay_s, reason)

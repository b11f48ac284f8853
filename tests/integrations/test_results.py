"""Results of tasks, as jobs that nobody fetches."""

from __future__ import annotations

from disque_tx.client import AuthenticationRefused
from disque_tx.client.blocking import Disque
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.requests.encoding import queue_length
from disque_tx.integrations.cluster import ask_all
from disque_tx.integrations.results import Results, newest, stamped
from tests.client.scripted import bulk
from tests.integrations.nodes import JOB_ID, FrameworkCase, array


class ResultTests(FrameworkCase):
    """What is asked of the nodes."""

    def setUp(self) -> None:
        super().setUp()
        self.client = Disque(self.scripted.address)
        self.addCleanup(self.client.close)
        self.results = Results(self.client, "result:", 2, lambda: 12.5)

    def test_put(self) -> None:
        """A result is kept for its time on as many nodes as jobs are, and comes back when its node
        dies."""
        self.results.put("k", b"value", 60)
        ((command, queue, body, _timeout, *options),) = self.asked()
        self.assertEqual(["ADDJOB", "result:k"], [command, queue])
        self.assertEqual("0000000012500000value", body)
        found = dict(zip(options[::2], options[1::2], strict=True))
        self.assertEqual({"REPLICATE": "2", "RETRY": "10", "TTL": "60"}, found)

    def test_get(self) -> None:
        """A result is found at whichever node it is, and stays there; without one there is none."""
        job = array(bulk("result:k"), bulk(JOB_ID), bulk("0000000012500000value"))
        self.scripted.answer("QPEEK", array(job))
        self.assertEqual(b"value", self.results.get("k"))
        self.assertEqual(["QPEEK", "result:k"], self.asked()[-1][:2])
        self.scripted.answer("QPEEK", array())
        self.assertIsNone(self.results.get("k"))

    def test_deleted(self) -> None:
        """All copies of a result are forgotten, those of earlier attempts included."""
        job = array(bulk("result:k"), bulk(JOB_ID), bulk("0000000012500000value"))
        self.scripted.answer("QPEEK", array(job, job))
        self.results.delete("k")
        self.assertEqual(["ACKJOB", JOB_ID, JOB_ID], self.asked()[-1])

    def test_newest(self) -> None:
        """Of several results, from several nodes, the last one that was kept counts."""

        class Kept:
            def __init__(self, value: bytes, at_s: float) -> None:
                self.body = stamped(value, at_s)

        answers = [[Kept(b"second", 2.0)], [], [Kept(b"first", 1.0), Kept(b"third", 10.0)]]
        self.assertEqual(b"third", newest(answers))
        self.assertIsNone(newest([[], []]))


class RecordingClient(Disque):
    """Remembers the connections that were made of it."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.made: list[Servers] = []

    def servers(self) -> Servers:
        """Connections like those of any client."""
        self.made.append(super().servers())
        return self.made[-1]


class AskAllTests(FrameworkCase):
    """Requests to all nodes."""

    def test_connections(self) -> None:
        """The connections to the nodes are closed after the answers and after errors, or a program
        that looks for results would soon have too many."""
        self.scripted.answer("QLEN", b":3\r\n", b"-NOAUTH Authentication required.\r\n")
        client = RecordingClient(self.scripted.address)
        self.addCleanup(client.close)
        self.assertEqual([3], ask_all(client, queue_length("q")))
        self.assertRaises(AuthenticationRefused, ask_all, client, queue_length("q"))
        self.assertEqual([{}, {}], [servers._connections for servers in client.made])

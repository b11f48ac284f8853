"""The request that each method sends, and its result."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from twisted.internet.defer import Deferred

from disque_tx.client.values import ClusterNode, Hello, Job, NodeInfo
from tests.client.scripted import EVERY_OPTION, EVERY_WORD, JOB_ID, NODE_IDS, array, bulk, job
from tests.client.tx.network import NetworkTestCase

NODES_LINE = f"{NODE_IDS[0]} 10.0.0.1:7711 myself,leaving 0 17 connected\n"
JOB_COMMANDS = ["ADDJOB", "GETJOB", "ACKJOB", "FASTACK", "NACK", "WORKING", "ENQUEUE", "DEQUEUE"]
JOB_COMMANDS += ["DELJOB", "SHOW", "JSCAN"]
COMMANDS = [*JOB_COMMANDS, "QLEN", "QPEEK", "QSTAT", "QSCAN", "PAUSE", "INFO", "PING", "CLUSTER"]
OK = b"+OK\r\n"


def listed(items: AsyncIterator[Any]) -> Deferred[list[Any]]:
    """All items of an iterator."""

    async def collect() -> list[Any]:
        return [item async for item in items]

    return Deferred.fromCoroutine(collect())


class CommandTests(NetworkTestCase):
    """One node and one request each."""

    def check(self, words: str, reply: bytes, expected: Any, call: Callable[[Any], Any]) -> None:
        """Check the request of the method, and its result for this reply."""
        node = self.node()
        for command in (*COMMANDS, "CONFIG", "QPOLICY", "QMOVE"):
            node.answer(command, reply)
        result = self.result(call(self.client(node)))
        self.assertEqual((words.encode().split(), expected), (node.requests[-1], result))

    def test_jobs(self) -> None:
        """Commands on jobs."""
        two, ids = b":2\r\n", f"{JOB_ID} x"
        self.check(f"ACKJOB {ids}", two, 2, lambda c: c.ack_jobs(JOB_ID, "x"))
        self.check(f"FASTACK {ids}", two, 2, lambda c: c.fast_ack(JOB_ID, "x"))
        self.check(f"NACK {ids}", two, 2, lambda c: c.nack(JOB_ID, "x"))
        words = f"NACK DELAY 1.500 REASON why {JOB_ID}"
        self.check(words, two, 2, lambda c: c.nack(JOB_ID, delay_s=1.5, reason="why"))
        self.check(f"ENQUEUE {ids}", two, 2, lambda c: c.enqueue_jobs(JOB_ID, "x"))
        self.check(f"DEQUEUE {ids}", two, 2, lambda c: c.dequeue_jobs(JOB_ID, "x"))
        self.check(f"DELJOB {ids}", two, 2, lambda c: c.delete_jobs(JOB_ID, "x"))
        self.check(f"WORKING {JOB_ID}", two, 2, lambda c: c.working(JOB_ID))
        words = f"WORKING {JOB_ID} PROGRESS 0.400"
        self.check(words, two, 2, lambda c: c.working(JOB_ID, progress=0.4))
        self.check(f"{words} NOTE p", two, 2, lambda c: c.working(JOB_ID, progress=0.4, note="p"))
        for bad in (-0.1, 1.1, float("nan")):
            self.assertRaises(ValueError, self.client(self.node()).working, JOB_ID, progress=bad)
        self.check(f"SHOW {JOB_ID}", b"$-1\r\n", None, lambda c: c.show(JOB_ID))

    def test_add(self) -> None:
        """ADDJOB with all options and their values; the ID may be a string or a status."""
        for added in (b"+" + JOB_ID.encode() + b"\r\n", bulk(JOB_ID)):
            self.check("ADDJOB q b 5000", added, JOB_ID, lambda c: c.add_job("q", "b"))
        self.check(
            f"ADDJOB q b {EVERY_WORD}",
            bulk(JOB_ID),
            JOB_ID,
            lambda c: c.add_job("q", b"b", **EVERY_OPTION),
        )
        self.check(
            "ADDJOB q b 5000 DELAY 1 RETRY 2 TTL 3",
            bulk(JOB_ID),
            JOB_ID,
            lambda c: c.enqueue("q", "b", delay=1, retry=2, ttl=3),
        )

    def test_get(self) -> None:
        """Jobs have their counters; the first request does not wait."""
        expected = [Job("q", JOB_ID, b"body", 1, 2)]
        self.check(
            "GETJOB WITHCOUNTERS COUNT 2 NOHANG FROM q r",
            array(job()),
            expected,
            lambda c: c.get_jobs("q", "r", count=2, timeout_ms=70),
        )
        self.check(
            "GETJOB WITHCOUNTERS COUNT 1 NOHANG FROM q",
            b"*-1\r\n",
            [],
            lambda c: c.get_jobs("q", no_hang=True),
        )

    def test_queues(self) -> None:
        """Commands on queues."""
        item = array(bulk("q"), bulk(JOB_ID), bulk("b"))
        self.check("QMOVE q r", b":7\r\n", 7, lambda c: c.queue_move("q", b"r"))
        self.check(
            f"QMOVE dead * DEAD COUNT 5 ID {JOB_ID}",
            b":1\r\n",
            1,
            lambda c: c.queue_move("dead", "*", count=5, job_ids=[JOB_ID], dead=True),
        )
        self.check("QLEN q", b":7\r\n", 7, lambda c: c.queue_length(b"q"))
        self.check("QSTAT q", b"*-1\r\n", None, lambda c: c.queue_stat("q"))
        self.check(
            "QPEEK q -3", array(item), [Job("q", JOB_ID, b"b")], lambda c: c.queue_peek("q", -3)
        )
        self.check(
            "QPOLICY SET a* max-deliveries 5 retry-on-timeout yes",
            b"+OK\r\n",
            None,
            lambda c: c.policy_set("a*", {"max-deliveries": 5, "retry-on-timeout": True}),
        )
        self.check("QPOLICY DEL a* ttl", b":1\r\n", 1, lambda c: c.policy_del("a*", "ttl"))
        self.check("PAUSE q in bcast", b"+in\r\n", "in", lambda c: c.pause("q", "in", "bcast"))
        self.check(
            "JSCAN 0 REPLY all COUNT 7 QUEUE q STATE active STATE queued",
            array(bulk("0"), array()),
            [],
            lambda c: listed(c.job_scan("q", states=("active", "queued"), count=7)),
        )

    def test_scan(self) -> None:
        """Scans continue at the cursor until it is 0."""
        pages = [array(bulk("9"), array(bulk("a"))), array(bulk("0"), array(bulk("b")))]
        node = self.node(QSCAN=pages)
        names = listed(self.client(node).queue_scan(count=1, minlen=1))
        self.assertEqual(["a", "b"], self.result(names))
        self.assertEqual(
            [b"QSCAN 0 COUNT 1 MINLEN 1".split(), b"QSCAN 9 COUNT 1 MINLEN 1".split()],
            node.requests,
        )

    def test_node(self) -> None:
        """Commands about the node."""
        fields, expected = bulk("# Jobs\r\nregistered_jobs:3\r\n"), {"registered_jobs": "3"}
        self.check("INFO", fields, expected, lambda c: c.info())
        self.check("INFO jobs", fields, expected, lambda c: c.info("jobs"))
        self.check("PING", b"+PONG\r\n", "PONG", lambda c: c.ping())
        pair = array(bulk("port"), bulk("1"))
        self.check(
            "CONFIG GET port", pair, [b"port", b"1"], lambda c: c.execute("CONFIG", "GET", "port")
        )

    def test_digits_are_not_converted(self) -> None:
        """Bodies and names that look like numbers stay bytes and text."""
        self.check(
            "QPEEK 12 10",
            array(array(bulk("12"), bulk(JOB_ID), bulk("1.5"))),
            [Job("12", JOB_ID, b"1.5")],
            lambda c: c.queue_peek("12"),
        )

    def test_hello(self) -> None:
        """HELLO returns the replying node, and the nodes it knows."""
        node = self.node()
        expected = Hello(NODE_IDS[0], (NodeInfo(NODE_IDS[0], "", node.port, 1),))
        client = self.client(node)
        self.assertEqual(expected, self.result(client.hello()))
        self.assertEqual(node.address, str(self.result(client.address())))

    def test_cluster(self) -> None:
        """All subcommands of CLUSTER."""
        flags = frozenset({"myself", "leaving"})
        line = ClusterNode(NODE_IDS[0], "10.0.0.1:7711", flags, 0, 17, True)
        size = {"cluster_size": "3"}
        self.check("CLUSTER MYID", bulk(NODE_IDS[0]), NODE_IDS[0], lambda c: c.cluster_my_id())
        self.check("CLUSTER INFO", bulk("cluster_size:3\r\n"), size, lambda c: c.cluster_info())
        self.check("CLUSTER NODES", bulk(NODES_LINE), [line], lambda c: c.cluster_nodes())
        self.check("CLUSTER MEET 10.0.0.1 7", OK, None, lambda c: c.cluster_meet("10.0.0.1", 7))
        self.check("CLUSTER FORGET x", OK, None, lambda c: c.cluster_forget("x"))
        self.check("CLUSTER LEAVING", b"+yes\r\n", True, lambda c: c.cluster_leaving())
        self.check("CLUSTER LEAVING no", OK, False, lambda c: c.cluster_leaving(False))
        self.check("CLUSTER RESET HARD", OK, None, lambda c: c.cluster_reset(hard=True))
        self.check("CLUSTER SAVECONFIG", OK, None, lambda c: c.cluster_save_config())

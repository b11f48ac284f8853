"""The request that each method sends, and its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from disque_tx.client.errors import ClientError
from disque_tx.client.values import ClusterNode, Hello, Job, NodeInfo, PolicySetting
from tests.client.blocking.test_session import SessionTestCase
from tests.client.scripted import (
    EVERY_OPTION,
    EVERY_WORD,
    JOB_ID,
    NODE_IDS,
    ScriptedNode,
    array,
    bulk,
    job,
)

NODES_LINE = f"{NODE_IDS[0]} 10.0.0.1:7711 myself,leaving 0 17 connected\n"


class CommandTests(SessionTestCase):
    """One node and one request each."""

    def sent(self, reply: bytes, call: Callable[[Any], Any]) -> tuple[list[str], Any]:
        """The words of the request, and the result of the method."""
        node = ScriptedNode()
        self.addCleanup(node.close)
        for name in ("ADDJOB", "GETJOB", "ACKJOB", "FASTACK", "NACK", "WORKING", "ENQUEUE"):
            node.answer(name, reply)
        for name in ("DEQUEUE", "DELJOB", "SHOW", "QLEN", "QPEEK", "QSTAT", "QSCAN", "JSCAN"):
            node.answer(name, reply)
        for name in ("PAUSE", "INFO", "PING", "CLUSTER", "CONFIG", "QPOLICY"):
            node.answer(name, reply)
        result = call(self.client(node))
        return [word.decode() for word in node.requests[-1]], result

    def test_numbers(self) -> None:
        """Commands on jobs that return a number."""
        calls: dict[str, Callable[[Any], Any]] = {
            "ACKJOB": lambda client: client.ack_jobs(JOB_ID, "x"),
            "FASTACK": lambda client: client.fast_ack(JOB_ID, "x"),
            "NACK": lambda client: client.nack(JOB_ID, "x"),
            "ENQUEUE": lambda client: client.enqueue_jobs(JOB_ID, "x"),
            "DEQUEUE": lambda client: client.dequeue_jobs(JOB_ID, "x"),
            "DELJOB": lambda client: client.delete_jobs(JOB_ID, "x"),
        }
        for name, call in calls.items():
            self.assertEqual(([name, JOB_ID, "x"], 2), self.sent(b":2\r\n", call))
        for words, call in (
            (["WORKING", JOB_ID], lambda client: client.working(JOB_ID)),
            (["QLEN", "q"], lambda client: client.queue_length(b"q")),
        ):
            self.assertEqual((words, 2), self.sent(b":2\r\n", call))

    def test_add(self) -> None:
        """ADDJOB with all options and their values."""
        added = b"+" + JOB_ID.encode() + b"\r\n"
        self.assertEqual(
            (["ADDJOB", "q", "b", "5000"], JOB_ID), self.sent(added, lambda c: c.add_job("q", "b"))
        )
        words, _ = self.sent(added, lambda c: c.add_job("q", b"b", **EVERY_OPTION))
        self.assertEqual(["ADDJOB", "q", "b", *EVERY_WORD.split()], words)

    def test_get(self) -> None:
        """Jobs have their counters."""
        expected = [Job("q", JOB_ID, b"body", 1, 2)]
        head = ["GETJOB", "WITHCOUNTERS", "COUNT"]
        self.assertEqual(
            ([*head, "2", "TIMEOUT", "70", "FROM", "q", "r"], expected),
            self.sent(array(job()), lambda c: c.get_jobs("q", "r", count=2, timeout_ms=70)),
        )
        self.assertEqual(
            ([*head, "1", "NOHANG", "FROM", "q"], []),
            self.sent(b"*-1\r\n", lambda c: c.get_jobs("q", no_hang=True)),
        )

    def test_get_forever(self) -> None:
        """A GETJOB without a timeout is sent as many shorter ones, so that an unresponsive node is
        detected."""
        node = ScriptedNode(GETJOB=[b"*-1\r\n", b"*-1\r\n", array(job())])
        self.addCleanup(node.close)
        self.assertEqual(1, len(self.client(node).get_jobs("q")))
        self.assertEqual(3, len(node.requests))

    def test_nil(self) -> None:
        """Nil becomes None."""
        self.assertEqual((["SHOW", JOB_ID], None), self.sent(b"$-1\r\n", lambda c: c.show(JOB_ID)))
        self.assertEqual((["QSTAT", "q"], None), self.sent(b"*-1\r\n", lambda c: c.queue_stat("q")))

    def test_policies(self) -> None:
        """Policies are listed by pattern, and shown with where they come from."""
        row = array(bulk("a*"), array(bulk("ttl"), bulk("5")))
        self.assertEqual(
            (["QPOLICY", "LIST"], {"a*": {"ttl": "5"}}),
            self.sent(array(row), lambda c: c.policy_list()),
        )
        self.assertEqual(
            (["QPOLICY", "LIST", "b"], {}), self.sent(array(), lambda c: c.policy_list("b"))
        )
        row = array(bulk("ttl"), bulk("5"), bulk("a*"))
        self.assertEqual(
            (["QPOLICY", "GET", "ab"], {"ttl": PolicySetting("5", "a*")}),
            self.sent(array(row), lambda c: c.policy_get("ab")),
        )
        self.assertEqual(
            (["QPOLICY", "SET", "a*", "retry-on-timeout", "no", "ttl", "5"], None),
            self.sent(
                b"+OK\r\n",
                lambda c: c.policy_set("a*", {"retry-on-timeout": False, "ttl": "5"}),
            ),
        )
        self.assertEqual(
            (["QPOLICY", "DEL", "a*", "ttl"], 1),
            self.sent(b":1\r\n", lambda c: c.policy_del("a*", "ttl")),
        )
        self.assertEqual(
            (["QPOLICY", "REPAIR"], 2), self.sent(b":2\r\n", lambda c: c.policy_repair())
        )

    def test_policy_replies(self) -> None:
        """A reply that is none of QPOLICY's is an error, not half a policy."""
        for reply in (array(bulk("a")), array(array(bulk("a*"))), bulk("x")):
            for ask in (lambda c: c.policy_list(), lambda c: c.policy_get("q")):
                with self.assertRaises(ClientError):
                    self.sent(reply, ask)

    def test_scans(self) -> None:
        """Scans continue at the cursor until it is 0."""
        node = ScriptedNode(
            QSCAN=[array(bulk("9"), array(bulk("a"))), array(bulk("0"), array(bulk("b")))]
        )
        self.addCleanup(node.close)
        self.assertEqual(["a", "b"], list(self.client(node).queue_scan(count=1, minlen=1)))
        self.assertEqual(
            [b"QSCAN 0 COUNT 1 MINLEN 1".split(), b"QSCAN 9 COUNT 1 MINLEN 1".split()],
            node.requests,
        )
        words, found = self.sent(
            array(bulk("0"), array()),
            lambda c: list(c.job_scan("q", states=("active", "queued"), count=7)),
        )
        self.assertEqual(
            [
                "JSCAN",
                "0",
                "REPLY",
                "all",
                "COUNT",
                "7",
                "QUEUE",
                "q",
                "STATE",
                "active",
                "STATE",
                "queued",
            ],
            words,
        )
        self.assertEqual([], found)

    def test_peek_and_pause(self) -> None:
        """QPEEK and PAUSE."""
        item = array(bulk("q"), bulk(JOB_ID), bulk("b"))
        self.assertEqual(
            (["QPEEK", "q", "-3"], [Job("q", JOB_ID, b"b")]),
            self.sent(array(item), lambda c: c.queue_peek("q", -3)),
        )
        self.assertEqual(
            (["PAUSE", "q", "in", "bcast"], "in"),
            self.sent(b"+in\r\n", lambda c: c.pause("q", "in", "bcast")),
        )

    def test_node(self) -> None:
        """Commands about the node."""
        fields = bulk("# Jobs\r\nregistered_jobs:3\r\n")
        expected = {"registered_jobs": "3"}
        self.assertEqual((["INFO"], expected), self.sent(fields, lambda c: c.info()))
        self.assertEqual((["INFO", "jobs"], expected), self.sent(fields, lambda c: c.info("jobs")))
        self.assertEqual((["PING"], "PONG"), self.sent(b"+PONG\r\n", lambda c: c.ping()))
        self.assertEqual(
            (["CONFIG", "GET", "port"], [b"port", b"1"]),
            self.sent(array(bulk("port"), bulk("1")), lambda c: c.execute("CONFIG", "GET", "port")),
        )

    def test_hello(self) -> None:
        """HELLO returns the replying node, and the nodes it knows."""
        node = ScriptedNode()
        self.addCleanup(node.close)
        expected = Hello(NODE_IDS[0], (NodeInfo(NODE_IDS[0], "", node.port, 1),))
        self.assertEqual(expected, self.client(node).hello())

    def test_cluster(self) -> None:
        """All subcommands of CLUSTER."""
        line = ClusterNode(
            NODE_IDS[0], "10.0.0.1:7711", frozenset({"myself", "leaving"}), 0, 17, True
        )
        ok = b"+OK\r\n"
        cases: list[tuple[str, bytes, Callable[[Any], Any], Any]] = [
            ("MYID", bulk(NODE_IDS[0]), lambda c: c.cluster_my_id(), NODE_IDS[0]),
            ("INFO", bulk("cluster_size:3\r\n"), lambda c: c.cluster_info(), {"cluster_size": "3"}),
            ("NODES", bulk(NODES_LINE), lambda c: c.cluster_nodes(), [line]),
            ("MEET 10.0.0.1 7711", ok, lambda c: c.cluster_meet("10.0.0.1", 7711), None),
            ("FORGET x", ok, lambda c: c.cluster_forget("x"), None),
            ("LEAVING", b"+yes\r\n", lambda c: c.cluster_leaving(), True),
            ("LEAVING no", ok, lambda c: c.cluster_leaving(False), False),
            ("RESET HARD", ok, lambda c: c.cluster_reset(hard=True), None),
            ("SAVECONFIG", ok, lambda c: c.cluster_save_config(), None),
        ]
        for words, reply, call, expected in cases:
            self.assertEqual((["CLUSTER", *words.split()], expected), self.sent(reply, call))

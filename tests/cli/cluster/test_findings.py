"""What ``disque cluster check`` finds, case by case."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.cluster.findings import Finding, findings, is_problem
from disque_tx.cli.cluster.nodeview import NodeView, Survey
from disque_tx.client.values import ClusterNode


def node(number: int, *flags: str, connected: bool = True) -> ClusterNode:
    """A line of CLUSTER NODES."""
    return ClusterNode(str(number) * 40, f"10.0.0.{number}:7711", frozenset(flags), 0, 0, connected)


def seen(number: int, *others: ClusterNode, **info: str) -> NodeView:
    """What a node says: of itself nothing bad, and of others this."""
    table = {other.id: other for other in (node(number, "myself"), *others)}
    told = {"disque_version": "1.0-rc1", "eventlog_enabled": "0", **info}
    return NodeView(f"10.0.0.{number}:7711", str(number) * 40, table, told, 0, 0, 0.0)


def found(*views: NodeView, **silent: str) -> list[Finding]:
    """The findings of a survey."""
    return findings(Survey({view.id: view for view in views}, silent))


class FindingsTests(SynchronousTestCase):
    """``findings``."""

    def only(self, what: str, *views: NodeView, problem: bool = True, **silent: str) -> None:
        """There is one finding, and it says this."""
        (finding,) = found(*views, **silent)
        self.assertIn(what, finding.what)
        self.assertTrue(finding.advice)
        self.assertEqual(problem, is_problem(finding))

    def test_healthy(self) -> None:
        """A cluster that is well gives no reason to worry."""
        self.assertEqual([], found(seen(1, node(2)), seen(2, node(1))))

    def test_silent(self) -> None:
        """A node that cannot be asked is a problem by itself."""
        self.only("does not answer: refused", seen(1), a="refused")

    def test_silence_for_a_reason(self) -> None:
        """Nobody is advised to forget a node that runs and only wants a password, or room."""
        for why in (
            "10.0.0.2:7711 refused HELLO: NOAUTH Authentication required.",
            "refused AUTH: ERR invalid password",
            "refused HELLO: DENIED Disque is running in protected mode",
            "refused HELLO: ERR max number of clients reached",
            "refused HELLO: LOADING Disque is loading the dataset in memory",
        ):
            (finding,) = found(seen(1), **{"10.0.0.2:7711": why})
            self.assertIn(f"refuses: {why}", finding.what)
            self.assertIn("It runs", finding.advice)
            self.assertNotIn("forget", finding.advice)
        for why in (
            "Error 111 connecting to a:1. Connection refused",
            "Timeout",
            "no reply in 3 s",
        ):
            (finding,) = found(seen(1), **{"10.0.0.2:7711": why})
            self.assertIn("forget", finding.advice)

    def test_disagreement(self) -> None:
        """Who was not told of a node is named; a handshake does not count as knowing."""
        self.only("does not know 10.0.0.2:7711", seen(1), seen(2, node(1)))

    def test_flags(self) -> None:
        """Each bad flag is told, and what to do."""
        for flag in ("fail", "fail?", "noaddr"):
            self.only(f": {flag}", seen(1, node(2, flag, connected=False)))
        self.only(": handshake", seen(1, node(2, "handshake", connected=False)))

    def test_bus_on_this_host_only(self) -> None:
        """A node at an address of the network, whose bus nobody there reaches, joins nobody."""
        bus = "127.0.0.1:17711,[::1]:17711"
        self.only("on 127.0.0.1:17711, [::1]:17711 only", seen(1, listening_bus=bus))
        self.assertEqual([], found(seen(1, listening_bus="127.0.0.1:17711,10.0.0.1:17711")))
        here = attrs.evolve(seen(1, listening_bus=bus), address="127.0.0.1:7711")
        self.assertEqual([], found(here))

    def test_twins(self) -> None:
        """Two processes with one ID: which one stands aside, and who hears both."""
        self.only("two processes with one node ID", seen(1, cluster_twins="1"))
        aside = seen(1, cluster_twins="1", cluster_standing_aside="yes")
        self.only("stands aside", aside)

    def test_no_link(self) -> None:
        """A link that is down is told before it is called a failure."""
        self.only("has no link to 10.0.0.2", seen(1, node(2, connected=False)))

    def test_leaving(self) -> None:
        """That is meant to be, so it is no problem."""
        view = seen(1, node(1, "myself", "leaving"), registered_jobs="7")
        self.only("is leaving, with 7 jobs", view, problem=False)

    def test_paused(self) -> None:
        """Nor are paused queues."""
        self.only("3 of", attrs.evolve(seen(1), paused=3), problem=False)

    def test_original(self) -> None:
        """The original program is recognised by what it does not tell."""
        view = seen(1)
        del view.info["eventlog_enabled"]
        self.only("original", view, problem=False)

    def test_memory(self) -> None:
        """From 75 % on nodes behave differently."""
        view = attrs.evolve(seen(1, used_memory="80"), maxmemory=100)
        self.only("80 %", view)
        self.assertEqual([], found(attrs.evolve(view, maxmemory=1000)))

    def test_disk(self) -> None:
        """What could not be written is told, from wherever."""
        for field in ("aof_last_write_status", "aof_last_bgrewrite_status", "eventlog_status"):
            self.only("log: err", seen(1, **{field: "err"}))
        self.only("dropped 4 events", seen(1, eventlog_dropped="4"))
        self.only("loading", seen(1, loading="1"))

    def test_clocks(self) -> None:
        """Clocks are compared with each other, not with that of whoever asks."""
        first, second = seen(1, node(2)), seen(2, node(1))
        ahead = attrs.evolve(first, clock_s=100.0)
        self.assertEqual([], found(ahead, attrs.evolve(second, clock_s=100.5)))
        self.only("10.0 s ahead", ahead, attrs.evolve(second, clock_s=90.0))

    def test_versions(self) -> None:
        """Different versions are told once."""
        self.only("versions differ", seen(1, node(2), disque_version="0.9"), seen(2, node(1)))

    def test_problems_first(self) -> None:
        """Who reads only the beginning reads what matters."""
        view = attrs.evolve(seen(1, loading="1"), paused=1)
        self.assertEqual([True, False], [is_problem(finding) for finding in found(view)])

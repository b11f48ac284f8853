"""What is found to be wrong with nodes."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.values import ClusterNode
from disque_tx.diagnosis.facts import Survey, SurveyedNode
from disque_tx.diagnosis.finding import Finding
from disque_tx.diagnosis.findings import findings, is_problem


def node(number: int, *flags: str, connected: bool = True) -> ClusterNode:
    """A line of CLUSTER NODES."""
    return ClusterNode(str(number) * 40, f"10.0.0.{number}:7711", frozenset(flags), 0, 0, connected)


def node_view(number: int, *others: ClusterNode, **info: str) -> SurveyedNode:
    """The reply of a healthy node whose table contains these other nodes."""
    table = {other.id: other for other in (node(number, "myself"), *others)}
    fields = {"disque_version": "1.0-rc1", "eventlog_enabled": "0", **info}
    return SurveyedNode(f"10.0.0.{number}:7711", str(number) * 40, table, fields, 0, 0, 0.0)


def found(*views: SurveyedNode, **silent: str) -> list[Finding]:
    """The findings about these nodes; ``silent``: addresses without a reply, with the error."""
    return findings(Survey({view.id: view for view in views}, silent))


class FindingsTests(SynchronousTestCase):
    """``findings``."""

    def only(self, what: str, *views: SurveyedNode, problem: bool = True, **silent: str) -> None:
        """Assert that there is exactly one finding, with this text."""
        (finding,) = found(*views, **silent)
        self.assertIn(what, finding.what)
        self.assertTrue(finding.advice)
        self.assertEqual(problem, is_problem(finding))

    def test_cluster_names(self) -> None:
        """Nodes with different names cannot be introduced to each other."""
        views = [
            node_view(1, node(2), cluster_name="shop"),
            node_view(2, node(1), cluster_name=""),
        ]
        self.only("different values of cluster-name: none, shop", *views)

    def test_discovery(self) -> None:
        """A source that finds no nodes is a problem, with its reason; addresses that are ignored
        are worth a note."""
        error = "dns:n.example: no name server answers"
        self.only(f"finds no nodes by {error}", node_view(1, discovery_error=error))
        view = node_view(1, discovery_error="", discovery_addresses_ignored="7")
        self.only("ignores 7 addresses", view, problem=False)

    def test_healthy(self) -> None:
        """A healthy cluster has no findings."""
        self.assertEqual([], found(node_view(1, node(2)), node_view(2, node(1))))

    def test_silent(self) -> None:
        """A node that does not answer is a problem."""
        self.only("does not answer: refused", node_view(1), a="refused")

    def test_silence_for_a_reason(self) -> None:
        """Only a node that does not run may be forgotten, not one that refuses a password or has no
        room for clients."""
        for why in (
            "10.0.0.2:7711 refused HELLO: NOAUTH Authentication required.",
            "refused AUTH: ERR invalid password",
            "refused HELLO: DENIED Disque is running in protected mode",
            "refused HELLO: ERR max number of clients reached",
            "refused HELLO: LOADING Disque is loading the dataset in memory",
        ):
            (finding,) = found(node_view(1), **{"10.0.0.2:7711": why})
            self.assertIn(f"refuses: {why}", finding.what)
            self.assertIn("It runs", finding.advice)
            self.assertNotIn("forget", finding.advice)
        for why in (
            "Error 111 connecting to a:1. Connection refused",
            "Timeout",
            "no reply in 3 s",
        ):
            (finding,) = found(node_view(1), **{"10.0.0.2:7711": why})
            self.assertIn("forget", finding.advice)

    def test_disagreement(self) -> None:
        """A node that does not know another one is named; a handshake does not count as knowing."""
        self.only("does not know 10.0.0.2:7711", node_view(1), node_view(2, node(1)))

    def test_flags(self) -> None:
        """Each bad flag is reported, with what to do."""
        for flag in ("fail", "fail?", "noaddr", "handshake"):
            self.only(f"reports {flag}", node_view(1, node(2, flag, connected=False)))

    def test_reported_by_several(self) -> None:
        """A node that all others have lost is one finding, not one for each of them, and says since
        when; and none besides that the node did not answer the question."""
        lost = attrs.evolve(node(9, "fail", connected=False), pong_received_ms=5_000)
        nodes = [1, 2, 3, 4]
        views = [node_view(each, *map(node, set(nodes) - {each}), lost) for each in nodes]
        (finding,) = found(*views)
        self.assertEqual("10.0.0.9:7711", finding.node)
        self.assertIn("10.0.0.1:7711, 10.0.0.2:7711, 10.0.0.3:7711 and 1 more", finding.what)
        self.assertEqual(5.0, finding.since_s)
        (finding,) = found(*views, **{"10.0.0.9:7711": "Timeout"})
        self.assertEqual(("does not answer: Timeout", 5.0), (finding.what, finding.since_s))

    def test_bus_on_this_host_only(self) -> None:
        """A node with a network address whose bus listens on loopback only cannot join others, so
        that is reported."""
        bus = "127.0.0.1:17711,[::1]:17711"
        self.only("on 127.0.0.1:17711, [::1]:17711 only", node_view(1, listening_bus=bus))
        self.assertEqual([], found(node_view(1, listening_bus="127.0.0.1:17711,10.0.0.1:17711")))
        for here in ("127.0.0.1:7711", "port 7711"):
            alone = attrs.evolve(node_view(1, listening_bus=bus), address=here)
            self.assertEqual([], found(alone))

    def test_twins(self) -> None:
        """Two processes with one ID are reported, and which of them stands aside."""
        self.only("two processes with one node ID", node_view(1, cluster_twins="1"))
        aside = node_view(1, cluster_twins="1", cluster_standing_aside="yes")
        self.only("stands aside", aside)

    def test_no_link(self) -> None:
        """A link that is down is reported even before the node is marked as failed."""
        self.only("has no link to 10.0.0.2", node_view(1, node(2, connected=False)))

    def test_leaving(self) -> None:
        """A leaving node is intended, so it is reported as a note."""
        view = node_view(1, node(1, "myself", "leaving"), registered_jobs="7")
        self.only("is leaving, with 7 jobs", view, problem=False)

    def test_paused(self) -> None:
        """A paused queue is intended, too."""
        view = attrs.evolve(node_view(1), paused=3)
        self.only("has 3 paused queues among its first 1000", view, problem=False)

    def test_original(self) -> None:
        """The original program is recognised by fields that it does not have."""
        view = node_view(1)
        del view.info["eventlog_enabled"]
        self.only("original", view, problem=False)

    def test_memory(self) -> None:
        """A node above 75 % of its memory behaves differently, so that is reported."""
        view = attrs.evolve(node_view(1, used_memory="80"), maxmemory=100)
        self.only("80 %", view)
        self.assertEqual([], found(attrs.evolve(view, maxmemory=1000)))

    def test_disk(self) -> None:
        """All failures to write are reported: of the log, its rewrite, and the event log."""
        for field in ("aof_last_write_status", "aof_last_bgrewrite_status", "eventlog_status"):
            self.only("log: err", node_view(1, **{field: "err"}))
        self.only("dropped 4 events", node_view(1, eventlog_dropped="4"))
        self.only("loading", node_view(1, loading="1"))

    def test_clocks(self) -> None:
        """Clocks of nodes are compared with each other, not with the clock of this machine."""
        first, second = node_view(1, node(2)), node_view(2, node(1))
        ahead = attrs.evolve(first, clock_s=100.0)
        self.assertEqual([], found(ahead, attrs.evolve(second, clock_s=100.5)))
        self.only("10.0 s ahead", ahead, attrs.evolve(second, clock_s=90.0))

    def test_versions(self) -> None:
        """Different releases of this package are reported once: the version of the original is the
        same in all of them."""
        first, second = (
            node_view(here, node(other), disque_tx_version=version)
            for here, other, version in ((1, 2, "1.0.0"), (2, 1, "1.1.0"))
        )
        self.only("differ: 1.0.0, 1.1.0", first, second)
        same = attrs.evolve(second, info={**second.info, "disque_tx_version": "1.0.0"})
        self.assertEqual([], found(first, same))

    def test_certificates(self) -> None:
        """A certificate near its end is a problem in time, and no news before that."""
        month, day = 30 * 86_400, 86_400
        for near, left, what, problem in (
            (month, 29 * day + 5, "expires in 29 days", False),
            (month, 6 * day + 5, "expires in 6 days", True),
            (month, day, "expires in 24 hours", True),
            (month, 0, "has expired", True),
            (8 * 3600, 7 * 3600, "expires in 7 hours", False),
            (8 * 3600, 3600, "expires in 1 hour", True),
        ):
            view = self.certificate(near, left)
            self.only(f"of the bus, that {what}", view, problem=problem)
        for near, left in ((month, month), (8 * 3600, 8 * 3600)):
            self.assertEqual([], found(self.certificate(near, left)))

    @staticmethod
    def certificate(near_end_s: int, left_s: int) -> SurveyedNode:
        """A node with a certificate that ends in ``left_s``."""
        return node_view(
            1,
            certificate_next="the bus",
            certificate_expires_in_seconds=str(left_s),
            certificate_near_end_seconds=str(near_end_s),
        )

    def test_slow(self) -> None:
        """A node whose process does not run in time is slow: one that was late once or twice is
        not, for a rewrite of the log or a large request may do that."""
        for delays, longest, problem in ((3, "1.62", False), (12, "1.62", True), (3, "7.50", True)):
            view = node_view(1, event_loop_delays=str(delays), event_loop_delay_seconds=longest)
            what = f"is slow: it could do nothing for up to {float(longest):.1f} s, {delays} times"
            self.only(what, view, problem=problem)
        view = node_view(1, event_loop_delays="2", event_loop_delay_seconds="9.00")
        self.assertEqual([], found(view))

    def test_copies(self) -> None:
        """Jobs that lack copies are a problem, with what to do about it."""
        fields = {"jobs_lacking_copies": "12", "copies_eta_seconds": "3"}
        for obstacle, advice in (("", "wait about 3 s"), ("no-node", "add one")):
            (finding,) = found(node_view(1, copies_obstacle=obstacle, **fields))
            self.assertIn("holds 12 jobs that have fewer copies", finding.what)
            self.assertIn(advice, finding.advice)
            self.assertTrue(is_problem(finding))

    def test_late_copy(self) -> None:
        """A copy that is made within a second is not told of, unless something is in the way."""
        fields = {"jobs_lacking_copies": "1", "copies_eta_seconds": "1"}
        self.assertEqual([], found(node_view(1, **fields)))
        self.assertEqual(1, len(found(node_view(1, copies_obstacle="no-answer", **fields))))

    def test_started_again(self) -> None:
        """While nobody knows what a node has lost by a restart, no other one is to be stopped."""
        self.only("asks 2 restarted nodes", node_view(1, holders_asked="2"), problem=False)

    def test_schedules(self) -> None:
        """Occurrences that made no job are found."""
        self.only("could not add 2 jobs of schedules", node_view(1, schedules_failed="2"))
        self.only("left out 3 occurrences", node_view(1, schedules_missed="3"), problem=False)

    def test_problems_first(self) -> None:
        """Problems come before notes, for those who read only the beginning."""
        view = attrs.evolve(node_view(1, loading="1"), paused=1)
        self.assertEqual([True, False], [is_problem(finding) for finding in found(view)])

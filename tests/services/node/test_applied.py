"""The effect of settings on a running node."""

from __future__ import annotations

from disque_tx.core.admission.clustername import name_mark
from disque_tx.services.node.applied import APPLY, apply_all
from disque_tx.services.node.identity import password_mark
from tests.services.nodebench import NodeCase


class AppliedTests(NodeCase):
    """Every setting takes effect."""

    def test_all(self) -> None:
        """At startup all settings are passed to the node."""
        settings = self.settings
        settings.maxmemory = 1_000_000_000
        settings.maxmemory_policy = "noeviction"
        settings.requirepass = b"secret"
        settings.slowlog_log_slower_than = 5
        settings.latency_monitor_threshold = 7
        settings.loglevel = "verbose"
        apply_all(settings, self.server, self.log)
        self.assertEqual(1_000_000_000, self.node.memory.limit)
        self.assertFalse(self.server.eviction_allowed)
        self.assertTrue(self.server.password_required)
        self.assertEqual(5, self.server.slowlog.slower_than_us)
        self.assertEqual(7, self.server.latency.threshold_ms)
        self.assertEqual("verbose", self.log.level)

    def test_cluster(self) -> None:
        """The settings of the cluster."""
        settings = self.settings
        settings.cluster_node_timeout = 3_000
        settings.cluster_meet_allow = ["10.0.0.1", "fd00::/8"]
        settings.cluster_announce_ip = "::ffff:192.0.2.1"
        settings.cluster_announce_port = 8000
        settings.cluster_announce_bus_port = 8001
        apply_all(settings, self.server, self.log)
        self.assertEqual(3_000, self.node.cluster.node_timeout_ms)
        allowed = [str(network) for network in self.node.cluster.meet_allow]
        self.assertEqual(["10.0.0.1/32", "fd00::/8"], allowed)
        myself = self.node.membership.myself
        self.assertEqual(b"192.0.2.1", self.node.membership.announced_ip)
        self.assertEqual((b"192.0.2.1", 8000, 8001), (myself.ip, myself.port, myself.bus_port))

    def test_lost_nodes(self) -> None:
        """When nodes are lost and forgotten, and what becomes of jobs then, is as it was set, at
        the start and later."""
        settings, node = self.settings, self.node
        for number in (3, 5):
            settings.replicate_again_after = 100 + number
            settings.replicate_again_rate = 200 + number
            settings.cluster_forget_after = 300 + number
            settings.cluster_discovery_interval = 400 + number
            settings.leaving_evacuates = number == 5
            apply_all(settings, self.server, self.log)
            self.assertEqual((100 + number) * 1_000, node.healing.nodes.after_ms)
            self.assertEqual(200 + number, node.healing.rate.per_s)
            self.assertEqual((300 + number) * 1_000, node.cluster.forgetting.after_ms)
            self.assertEqual((400 + number) * 1_000, node.cluster.discovery.interval_ms)
            self.assertEqual(number == 5, node.evacuation.automatic)

    def test_cluster_name(self) -> None:
        """The name of the cluster marks what is sent to strangers; the password does with discovery
        only, where it counts also when it is changed."""
        settings, kept = self.settings, self.node.membership.cluster_name
        settings.cluster_name, settings.requirepass = "shop", b"secret"
        apply_all(settings, self.server, self.log)
        self.assertEqual((b"shop", name_mark(b"shop") << 16), (kept.name, kept.mark))
        settings.cluster_discovery = ["static:10.0.0.1"]
        APPLY["requirepass"](settings, self.server, self.log)
        mark = password_mark(b"secret", b"shop")
        self.assertEqual(name_mark(b"shop") << 16 | mark, kept.mark)
        self.assertEqual((True, 0), (0 < mark < 1 << 16, password_mark(b"", b"shop")))
        self.assertNotEqual(mark, password_mark(b"other", b"shop"))
        self.assertNotEqual(mark, password_mark(b"secret", b"stage"))

    def test_ports(self) -> None:
        """By default other nodes are sent the port on which this node listens."""
        myself = self.node.membership.myself
        for cluster_bus_port, announced in ((0, 0), (17_711, 0), (7_000, 7_000)):
            self.settings.cluster_bus_port = cluster_bus_port
            apply_all(self.settings, self.server, self.log)
            self.assertEqual((7711, announced), (myself.port, myself.bus_port))

    def test_long_node_timeout(self) -> None:
        """However long the timeout is, values derived from it fit into 64 bits."""
        self.settings.cluster_node_timeout = 2**63 - 1
        apply_all(self.settings, self.server, self.log)
        self.assertLess(self.node.cluster.node_timeout_ms, 2**40)

    def test_slow_log_is_cut(self) -> None:
        """A shorter slow log drops its oldest entries."""
        self.settings.slowlog_log_slower_than = 0
        apply_all(self.settings, self.server, self.log)
        self.turn(*[b"PING"] * 10)
        self.settings.slowlog_max_len = 3
        APPLY["slowlog-max-len"](self.settings, self.server, self.log)
        self.settings.slowlog_log_slower_than = -1
        APPLY["slowlog-log-slower-than"](self.settings, self.server, self.log)
        self.assertEqual(b":3\r\n", self.turn(b"SLOWLOG LEN"))

    def test_less_memory(self) -> None:
        """A limit below current usage evicts what may be evicted, and logs a warning."""
        self.turn(*[b"ADDJOB q " + b"x" * 1000 + b" 0 RETRY 0"] * 20)
        self.turn(b"GETJOB COUNT 20 FROM q")
        used = self.node.memory.used
        self.settings.maxmemory = used // 2
        APPLY["maxmemory"](self.settings, self.server, self.log)
        self.assertLess(self.node.memory.used, used)
        self.assertIn("WARNING: the new maxmemory value", self.logged())

    def test_no_limit(self) -> None:
        """0 means no limit, and causes no warning."""
        self.settings.maxmemory = 0
        self.turn(b"ADDJOB q b 0")
        APPLY["maxmemory"](self.settings, self.server, self.log)
        self.assertEqual(0, self.node.memory.level())
        self.assertNotIn("WARNING", self.logged())

"""INFO: sections, fields and their order."""

from __future__ import annotations

from disque_tx import __version__
from disque_tx.commands.server.cluster import cluster
from disque_tx.commands.server.info import human, info
from disque_tx.commands.server.process import config
from disque_tx.messages.nodes import NodeEntry
from tests.commands.desk import DeskCase
from tests.core.bench import add_request

DEFAULT = ["Server", "Clients", "Memory", "Jobs", "Queues", "Persistence", "Stats", "CPU", "Totals"]
OPTIONAL = ["Commandstats", "Cluster", "Copies", "Discovery", "Eventlog", "Listening", "Policies"]
OPTIONAL += ["Processes", "Protocols", "Schedules"]


class InfoTests(DeskCase):
    """The text that monitoring tools parse."""

    def text(self, *words: bytes) -> str:
        """The reply as text."""
        answer = self.call(info, b"INFO", *words)
        assert isinstance(answer, bytes)
        return answer.decode()

    def titles(self, *words: bytes) -> list[str]:
        """The names of the sections in the reply."""
        return [line[2:] for line in self.text(*words).split("\r\n") if line.startswith("# ")]

    def fields(self, section: bytes) -> dict[str, str]:
        """The fields of one section."""
        lines = self.text(section).split("\r\n")[1:-1]
        return dict(line.split(":", 1) for line in lines)

    def add_job(self) -> None:
        """One job in one queue."""
        self.node.add_job(self.connect(b"x:1"), add_request(replicate=1))

    def test_sections(self) -> None:
        """All sections are included, except the statistics per command, which must be requested."""
        self.assertEqual(DEFAULT, self.titles())
        self.assertEqual(DEFAULT, self.titles(b"default"))
        self.assertEqual(
            [*DEFAULT, *OPTIONAL],
            self.titles(b"ALL"),
        )
        self.assertEqual(["Queues"], self.titles(b"queues"))

    def test_layout(self) -> None:
        """Lines end with CRLF, sections are one empty line apart."""
        self.assertEqual("# Queues\r\nregistered_queues:0\r\n", self.text(b"Queues"))
        whole = self.text()
        self.assertIn("# Jobs\r\nregistered_jobs:0\r\n", whole)
        self.assertIn("\r\n\r\n# Queues\r\nregistered_queues:0\r\n\r\n# P", whole)
        self.assertIn("used_cpu_user:0.00\r\n\r\n# Totals\r\n", whole)

    def test_copies(self) -> None:
        """What is known of copies that are lacking, and why they are not made."""
        fields = self.fields(b"copies")
        self.assertEqual(
            ("0", "0", "", "0", "0"),
            tuple(
                fields[name]
                for name in (
                    "jobs_lacking_copies",
                    "copies_eta_seconds",
                    "copies_obstacle",
                    "holders_lost",
                    "holders_asked",
                )
            ),
        )
        self.node.healing.lacking = 4_000
        fields = self.fields(b"copies")
        self.assertEqual(
            ("4000", "3"), (fields["jobs_lacking_copies"], fields["copies_eta_seconds"])
        )
        self.node.healing.rate.set(0)
        self.assertEqual("paused", self.fields(b"copies")["copies_obstacle"])

    def test_unknown(self) -> None:
        """An unknown section is empty, two sections are an error."""
        self.assertEqual("", self.text(b"nosuchsection"))
        self.assert_refused(b"ERR syntax error", info, b"INFO", b"a", b"b")

    def test_clients(self) -> None:
        """The largest buffers of all clients."""
        self.connect(b"x:2")
        self.control.buffers = {1: (5, 1, 9), 2: (700, 1, 1)}
        expected = {
            "connected_clients": "2",
            "client_longest_output_list": "9",
            "client_biggest_input_buf": "700",
            "blocked_clients": "0",
        }
        self.assertEqual(expected, self.fields(b"clients"))

    def test_blocked_clients(self) -> None:
        """A waiting GETJOB is counted."""
        self.node.get_jobs(self.connect(b"x:2"), [b"q"], 1, 0, False, False)
        self.assertEqual("1", self.fields(b"clients")["blocked_clients"])

    def test_jobs_and_queues(self) -> None:
        """Jobs and queues are counted."""
        self.add_job()
        self.assertEqual({"registered_jobs": "1"}, self.fields(b"jobs"))
        self.assertEqual({"registered_queues": "1"}, self.fields(b"queues"))

    def test_totals(self) -> None:
        """The first questions of an operator: what was added and delivered, what is queued, and for
        how long."""
        self.add_job()
        self.add_job()
        self.node.get_jobs(self.connect(b"x:2"), [b"q"], 1, 0, True, False)
        self.node.begin(self.node.now_ms + 2_500, self.node.wall_us + 2_500_000)
        self.node.memory.limit = self.node.memory.used * 100 // 80
        expected = {
            "disque_tx_version": __version__,
            "total_jobs_added": "2",
            "total_jobs_delivered": "1",
            "total_jobs_acked": "0",
            "total_jobs_nacked": "0",
            "total_jobs_requeued": "0",
            "total_jobs_expired": "0",
            "total_jobs_evicted": "0",
            "total_jobs_dropped": "0",
            "total_jobs_overflowed": "0",
            "total_jobs_flushed": "0",
            "total_jobs_returned": "0",
            "queued_jobs": "1",
            "jobs_in_flight": "1",
            "jobs_in_hand": "1",
            "oldest_queued_job_age_seconds": "2",
            "reachable_nodes": "0",
            "maxmemory": str(self.node.memory.limit),
            "memory_level": "above-75-percent",
        }
        self.assertEqual(expected, self.fields(b"totals"))
        self.call(config, b"CONFIG", b"RESETSTAT")
        after = self.fields(b"totals")
        self.assertEqual(("0", "1"), (after["total_jobs_added"], after["queued_jobs"]))

    def test_drain(self) -> None:
        """An operator can watch how far a leaving node has been drained."""
        self.membership.add(NodeEntry(b"b" * 40, b"10.0.0.2", 7711, 0, 0))
        self.node.add_job(self.connect(b"x:1"), add_request(replicate=2))
        self.node.acknowledge([b"D-cccccccc-%024d-05a1" % 1])
        self.membership.set_leaving(True)
        expected = {"registered_jobs": "2", "acked_jobs": "1"}
        expected |= {"jobs_waiting_for_copies": "1", "leaving": "yes"}
        self.assertEqual(expected, self.fields(b"jobs"))

    def test_discovery(self) -> None:
        """What the sources of addresses answer is shown source by source, with the reason of one
        that fails."""
        discovery = self.node.cluster.discovery
        discovery.found("dns:n.example", [(b"10.0.0.2", 7711, 0)], self.node.now_ms)
        discovery.failed("file:/nodes", "line 3: 'a b' is not a host")
        self.node.begin(self.node.now_ms + 7_900, self.node.wall_us + 7_900_000)
        fields = self.fields(b"discovery")
        self.assertEqual(("2", "1"), (fields["discovery_sources"], fields["discovery_addresses"]))
        self.assertEqual("file:/nodes: line 3: 'a b' is not a host", fields["discovery_error"])
        self.assertEqual(
            "addresses=1,failures=0,answered_seconds_ago=7,source=dns:n.example",
            fields["discovery_source_0"],
        )
        failing = "addresses=0,failures=1,answered_seconds_ago=-1,source=file:/nodes"
        self.assertEqual(failing, fields["discovery_source_1"])

    def test_cluster(self) -> None:
        """Refused and ignored messages on the bus are counted, in addition to the original's
        fields."""
        self.membership.messages_ignored, self.membership.meets_refused = 7, 8
        self.membership.cluster_name.set(b"shop", 0)
        self.membership.cluster_name.refused = 9
        expected = {"cluster_stats_messages_ignored": "7", "cluster_meets_refused": "8"}
        self.node.cluster.forgetting.count = 4
        expected |= {"cluster_nodes_forgotten": "4"}
        expected |= {"cluster_name": "shop", "cluster_names_refused": "9"}
        expected |= {"acked_jobs": "0", "jobs_waiting_for_copies": "0", "leaving": "no"}
        expected |= {"cluster_twins": "0", "cluster_twin_messages": "0"}
        expected |= {"cluster_clock_ahead_seconds": "0.000", "cluster_clocks_apart": "0"}
        expected |= {"cluster_standing_aside": "no"}
        self.assertEqual(expected, self.fields(b"cluster"))

    def test_twins(self) -> None:
        """Processes that share a node ID are counted, and the one that stepped aside reports it.
        CLUSTER INFO then has one more field, at its end, where clients of the original ignore
        it."""
        identity = self.membership.identity
        identity.suspended = identity.contested = True
        fields = self.fields(b"cluster")
        self.assertEqual(("1", "yes"), (fields["cluster_twins"], fields["cluster_standing_aside"]))
        text = self.call(cluster, b"CLUSTER", b"INFO")
        assert isinstance(text, bytes)
        self.assertEqual(b"cluster_twins:1", text.splitlines()[-1])

    def test_memory(self) -> None:
        """Current and peak memory, in bytes and in readable units."""
        self.add_job()
        used = self.node.used_memory()
        self.node.flush_all()
        fields = self.fields(b"memory")
        expected = [
            "used_memory",
            "used_memory_human",
            "used_memory_rss",
            "used_memory_peak",
            "used_memory_peak_human",
            "mem_fragmentation_ratio",
            "mem_allocator",
        ]
        self.assertEqual(expected, list(fields))
        self.assertEqual(str(used), fields["used_memory_peak"])
        self.assertEqual("0.00", fields["mem_fragmentation_ratio"])

    def test_human(self) -> None:
        """Two decimals in the largest unit that fits."""
        cases = ((0, "0B"), (1023, "1023B"), (1024, "1.00K"), (1 << 30, "1.00G"), (1536, "1.50K"))
        for size, text in cases:
            self.assertEqual(text, human(size))
        self.assertEqual("2048.00P", human(1 << 61))

    def test_stats(self) -> None:
        """Counters, and sampled rates."""
        stats = self.server.stats
        stats.tick(0)
        stats.connections_received = 1
        stats.commands_processed = 16
        stats.net_input_bytes = 2048
        stats.net_output_bytes = 4096
        stats.rejected_connections = 5
        stats.latest_fork_us = 6
        stats.tick(100)
        expected = {
            "total_connections_received": "1",
            "total_commands_processed": "16",
            "instantaneous_ops_per_sec": "10",
            "total_net_input_bytes": "2048",
            "total_net_output_bytes": "4096",
            "instantaneous_input_kbps": "1.25",
            "instantaneous_output_kbps": "2.50",
            "rejected_connections": "5",
            "latest_fork_usec": "6",
        }
        got = self.fields(b"stats")
        self.assertEqual(expected, got)
        self.assertEqual(list(expected), list(got))

    def test_commandstats(self) -> None:
        """Only commands that ran, in table order, under their original names."""
        registry = self.server.registry
        registry.rename(b"auth", b"login")
        for name, calls, ns in ((b"addjob", 3, 10_000), (b"login", 1, 1_500)):
            registry.by_name[name].calls, registry.by_name[name].ns = calls, ns
        self.assertEqual(
            "# Commandstats\r\n"
            "cmdstat_auth:calls=1,usec=1,usec_per_call=1.50\r\n"
            "cmdstat_addjob:calls=3,usec=10,usec_per_call=3.33\r\n",
            self.text(b"commandstats"),
        )

    def test_outside(self) -> None:
        """Fields that only the process knows are passed through unchanged."""
        self.assertEqual("1.0-rc1", self.fields(b"server")["disque_version"])
        self.control.is_loading = True
        self.assertEqual("1", self.fields(b"persistence")["loading"])

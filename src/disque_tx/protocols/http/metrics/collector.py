"""The metrics of a node, as Prometheus' client library takes them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from disque_tx.protocols.http.metrics.sums import Figures

#: Name, help and field of INFO.
_COUNTERS: Final = (
    ("disque_jobs_added", "Jobs added by clients of this node", "total_jobs_added"),
    ("disque_jobs_delivered", "Deliveries to clients of this node", "total_jobs_delivered"),
    ("disque_jobs_acked", "Jobs acknowledged by clients of this node", "total_jobs_acked"),
    ("disque_jobs_nacked", "Jobs returned with NACK", "total_jobs_nacked"),
    ("disque_jobs_requeued", "Jobs queued again, nearly always after RETRY", "total_jobs_requeued"),
    ("disque_jobs_expired", "Jobs whose TTL ended", "total_jobs_expired"),
    ("disque_jobs_evicted", "Jobs removed to make room", "total_jobs_evicted"),
    ("disque_copies_made_again", "Copies made in the place of lost ones", "copies_made_again"),
    ("disque_copies_failed", "Jobs for which no node confirmed one", "copies_failed"),
    ("disque_jobs_dropped", "Jobs given up or deleted by command", "total_jobs_dropped"),
    ("disque_connections_received", "Connections accepted", "total_connections_received"),
    ("disque_connections_rejected", "Connections refused", "rejected_connections"),
    ("disque_commands_processed", "Commands executed", "total_commands_processed"),
    ("disque_net_input_bytes", "Bytes received from clients", "total_net_input_bytes"),
    ("disque_net_output_bytes", "Bytes sent to clients", "total_net_output_bytes"),
    ("disque_cluster_names_refused", "Strangers of other clusters", "cluster_names_refused"),
    ("disque_cluster_nodes_forgotten", "Failed nodes forgotten", "cluster_nodes_forgotten"),
    ("disque_discovery_lookups_failed", "Lookups of nodes failed", "discovery_lookups_failed"),
    ("disque_discovery_meets", "Addresses found and tried", "discovery_meets"),
    ("disque_aof_syncs", "Syncs of the log", "aof_syncs"),
    ("disque_aof_sync_seconds", "Time that they took", "aof_sync_seconds"),
    ("disque_aof_delayed_syncs", "Syncs of the log that were late", "aof_delayed_fsync"),
)  # fmt: skip
_GAUGES: Final = (
    ("disque_processes", "Processes of the daemon that are in these figures", "processes_counted"),
    ("disque_jobs_registered", "Jobs known to this node, copies included", "registered_jobs"),
    ("disque_jobs_queued", "Jobs in queues", "queued_jobs"),
    ("disque_jobs_in_flight", "Jobs in flight", "jobs_in_flight"),
    ("disque_jobs_lacking_copies", "Jobs with fewer copies than wanted", "jobs_lacking_copies"),
    ("disque_evacuation_left", "Jobs that a leaving node has to give away", "evacuation_left"),
    ("disque_queues", "Queues", "registered_queues"),
    ("disque_clock_ahead_seconds", "Own clock beyond most others", "cluster_clock_ahead_seconds"),
    ("disque_clocks_apart", "Nodes with another clock than most", "cluster_clocks_apart"),
    ("disque_discovery_sources_failing", "Sources that fail", "discovery_sources_failing"),
    ("disque_discovery_addresses", "Addresses found", "discovery_addresses"),
    ("disque_oldest_age_seconds", "Longest wait of a queued job", "oldest_queued_job_age_seconds"),
    ("disque_clients", "Connected clients", "connected_clients"),
    ("disque_clients_blocked", "Clients that wait", "blocked_clients"),
    ("disque_memory_used_bytes", "Memory that jobs and queues take", "used_memory"),
    ("disque_memory_limit_bytes", "maxmemory", "maxmemory"),
    ("disque_memory_resident_bytes", "Memory of the process", "used_memory_rss"),
    ("disque_uptime_seconds", "Since the start of the process", "uptime_in_seconds"),
    ("disque_event_loop_delays", "Of 1 s or more, last minute", "event_loop_delays"),
    ("disque_event_loop_delay_seconds", "Longest, last minute", "event_loop_delay_seconds"),
    ("disque_certificate_seconds", "Until one expires", "certificate_expires_in_seconds"),
    ("disque_aof_size_bytes", "Size of the log", "aof_current_size"),
    ("disque_aof_rewrite_in_progress", "The log is being rewritten", "aof_rewrite_in_progress"),
)
#: Name, help and field of the figures of a protocol.
_PROTOCOLS: Final = (
    ("connections", "Connections accepted", "connections"),
    ("commands", "Commands executed", "commands"),
    ("errors", "Requests refused at once", "errors"),
    ("input_bytes", "Bytes received", "input_bytes"),
    ("output_bytes", "Bytes sent", "output_bytes"),
)
#: Tables that all nodes have alike: name, and field of INFO.
_TABLES: Final = (
    ("policies", "policies_changes_refused"),
    ("schedules", "schedules_changes_refused"),
)
_CPU: Final = (("user", "used_cpu_user"), ("system", "used_cpu_sys"))


class NodeCollector(Collector):
    """Makes metrics of the figures of a node, or of the sums of several."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def describe(self) -> list[Metric]:
        """Return no descriptions: names are not checked by collecting everything once."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All families."""
        info = self._figures["info"]
        yield InfoMetricFamily(
            "disque_build",
            "The program",
            {"version": info["disque_tx_version"], "protocol": info["disque_version"]},
        )
        for name, text, field in _COUNTERS:
            if field in info:
                yield CounterMetricFamily(name, text, float(info[field]))
        for name, text, field in _GAUGES:
            if field in info:
                yield GaugeMetricFamily(name, text, float(info[field]))
        cpu = CounterMetricFamily("disque_cpu_seconds", "Time of the processor", labels=["mode"])
        for mode, field in _CPU:
            cpu.add_metric([mode], float(info[field]))
        yield cpu
        refused = CounterMetricFamily(
            "disque_table_changes_refused", "Changes by other nodes refused", labels=["table"]
        )
        for table, field in _TABLES:
            refused.add_metric([table], float(info[field]))
        yield refused
        yield from self._commands()
        yield from self._protocols()
        yield from self._states()
        wait, run = self._figures["wait"], self._figures["run"]
        yield _histogram(
            "disque_job_wait_seconds", "From queueing, after any DELAY, to delivery", wait
        )
        yield _histogram("disque_job_run_seconds", "From delivery to acknowledgement", run)

    def _commands(self) -> Iterator[Metric]:
        calls = CounterMetricFamily(
            "disque_command_calls", "Calls of a command", labels=["command"]
        )
        times = CounterMetricFamily(
            "disque_command_seconds", "Time spent on it", labels=["command"]
        )
        for name, count, spent_us in self._figures["commands"]:
            calls.add_metric([name], count)
            times.add_metric([name], spent_us / 1_000_000)
        yield calls
        yield times

    def _protocols(self) -> Iterator[Metric]:
        figures = self._figures["protocols"]
        connected = GaugeMetricFamily(
            "disque_protocol_clients", "Connected clients of a protocol", labels=["protocol"]
        )
        for of in figures:
            connected.add_metric([of["name"]], of["connected"])
        yield connected
        for name, text, field in _PROTOCOLS:
            family = CounterMetricFamily(f"disque_protocol_{name}", text, labels=["protocol"])
            for of in figures:
                family.add_metric([of["name"]], of[field])
            yield family

    def _states(self) -> Iterator[Metric]:
        nodes = GaugeMetricFamily(
            "disque_cluster_nodes", "Nodes that this one knows", labels=["state"]
        )
        for state, count in self._figures["nodes"].items():
            nodes.add_metric([state], count)
        yield nodes
        yield GaugeMetricFamily(
            "disque_leaving", "The node is leaving", int(self._figures["leaving"])
        )
        yield GaugeMetricFamily(
            "disque_aof_write_ok", "The log can be written", int(self._figures["write_ok"])
        )


def _histogram(name: str, text: str, durations: dict[str, Any]) -> Metric:
    bounds = (*map(str, durations["bounds_s"]), "+Inf")
    buckets = zip(bounds, map(float, accumulate(durations["counts"])), strict=True)
    return HistogramMetricFamily(name, text, list(buckets), durations["sum_s"])

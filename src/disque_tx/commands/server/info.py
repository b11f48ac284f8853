"""INFO: the state of the process as text (client protocol, section 10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from disque_tx import __version__
from disque_tx.commands.base.context import Command, Server
from disque_tx.commands.base.stats import ProtocolStats
from disque_tx.commands.jobs.retries import retry_fields
from disque_tx.commands.server.discoveryinfo import discovery_fields
from disque_tx.core.base.client import Client
from disque_tx.core.tables.table import SharedTable
from disque_tx.errors import syntax_error

#: The protocol of Disque's clients.
RESP: Final = "resp"
Fields = list[tuple[str, str]]
#: Nodes named in one field, those with the most first.
_SENDERS_SHOWN: Final = 10
_UNITS: Final = ("K", "M", "G", "T", "P")


def info(server: Server, client: Client, argv: list[bytes]) -> None:
    """INFO [section]; an unknown section is an empty one."""
    if len(argv) > 2:
        raise syntax_error()
    word = argv[1].decode("latin-1").lower() if len(argv) == 2 else "default"
    client.replies.bulk(info_text(server, word).encode("utf-8", "surrogateescape"))


def info_text(server: Server, word: str) -> str:
    """The sections that ``word`` names, in their order, lines ended by CRLF."""
    sections: list[str] = []
    for title, fields in _SECTIONS.items():
        wanted = word in (title.lower(), "all") or (word == "default" and title not in _OPTIONAL)
        if wanted:
            lines = [f"{name}:{value}\r\n" for name, value in fields(server)]
            sections.append(f"# {title}\r\n" + "".join(lines))
    return "\r\n".join(sections)


def human(size: int) -> str:
    """Bytes in the largest unit that leaves a number of at least 1."""
    if size < 1024:
        return f"{size}B"
    value, unit = float(size), "B"
    for larger in _UNITS:
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.2f}{unit}"


def _server(server: Server) -> Fields:
    return server.control.info_server()


def _clients(server: Server) -> Fields:
    longest_output = biggest_input = 0
    for client in server.clients.values():
        unread, _, pieces = server.control.client_buffers(client)
        longest_output = max(longest_output, pieces)
        biggest_input = max(biggest_input, unread)
    return [
        ("connected_clients", str(len(server.clients))),
        ("client_longest_output_list", str(longest_output)),
        ("client_biggest_input_buf", str(biggest_input)),
        ("blocked_clients", str(server.node.blocked_clients)),
    ]


def _memory(server: Server) -> Fields:
    used, peak = server.node.used_memory(), server.node.peak_memory
    process = dict(server.control.info_memory())
    resident = int(process["used_memory_rss"])
    return [
        ("used_memory", str(used)),
        ("used_memory_human", human(used)),
        ("used_memory_rss", str(resident)),
        ("used_memory_peak", str(peak)),
        ("used_memory_peak_human", human(peak)),
        ("mem_fragmentation_ratio", f"{resident / max(used, 1):.2f}"),
        ("mem_allocator", process["mem_allocator"]),
    ]


def _jobs(server: Server) -> Fields:
    """A leaving node also reports what is still to be done before it can be stopped."""
    registered = [("registered_jobs", str(len(server.node.jobs)))]
    return registered + _drain(server) if server.node.membership.leaving else registered


def _drain(server: Server) -> Fields:
    node = server.node
    return [
        ("acked_jobs", str(node.jobs.acked)),
        ("jobs_waiting_for_copies", str(len(node.waiters.copies))),
        ("leaving", "yes" if node.membership.leaving else "no"),
    ]


def _cluster(server: Server) -> Fields:
    """Fields that the original's CLUSTER INFO, whose fields are fixed, does not have."""
    membership = server.node.membership
    server.node.state.clocks.update(server.node.now_ms)
    return [
        ("cluster_stats_messages_ignored", str(membership.messages_ignored)),
        ("cluster_meets_refused", str(membership.meets_refused)),
        ("cluster_name", membership.cluster_name.name.decode("latin-1")),
        ("cluster_names_refused", str(membership.cluster_name.refused)),
        ("cluster_nodes_forgotten", str(server.node.cluster.forgetting.count)),
        ("cluster_twins", str(server.node.cluster.duplicate_ids())),
        ("cluster_twin_messages", str(membership.identity.duplicate_messages)),
        ("cluster_standing_aside", "yes" if membership.identity.suspended else "no"),
        ("cluster_clock_ahead_seconds", f"{int(server.node.state.clocks.ahead_ms) / 1000:.3f}"),
        ("cluster_clocks_apart", str(server.node.state.clocks.count)),
        *_drain(server),
    ]


def _copies(server: Server) -> Fields:
    """Copies that are made again, and jobs that a leaving node gives away."""
    node, healing = server.node, server.node.healing
    rate = healing.rate.per_s
    eta_s = healing.lacking // rate + 1 if healing.lacking and rate else 0
    return [
        ("jobs_lacking_copies", str(healing.lacking)),
        ("copies_made_again", str(node.totals.copies_made)),
        ("copies_failed", str(node.totals.copies_failed)),
        ("copies_under_way", str(len(healing.repairs.by_job))),
        ("copies_eta_seconds", str(eta_s)),
        ("copies_obstacle", healing.why_not()),
        ("holders_lost", str(len(healing.nodes.lost))),
        ("holders_asked", str(len(healing.restarts.asked))),
        ("walk_progress", f"{healing.progress():.2f}"),
        ("evacuating", "yes" if node.evacuation.active else "no"),
        ("evacuation_left", str(node.evacuation.left)),
        ("evacuation_moved", str(node.evacuation.moved)),
        ("evacuation_eta_s", str(node.evacuation.eta_s())),
        ("evacuation_obstacle", node.evacuation.obstacle),
    ]


def _queues(server: Server) -> Fields:
    return [("registered_queues", str(len(server.node.queues)))]


def _persistence(server: Server) -> Fields:
    return server.control.info_persistence()


def _stats(server: Server) -> Fields:
    stats = server.stats
    return [
        ("total_connections_received", str(stats.connections_received)),
        ("total_commands_processed", str(stats.commands_processed)),
        ("instantaneous_ops_per_sec", str(int(stats.ops.per_second()))),
        ("total_net_input_bytes", str(stats.net_input_bytes)),
        ("total_net_output_bytes", str(stats.net_output_bytes)),
        ("instantaneous_input_kbps", f"{stats.net_input.per_second() / 1024:.2f}"),
        ("instantaneous_output_kbps", f"{stats.net_output.per_second() / 1024:.2f}"),
        ("rejected_connections", str(stats.rejected_connections)),
        ("latest_fork_usec", str(stats.latest_fork_us)),
    ]


def _totals(server: Server) -> Fields:
    """What the original does not count; see :class:`disque_tx.core.base.totals.Totals`."""
    node, totals = server.node, server.node.totals
    waited_ms = node.queues.longest_wait_ms(node.now_ms)
    return [
        ("disque_tx_version", __version__),
        ("total_jobs_added", str(totals.added)),
        ("total_jobs_delivered", str(totals.delivered)),
        ("total_jobs_acked", str(totals.acked)),
        ("total_jobs_nacked", str(totals.nacked)),
        ("total_jobs_requeued", str(totals.requeued)),
        ("total_jobs_expired", str(totals.expired)),
        ("total_jobs_evicted", str(totals.evicted)),
        ("total_jobs_dropped", str(totals.dropped)),
        ("total_jobs_overflowed", str(totals.overflowed)),
        ("total_jobs_flushed", str(totals.flushed)),
        ("total_jobs_returned", str(totals.returned)),
        ("queued_jobs", str(totals.queued)),
        ("jobs_in_flight", str(totals.in_flight)),
        ("jobs_in_hand", str(totals.in_flight)),  # the name in 1.0.0; goes with 2.0
        ("oldest_queued_job_age_seconds", str(max(0, waited_ms) // 1000)),
        ("reachable_nodes", str(len(node.membership.reachable))),
        ("maxmemory", str(node.memory.limit)),
        ("memory_level", _LEVELS[node.memory.level()]),
    ]


def _cpu(server: Server) -> Fields:
    return server.control.info_cpu()


def _eventlog(server: Server) -> Fields:
    return server.control.info_eventlog()


def _listening(server: Server) -> Fields:
    return server.control.info_listening()


def _processes(server: Server) -> Fields:
    return server.control.info_processes()


def _policies(server: Server) -> Fields:
    """The table of policies, and what became of jobs by the policies of their queues."""
    table, policies = server.node.policy_table, server.node.policies
    return [
        ("policies_patterns", str(len(policies))),
        ("policies_registers", str(len(table.registers))),
        ("policies_digest", f"{table.registers.digest:016x}"),
        ("policies_changes_received", str(table.received)),
        ("policies_changes_refused", str(table.refused.total)),
        *_table_fields("policies", table),
        *retry_fields(server),
        ("keys", str(len(server.node.keys))),
        ("total_keys_refused", str(server.node.totals.keys_refused)),
        ("total_keys_dropped", str(server.node.totals.keys_dropped)),
        ("total_keys_doubled", str(server.node.totals.keys_doubled)),
    ]


def _table_fields(what: str, table: SharedTable) -> Fields:
    """Of one table that all nodes have alike."""
    refused = table.refused.by_sender
    senders = [
        f"{node_id.decode('latin-1')}={refused[node_id]}"
        for node_id in sorted(refused, key=refused.__getitem__, reverse=True)
    ]
    return [
        (f"{what}_generation", str(table.registers.generation)),
        (f"{what}_unknown", str(len(table.unknown))),
        (f"{what}_unknown_dropped", str(table.unknown.dropped)),
        (f"{what}_refused_from", ",".join(senders[:_SENDERS_SHOWN])),
    ]


def _schedules(server: Server) -> Fields:
    """The table of schedules, and what became of their occurrences at this node."""
    table, recurring = server.node.timetable, server.node.recurring
    return [
        ("schedules", str(len(table.definitions))),
        ("schedules_registers", str(len(table.registers))),
        ("schedules_digest", f"{table.registers.digest:016x}"),
        ("schedules_changes_received", str(table.received)),
        ("schedules_changes_refused", str(table.refused.total)),
        *_table_fields("schedules", table),
        ("schedules_made", str(recurring.made)),
        ("schedules_missed", str(recurring.missed)),
        ("schedules_failed", str(recurring.failed)),
    ]


def _commandstats(server: Server) -> Fields:
    return [
        ("cmdstat_" + command.name.decode("ascii"), _calls(command))
        for command in server.registry.table
        if command.calls
    ]


def _calls(command: Command) -> str:
    total_us = float(command.ns) / 1000
    mean_us = total_us / float(command.calls)
    return f"calls={command.calls},usec={int(total_us)},usec_per_call={mean_us:.2f}"


def protocol_stats(server: Server) -> list[tuple[str, ProtocolStats]]:
    """Every protocol in use, RESP first. RESP is what the others leave of the totals, so that its
    requests cost nothing more."""
    stats = server.stats
    resp = ProtocolStats()
    resp.connected = len(server.clients)
    resp.connections = stats.connections_received
    resp.input_bytes = stats.net_input_bytes
    resp.output_bytes = stats.net_output_bytes
    resp.commands = stats.commands_processed
    resp.errors = stats.errors
    for other in stats.protocols.values():
        resp.connected -= other.connected
        resp.connections -= other.connections
        resp.input_bytes -= other.input_bytes
        resp.output_bytes -= other.output_bytes
        resp.commands -= other.commands
        resp.errors -= other.errors
    return [(RESP, resp), *sorted(stats.protocols.items())]


def protocol_fields(server: Server) -> list[tuple[str, str]]:
    """The fields of INFO's section Protocols."""
    return [
        (
            f"protocol_{name}",
            f"connected={of.connected},connections={of.connections},commands={of.commands}"
            f",errors={of.errors},input_bytes={of.input_bytes},output_bytes={of.output_bytes}",
        )
        for name, of in protocol_stats(server)
    ]


#: What the thresholds at 75 and 95 % of maxmemory mean.
_LEVELS: Final = ("normal", "above-75-percent", "above-95-percent")
#: Sections that are only included when they are asked for.
_OPTIONAL: Final = (
    "Commandstats",
    "Cluster",
    "Copies",
    "Discovery",
    "Eventlog",
    "Listening",
    "Policies",
    "Processes",
    "Protocols",
    "Schedules",
)
_SECTIONS: Final[dict[str, Callable[[Server], Fields]]] = {
    "Server": _server,
    "Clients": _clients,
    "Memory": _memory,
    "Jobs": _jobs,
    "Queues": _queues,
    "Persistence": _persistence,
    "Stats": _stats,
    "CPU": _cpu,
    "Totals": _totals,
    "Commandstats": _commandstats,
    "Cluster": _cluster,
    "Copies": _copies,
    "Discovery": discovery_fields,
    "Eventlog": _eventlog,
    "Listening": _listening,
    "Policies": _policies,
    "Processes": _processes,
    "Protocols": protocol_fields,
    "Schedules": _schedules,
}

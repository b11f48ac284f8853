"""INFO processes: what each process of the daemon reports, and the sums."""

from __future__ import annotations

from typing import Any, Final

from disque_tx.commands.context import Server
from disque_tx.services.host.process import resident_bytes

Figures = dict[str, int]

#: What is summed, under the names that INFO of one node has.
SUMMED: Final = (
    *("connected_clients", "blocked_clients", "used_memory", "used_memory_rss", "registered_jobs"),
    *("instantaneous_ops_per_sec", "total_connections_received", "total_commands_processed"),
    *("total_jobs_added", "total_jobs_delivered", "total_jobs_acked", "queued_jobs"),
)
#: Those that only grow.
COUNTERS: Final = tuple(name for name in SUMMED if name.startswith("total_"))


def figures(server: Server) -> Figures:
    """The figures of one node; costs the same however many clients and jobs there are."""
    node, stats, totals = server.node, server.stats, server.node.totals
    return {
        "connected_clients": len(server.clients),
        "blocked_clients": node.blocked_clients,
        "used_memory": node.used_memory(),
        "used_memory_rss": resident_bytes(),
        "registered_jobs": len(node.jobs),
        "instantaneous_ops_per_sec": int(stats.ops.per_second()),
        "total_connections_received": stats.connections_received,
        "total_commands_processed": stats.commands_processed,
        "total_jobs_added": totals.added,
        "total_jobs_delivered": totals.delivered,
        "total_jobs_acked": totals.acked,
        "queued_jobs": totals.queued,
    }


def fields(processes: list[dict[str, Any]], ended: Figures) -> list[tuple[str, str]]:
    """INFO's section Processes. ``processes``: of each one what the parent knows of it, with
    ``figures``, which may be empty. ``ended``: counters of those that have ended."""
    lines = [("processes", str(len(processes)))]
    for name in SUMMED:
        total = sum(one["figures"].get(name, 0) for one in processes) + ended.get(name, 0)
        lines.append((f"all_{name}", str(total)))
    lines += [(f"process_{one['number']}", _line(one)) for one in processes]
    return lines


def _line(one: dict[str, Any]) -> str:
    seen: Figures = one["figures"]
    parts = {
        "pid": one["pid"],
        "port": one["port"],
        "node": one["id"],
        "state": one["state"],
        "clients": seen.get("connected_clients", 0),
        "jobs": seen.get("registered_jobs", 0),
        "uptime": one["uptime"],
        "restarts": one["restarts"],
    }
    return ",".join(f"{name}={value}" for name, value in parts.items())

"""How each setting is applied to the running node, at start and after CONFIG SET."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_network
from typing import TYPE_CHECKING, Final

from disque_tx.core.eviction import evict
from disque_tx.core.nodes.addresses import normal_ip, plain_ip
from disque_tx.services.node.identity import password_mark

if TYPE_CHECKING:
    from disque_tx.commands.base.context import Server
    from disque_tx.config.settings import Settings
    from disque_tx.services.machine.log import DaemonLog

#: Ten years: longer ones would not fit into what is computed from them.
_NODE_TIMEOUT_MS_MAX: Final = 10 * 366 * 86_400_000

Apply = Callable[["Settings", "Server", "DaemonLog"], None]


def _maxmemory(settings: Settings, server: Server, log: DaemonLog) -> None:
    memory = server.node.memory
    memory.limit = settings.maxmemory
    if 0 < settings.maxmemory < memory.used:
        log.warning(
            "WARNING: the new maxmemory value set via CONFIG SET is smaller than the current memory"
            " usage. Jobs may be evicted or new ones refused."
        )
    evict(server.node, server.eviction_allowed, server.node.random)


def _policy(settings: Settings, server: Server, log: DaemonLog) -> None:
    server.eviction_allowed = settings.maxmemory_policy != "noeviction"


def _policies(settings: Settings, server: Server, log: DaemonLog) -> None:
    server.node.policies.set_directives(settings.policies)


def _password(settings: Settings, server: Server, log: DaemonLog) -> None:
    server.password_required = bool(settings.requirepass)
    _cluster_name(settings, server, log)


def _slow(settings: Settings, server: Server, log: DaemonLog) -> None:
    server.slowlog.slower_than_us = settings.slowlog_log_slower_than


def _slow_length(settings: Settings, server: Server, log: DaemonLog) -> None:
    server.slowlog.set_length(settings.slowlog_max_len)


def _latency(settings: Settings, server: Server, log: DaemonLog) -> None:
    server.latency.threshold_ms = settings.latency_monitor_threshold


def _history(settings: Settings, server: Server, log: DaemonLog) -> None:
    server.node.state.history.set_active(settings.history)


def _level(settings: Settings, server: Server, log: DaemonLog) -> None:
    log.level = settings.loglevel


def _node_timeout(settings: Settings, server: Server, log: DaemonLog) -> None:
    timeout_ms = min(settings.cluster_node_timeout, _NODE_TIMEOUT_MS_MAX)
    server.node.cluster.node_timeout_ms = timeout_ms


def _again_after(settings: Settings, server: Server, log: DaemonLog) -> None:
    server.node.healing.set_after(settings.replicate_again_after * 1_000)


def _again_rate(settings: Settings, server: Server, log: DaemonLog) -> None:
    server.node.healing.rate.set(settings.replicate_again_rate)


def _leaving_evacuates(settings: Settings, server: Server, log: DaemonLog) -> None:
    server.node.evacuation.automatic = settings.leaving_evacuates


def _meet_allow(settings: Settings, server: Server, log: DaemonLog) -> None:
    server.node.cluster.meet_allow = [ip_network(text) for text in settings.cluster_meet_allow]


def _cluster_name(settings: Settings, server: Server, log: DaemonLog) -> None:
    """The name of the cluster. The password counts, too, where nodes are found without an operator:
    who introduces a node by hand has named it."""
    name = settings.cluster_name.encode()
    password = settings.requirepass if settings.cluster_discovery else b""
    server.node.membership.cluster_name.set(name, password_mark(password, name))


def _discovery_interval(settings: Settings, server: Server, log: DaemonLog) -> None:
    interval_ms = settings.cluster_discovery_interval * 1_000
    server.node.cluster.discovery.interval_ms = interval_ms


def _forget_after(settings: Settings, server: Server, log: DaemonLog) -> None:
    server.node.cluster.forgetting.after_ms = settings.cluster_forget_after * 1_000


def _announce(settings: Settings, server: Server, log: DaemonLog) -> None:
    """The address that this node announces to others."""
    server.node.membership.announce(
        plain_ip(normal_ip(settings.cluster_announce_ip.encode())),
        settings.cluster_announce_port or settings.port,
        settings.cluster_announce_bus_port or settings.cluster_bus_port,
    )


#: Directive → what follows from its value. What is read where it is used has no entry.
APPLY: Final[dict[str, Apply]] = {
    "maxmemory": _maxmemory,
    "maxmemory-policy": _policy,
    "policy": _policies,
    "requirepass": _password,
    "slowlog-log-slower-than": _slow,
    "slowlog-max-len": _slow_length,
    "latency-monitor-threshold": _latency,
    "history": _history,
    "loglevel": _level,
    "cluster-node-timeout": _node_timeout,
    "cluster-meet-allow": _meet_allow,
    "replicate-again-after": _again_after,
    "replicate-again-rate": _again_rate,
    "leaving-evacuates": _leaving_evacuates,
    "cluster-announce-ip": _announce,
    "cluster-name": _cluster_name,
    "cluster-discovery-interval": _discovery_interval,
    "cluster-forget-after": _forget_after,
}


def apply_all(settings: Settings, server: Server, log: DaemonLog) -> None:
    """Give the node its settings at start."""
    for apply in APPLY.values():
        apply(settings, server, log)

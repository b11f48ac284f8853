"""Every setting of a node and its default (client protocol, section 9.1)."""

from __future__ import annotations

import os
from typing import Final

import attrs

from disque_tx.config.lists import OutputLimit, WaitFor

#: The most processes of one daemon; no host has use for more.
PROCESSES_MAX: Final = 128


@attrs.define
class Settings:
    """The current configuration. One attribute per directive, in the directive's own unit.

    ``dir`` is absolute; so are the other paths after :func:`disque_tx.config.parser.load`.
    ``written_paths``: name of a directive → path as it was written, for those that were set.
    ``processes``: 0 for as many as there are cores. ``process_port``: 0 for the port above
    ``port``.
    ``config_file``: absolute path of the configuration file, empty if there is none.
    """

    config_file: str = ""
    written_paths: dict[str, str] = attrs.Factory(dict)

    daemonize: bool = False
    pidfile: str = "/var/run/disque.pid"
    port: int = 7711
    processes: int = 1
    process_port: int = 0
    tcp_backlog: int = 511
    bind: list[str] = attrs.Factory(list)
    listen: list[tuple[str, str]] = attrs.Factory(list)
    policies: list[tuple[bytes, bytes, bytes]] = attrs.Factory(list)
    unixsocket: str = ""
    unixsocketperm: int = 0
    timeout: int = 0
    tcp_keepalive: int = 0
    protected_mode: bool = True
    loglevel: str = "notice"
    logfile: str = ""
    syslog_enabled: bool = False
    syslog_ident: str = "disque"
    syslog_facility: str = "local0"
    databases: int = 16
    dir: str = attrs.Factory(os.getcwd)
    requirepass: bytes = b""
    readonly_password: bytes = b""
    beanstalk_replicate: int = 0
    beanstalk_max_job_size: int = 65_535
    http_hosts: list[str] = attrs.Factory(list)
    trace_url: str = ""
    renames: list[tuple[bytes, bytes]] = attrs.Factory(list)
    maxclients: int = 10000
    maxmemory: int = 1024**3
    maxmemory_policy: str = "acks"
    maxmemory_samples: int = 5
    activerehashing: bool = True
    hz: int = 10
    appendonly: bool = False
    appendfilename: str = "disque.aof"
    appendfsync: str = "everysec"
    no_appendfsync_on_rewrite: bool = False
    auto_aof_rewrite_percentage: int = 100
    auto_aof_rewrite_min_size: int = 64 * 1024**2
    aof_rewrite_incremental_fsync: bool = True
    aof_load_truncated: bool = True
    aof_enqueue_jobs_once: bool = False
    cluster_config_file: str = "nodes.conf"
    cluster_node_timeout: int = 15000
    cluster_bus_port: int = 0
    cluster_announce_ip: str = ""
    cluster_announce_port: int = 0
    cluster_announce_bus_port: int = 0
    cluster_name: str = ""
    cluster_discovery: list[str] = attrs.Factory(list)
    cluster_discovery_interval: int = 10
    cluster_discovery_nameservers: list[str] = attrs.Factory(list)
    cluster_forget_after: int = 0
    cluster_wait_for: WaitFor = attrs.Factory(WaitFor)
    cluster_meet_allow: list[str] = attrs.Factory(list)
    cluster_insecure: bool = False
    cluster_bus_tls: bool = False
    cluster_bus_tls_cert: str = ""
    cluster_bus_tls_key: str = ""
    cluster_bus_tls_ca: str = ""
    cluster_link_buffer_limit: int = 64 * 1024**2
    replicate_again_after: int = 300
    replicate_again_rate: int = 2000
    leaving_evacuates: bool = False
    shutdown_evacuates: int = 0
    slowlog_log_slower_than: int = 10000
    slowlog_max_len: int = 128
    latency_monitor_threshold: int = 0
    history: bool = True
    client_output_buffer_limit: OutputLimit = attrs.Factory(OutputLimit)
    watchdog_period: int = 0
    eventlog: bool = False
    eventlog_dir: str = "events"
    eventlog_rotate_size: int = 64 * 1024**2
    eventlog_rotate_time: int = 300
    eventlog_queues: str = "*"
    eventlog_body: str = "no"
    workqueue_redis: str = ""
    workqueue_prefixes: list[str] = attrs.Factory(list)
    workqueue_clean_every: int = 60
    workqueue_deep_clean_every: int = 3600


DEFAULTS: Final = Settings(dir="/")

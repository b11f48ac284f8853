"""The table of directives: how the value of each is written, and where it may be set.

Client protocol, sections 9, 9.1, 9.2 and 21.2. ``include``, ``rename-command`` and ``listen`` are
not values but instructions to the parser; they are in :mod:`disque_tx.config.parser`.
"""

from __future__ import annotations

import re
from typing import Any, Final

import attrs

from disque_tx.config.kinds import (
    Choice,
    Clamped,
    Keepalive,
    Length,
    MemorySize,
    Number,
    NumberOrAuto,
    Octal,
    Password,
    Path,
    Text,
    ValueKind,
    YesNo,
)
from disque_tx.config.lists import (
    Addresses,
    Hosts,
    Ip,
    Networks,
    OutputLimits,
    Prefixes,
    WaitForNodes,
)
from disque_tx.config.paths import resolve
from disque_tx.config.settings import DEFAULTS, PROCESSES_MAX, Settings
from disque_tx.config.sources import NameServers, Sources
from disque_tx.config.units import INT64_MAX, INT64_MIN
from disque_tx.messages.limits import PORT_MAX, REPLICATE_MAX


@attrs.frozen
class Directive:
    """One row of the table. ``settable``: by CONFIG SET; ``in_file``: in files and on the command
    line."""

    name: str
    kind: ValueKind[Any]
    settable: bool = False
    in_file: bool = True

    @property
    def attribute(self) -> str:
        """The name of its value in :class:`Settings`."""
        return self.name.replace("-", "_")

    def value(self, settings: Settings) -> Any:
        """The value of the directive in ``settings``."""
        return getattr(settings, self.attribute)

    def assign(self, settings: Settings, value: Any) -> None:
        """Set ``value``, which its kind has accepted."""
        setattr(settings, self.attribute, value)

    def show(self, settings: Settings) -> bytes:
        """The value in the answer of CONFIG GET; paths as they were written."""
        value = self.value(settings)
        return self.kind.show(settings.written_paths.get(self.name, value))

    def is_default(self, settings: Settings) -> bool:
        """Whether the current value would be the same without the directive in the file."""
        value, default = self.value(settings), self.value(DEFAULTS)
        if isinstance(self.kind, Path):
            value, default = resolve(settings.dir, value), resolve(settings.dir, default)
        return bool(value == default)

    def line(self, settings: Settings) -> bytes | None:
        """The words for this value in a file; ``None`` if the directive must be left out instead.

        A path stays as it was written, as long as that is still the same file.
        """
        value = self.value(settings)
        if isinstance(self.kind, Path):
            written = settings.written_paths.get(self.name, self.value(DEFAULTS))
            if resolve(settings.dir, written) == resolve(settings.dir, value):
                value = written
        return self.kind.line(value)


_YES_NO: Final = YesNo()
_PORT: Final = Number("Invalid port", 0, PORT_MAX)
# The message does not contain the URL, which may have a password in it.
_REDIS_URL: Final = Text("Invalid URL of a Redis server", re.compile(r"redis://\S+"), optional=True)
_PATTERN: Final = Text("Invalid pattern '{}'", re.compile(r"[^\0]+"))
_CLUSTER_NAME: Final = Text(
    "A cluster-name has 1 to 64 letters, digits, dots, dashes and underscores",
    re.compile(r"[0-9A-Za-z._-]{0,64}"),
    optional=True,
)
_PATH: Final = Path("Invalid path '{}'")
_OPTIONAL_PATH: Final = Path("Invalid path '{}'", optional=True)
_TRACE_URL: Final = Text(
    "Invalid address of traces '{}': it is http:// or https://, with {trace_id} where the ID goes",
    re.compile(r"|(?=.{1,1024}\Z)https?://[!-~]*\{trace_id\}[!-~]*"),
    optional=True,
)
_REQUIRED_PATH: Final = Path("Invalid path '{}'", re.compile(r"[^\0]+"))
_FILE_NAME: Final = Text(
    "appendfilename can't be a path, just a filename", re.compile(r"(?!\.{1,2}\Z)[^\0/\\]+")
)
_LOG_LEVELS: Final = ("debug", "verbose", "notice", "warning")
_LOG_LEVEL_MESSAGE: Final = "Invalid log level. Must be one of " + ", ".join(_LOG_LEVELS)
_FACILITIES: Final = ("user", *(f"local{number}" for number in range(8)))
_FACILITY_MESSAGE: Final = "Invalid log facility. Must be one of USER or between LOCAL0-LOCAL7"
_FSYNC_MESSAGE: Final = "argument must be 'no', 'always' or 'everysec'"
_MEMORY_MESSAGE: Final = "You need to specify a memory limit greater than zero"
_REWRITE_SIZE_MESSAGE: Final = "The minimum size for AOF rewrites can't be negative"
_PERCENTAGE_MESSAGE: Final = "Invalid negative percentage for AOF auto rewrite"
_NODE_TIMEOUT_MESSAGE: Final = "cluster node timeout must be 1 or greater"
_LINK_BUFFER_MESSAGE: Final = "The limit of the buffer of a link can't be negative"
_SAMPLES_MESSAGE: Final = "maxmemory-samples must be 1 or greater"
_ROTATE_SIZE_MESSAGE: Final = "The size of a segment of the event log must be 64kb or more"
_ROTATE_TIME_MESSAGE: Final = "A segment of the event log must be open for 1 second or more"
_BODY_MESSAGE: Final = "eventlog-body must be no, hash or yes"
_CLEAN_MESSAGE: Final = "The time between two cleans is given in whole seconds"
_INTERVAL_MESSAGE: Final = "cluster-discovery-interval must be 1 to 3600 seconds"
_FORGET_MESSAGE: Final = "cluster-forget-after must be 0 to 31622400 seconds"
_PROCESSES_MESSAGE: Final = f"The number of processes is 1 to {PROCESSES_MAX}, or auto"
_AGAIN_AFTER_MESSAGE: Final = "The time until copies are made again is 0 for never, or up to a year"
_AGAIN_RATE_MESSAGE: Final = "0 to 1000000 jobs per second can get copies again"
_EVACUATES_MESSAGE: Final = (
    "The time for giving jobs away at a shutdown is 0 for none, or up to a day"
)
_DAY_S: Final = 86_400
_YEAR_S: Final = 366 * _DAY_S
_LATENCY_MESSAGE: Final = "The latency threshold can't be negative"

_TABLE: Final = (
    Directive("daemonize", _YES_NO),
    Directive("pidfile", _PATH),
    Directive("port", _PORT),
    Directive("processes", NumberOrAuto(_PROCESSES_MESSAGE, 1, PROCESSES_MAX)),
    Directive("process-port", _PORT),
    Directive("tcp-backlog", Number("Invalid backlog value")),
    Directive("bind", Addresses()),
    Directive("unixsocket", _OPTIONAL_PATH),
    Directive("unixsocketperm", Octal()),
    Directive("timeout", Number("Invalid timeout value"), settable=True),
    Directive("tcp-keepalive", Keepalive("Invalid tcp-keepalive value"), settable=True),
    Directive("protected-mode", _YES_NO, settable=True),
    Directive("loglevel", Choice(_LOG_LEVELS, _LOG_LEVEL_MESSAGE), settable=True),
    Directive("logfile", _PATH),
    Directive("syslog-enabled", _YES_NO),
    Directive("syslog-ident", Text("Invalid name '{}'")),
    Directive("syslog-facility", Choice(_FACILITIES, _FACILITY_MESSAGE)),
    Directive("databases", Number("Invalid number of databases", 1)),
    Directive("dir", Text("Invalid path '{}'"), settable=True),
    Directive("requirepass", Password(), settable=True),
    Directive("readonly-password", Password(), settable=True),
    Directive("http-hosts", Hosts(), settable=True),
    Directive("trace-url", _TRACE_URL, settable=True),
    Directive(
        "beanstalk-replicate", Number("Invalid number of copies", 0, REPLICATE_MAX), settable=True
    ),
    Directive("beanstalk-max-job-size", Number("Invalid size of jobs", 1, 1 << 30), settable=True),
    Directive("maxclients", Number("Invalid max clients limit", 1), settable=True),
    Directive("maxmemory", MemorySize(_MEMORY_MESSAGE, 1, unlimited=True), settable=True),
    Directive(
        "maxmemory-policy",
        Choice(("acks", "noeviction"), "Invalid maxmemory policy"),
        settable=True,
    ),
    Directive("maxmemory-samples", Number(_SAMPLES_MESSAGE, 1, INT64_MAX), settable=True),
    Directive("activerehashing", _YES_NO, settable=True),
    Directive("hz", Clamped("Invalid hz value", 1, 500, set_low=0), settable=True),
    Directive("appendonly", _YES_NO, settable=True),
    Directive("appendfilename", _FILE_NAME),
    Directive("appendfsync", Choice(("everysec", "always", "no"), _FSYNC_MESSAGE), settable=True),
    Directive("no-appendfsync-on-rewrite", _YES_NO),
    Directive(
        "auto-aof-rewrite-percentage", Number(_PERCENTAGE_MESSAGE, 0, INT64_MAX), settable=True
    ),
    Directive("auto-aof-rewrite-min-size", MemorySize(_REWRITE_SIZE_MESSAGE), settable=True),
    Directive("aof-rewrite-incremental-fsync", _YES_NO, settable=True),
    Directive("aof-load-truncated", _YES_NO, settable=True),
    Directive("aof-enqueue-jobs-once", _YES_NO, settable=True),
    Directive("cluster-config-file", _REQUIRED_PATH),
    Directive(
        "cluster-node-timeout",
        Number(_NODE_TIMEOUT_MESSAGE, 1, INT64_MAX, set_low=0),
        settable=True,
    ),
    Directive("cluster-bus-port", _PORT),
    Directive("cluster-announce-ip", Ip()),
    Directive("cluster-announce-port", _PORT),
    Directive("cluster-announce-bus-port", _PORT),
    Directive("cluster-meet-allow", Networks(), settable=True),
    Directive("cluster-name", _CLUSTER_NAME, settable=True),
    Directive("cluster-discovery", Sources()),
    Directive("cluster-discovery-interval", Number(_INTERVAL_MESSAGE, 1, 3_600), settable=True),
    Directive("cluster-discovery-nameservers", NameServers()),
    Directive("cluster-forget-after", Number(_FORGET_MESSAGE, 0, 31_622_400), settable=True),
    Directive("cluster-wait-for", WaitForNodes()),
    Directive("cluster-insecure", _YES_NO),
    Directive("cluster-bus-tls", _YES_NO),
    Directive("cluster-bus-tls-cert", _OPTIONAL_PATH),
    Directive("cluster-bus-tls-key", _OPTIONAL_PATH),
    Directive("cluster-bus-tls-ca", _OPTIONAL_PATH),
    Directive("cluster-link-buffer-limit", MemorySize(_LINK_BUFFER_MESSAGE), settable=True),
    Directive("replicate-again-after", Number(_AGAIN_AFTER_MESSAGE, 0, _YEAR_S), settable=True),
    Directive("replicate-again-rate", Number(_AGAIN_RATE_MESSAGE, 0, 1_000_000), settable=True),
    Directive("leaving-evacuates", _YES_NO, settable=True),
    Directive("shutdown-evacuates", Number(_EVACUATES_MESSAGE, 0, _DAY_S), settable=True),
    Directive(
        "slowlog-log-slower-than",
        Number("Invalid slowlog threshold", INT64_MIN, INT64_MAX, set_low=0),
        settable=True,
    ),
    Directive("slowlog-max-len", Length("Invalid slowlog length", set_low=0), settable=True),
    Directive("latency-monitor-threshold", Number(_LATENCY_MESSAGE, 0, INT64_MAX), settable=True),
    Directive("history", _YES_NO, settable=True),
    Directive("client-output-buffer-limit", OutputLimits(), settable=True),
    Directive("eventlog", _YES_NO, settable=True),
    Directive("eventlog-dir", _REQUIRED_PATH),
    Directive("eventlog-rotate-size", MemorySize(_ROTATE_SIZE_MESSAGE, 64 * 1024), settable=True),
    Directive("eventlog-rotate-time", Number(_ROTATE_TIME_MESSAGE, 1), settable=True),
    Directive("eventlog-queues", _PATTERN, settable=True),
    Directive("eventlog-body", Choice(("no", "hash", "yes"), _BODY_MESSAGE), settable=True),
    Directive("workqueue-redis", _REDIS_URL),
    Directive("workqueue-prefixes", Prefixes()),
    Directive("workqueue-clean-every", Number(_CLEAN_MESSAGE, 1)),
    Directive("workqueue-deep-clean-every", Number(_CLEAN_MESSAGE)),
    Directive("watchdog-period", Number("Invalid period"), settable=True, in_file=False),
)

DIRECTIVES: Final[dict[str, Directive]] = {directive.name: directive for directive in _TABLE}

#: The parameters that CONFIG GET lists, in this order.
GET_ORDER: Final = (
    *("requirepass", "unixsocket", "logfile", "pidfile", "maxmemory", "maxmemory-samples"),
    *("timeout", "auto-aof-rewrite-percentage", "auto-aof-rewrite-min-size"),
    *("slowlog-log-slower-than", "latency-monitor-threshold", "slowlog-max-len", "port"),
    *("tcp-backlog", "databases", "maxclients", "watchdog-period", "hz", "cluster-node-timeout"),
    *("tcp-keepalive", "no-appendfsync-on-rewrite", "daemonize", "activerehashing"),
    *("aof-rewrite-incremental-fsync", "aof-load-truncated", "aof-enqueue-jobs-once"),
    *("maxmemory-policy", "loglevel", "appendfsync", "syslog-facility", "appendonly", "dir"),
    *("client-output-buffer-limit", "unixsocketperm", "bind", "protected-mode"),
)
#: Parameters that CONFIG GET lists only for their full name, so that a pattern has the same answer
#: as with the original.
GET_BY_NAME: Final = (
    *("cluster-bus-port", "cluster-announce-ip", "cluster-announce-port"),
    *("cluster-announce-bus-port", "cluster-meet-allow", "cluster-insecure", "cluster-bus-tls"),
    *("cluster-name", "cluster-discovery", "cluster-discovery-interval", "cluster-wait-for"),
    *("cluster-discovery-nameservers", "cluster-forget-after"),
    *("cluster-bus-tls-cert", "cluster-bus-tls-key", "cluster-bus-tls-ca"),
    *("replicate-again-after", "replicate-again-rate", "leaving-evacuates", "shutdown-evacuates"),
    *("cluster-link-buffer-limit", "eventlog", "eventlog-dir", "eventlog-rotate-size"),
    *("eventlog-rotate-time", "eventlog-queues", "eventlog-body", "workqueue-redis"),
    *("workqueue-prefixes", "workqueue-clean-every", "workqueue-deep-clean-every"),
    *("processes", "process-port", "history"),
    *("readonly-password", "http-hosts", "trace-url", "beanstalk-replicate"),
    "beanstalk-max-job-size",
)
#: The directives that CONFIG REWRITE writes, in the order in which it appends lines (section 9.2).
REWRITE_ORDER: Final = (
    *("daemonize", "pidfile", "port", "tcp-backlog", "bind", "unixsocket", "unixsocketperm"),
    *("timeout", "tcp-keepalive", "loglevel", "logfile", "syslog-enabled", "syslog-ident"),
    *("syslog-facility", "dir", "requirepass", "maxclients", "maxmemory", "maxmemory-policy"),
    *("maxmemory-samples", "appendonly", "appendfilename", "appendfsync"),
    *("no-appendfsync-on-rewrite", "auto-aof-rewrite-percentage", "auto-aof-rewrite-min-size"),
    *("cluster-config-file", "cluster-node-timeout", "slowlog-log-slower-than"),
    *("latency-monitor-threshold", "slowlog-max-len", "activerehashing"),
    *("client-output-buffer-limit", "hz", "aof-rewrite-incremental-fsync", "aof-load-truncated"),
    *("aof-enqueue-jobs-once", "protected-mode", *GET_BY_NAME),
)

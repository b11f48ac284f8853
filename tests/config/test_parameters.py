"""Tests of CONFIG GET and CONFIG SET, and of the table of directives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
from twisted.trial.unittest import SynchronousTestCase

from disque_tx import config
from disque_tx.config import DIRECTIVES, OutputLimit, Settings
from disque_tx.config.directives import GET_BY_NAME, GET_ORDER, REWRITE_ORDER
from disque_tx.config.paths import Files
from disque_tx.errors import CommandError

ORIGINAL_GET_ORDER = """requirepass unixsocket logfile pidfile maxmemory maxmemory-samples timeout
auto-aof-rewrite-percentage auto-aof-rewrite-min-size slowlog-log-slower-than
latency-monitor-threshold slowlog-max-len port tcp-backlog databases maxclients watchdog-period hz
cluster-node-timeout tcp-keepalive no-appendfsync-on-rewrite daemonize activerehashing
aof-rewrite-incremental-fsync aof-load-truncated aof-enqueue-jobs-once maxmemory-policy loglevel
appendfsync syslog-facility appendonly dir client-output-buffer-limit unixsocketperm bind"""

# Directive, value sent, attribute afterwards, value that CONFIG GET then shows.
ACCEPTED: list[tuple[str, str, Any, str]] = [
    ("timeout", "2147483647", 2147483647, "2147483647"),
    ("tcp-keepalive", "60", 60, "60"),
    ("tcp-keepalive", "yes", 1, "1"),
    ("tcp-keepalive", "NO", 0, "0"),
    ("protected-mode", "no", False, "no"),
    ("loglevel", "DEBUG", "debug", "debug"),
    ("requirepass", "secret", b"secret", "secret"),
    ("requirepass", "x" * 512, b"x" * 512, "x" * 512),
    ("requirepass", "", b"", ""),
    ("maxclients", "1", 1, "1"),
    ("maxmemory", "10mb", 10485760, "10485760"),
    ("maxmemory", "0", 0, "0"),
    ("maxmemory-policy", "NoEviction", "noeviction", "noeviction"),
    ("maxmemory-samples", "3", 3, "3"),
    ("activerehashing", "no", False, "no"),
    ("hz", "20", 20, "20"),
    ("hz", "0", 1, "1"),
    ("hz", "1000", 500, "500"),
    ("appendonly", "YES", True, "yes"),
    ("appendfsync", "always", "always", "always"),
    ("auto-aof-rewrite-percentage", "0", 0, "0"),
    ("auto-aof-rewrite-min-size", "1kb", 1024, "1024"),
    ("aof-rewrite-incremental-fsync", "no", False, "no"),
    ("aof-load-truncated", "no", False, "no"),
    ("aof-enqueue-jobs-once", "yes", True, "yes"),
    ("cluster-node-timeout", "3000", 3000, "3000"),
    ("cluster-node-timeout", "0", 1, "1"),
    (
        "cluster-meet-allow",
        "10.0.0.1 10.1.2.3/8",
        ["10.0.0.1", "10.0.0.0/8"],
        "10.0.0.1 10.0.0.0/8",
    ),
    ("cluster-meet-allow", "fd00::/8", ["fd00::/8"], "fd00::/8"),
    ("cluster-name", "shop-1.eu_west", "shop-1.eu_west", "shop-1.eu_west"),
    ("cluster-name", "", "", ""),
    ("cluster-discovery-interval", "30", 30, "30"),
    ("cluster-forget-after", "86400", 86400, "86400"),
    ("cluster-meet-allow", "*", [], ""),
    ("readonly-password", "look", b"look", "look"),
    ("http-hosts", "A.example b", ["a.example", "b"], "a.example b"),
    ("http-hosts", "", [], ""),
    ("trace-url", "http://t/{trace_id}", "http://t/{trace_id}", "http://t/{trace_id}"),
    ("trace-url", "", "", ""),
    ("beanstalk-replicate", "3", 3, "3"),
    ("beanstalk-max-job-size", "1000000", 1_000_000, "1000000"),
    ("cluster-meet-allow", "", [], ""),
    ("cluster-link-buffer-limit", "1mb", 1048576, "1048576"),
    ("cluster-link-buffer-limit", "0", 0, "0"),
    ("replicate-again-after", "0", 0, "0"),
    ("replicate-again-rate", "20000", 20_000, "20000"),
    ("leaving-evacuates", "yes", True, "yes"),
    ("shutdown-evacuates", "300", 300, "300"),
    ("slowlog-log-slower-than", "0", 0, "0"),
    ("slowlog-max-len", "0", 0, "0"),
    ("latency-monitor-threshold", "100", 100, "100"),
    ("history", "no", False, "no"),
    ("eventlog", "yes", True, "yes"),
    ("eventlog-rotate-size", "1mb", 1048576, "1048576"),
    ("eventlog-rotate-time", "60", 60, "60"),
    ("eventlog-queues", "mail*", "mail*", "mail*"),
    ("eventlog-body", "hash", "hash", "hash"),
    (
        "client-output-buffer-limit",
        "normal 1mb 512kb 60",
        OutputLimit(1048576, 524288, 60),
        "normal 1048576 524288 60",
    ),
    (
        "client-output-buffer-limit",
        "normal 1 2 3 NORMAL 4 5 6",
        OutputLimit(4, 5, 6),
        "normal 4 5 6",
    ),
    ("client-output-buffer-limit", "", OutputLimit(), "normal 0 0 0"),
    ("watchdog-period", "0", 0, "0"),
    ("watchdog-period", "50", 200, "200"),
    ("watchdog-period", "1000", 1000, "1000"),
]

REFUSED = [
    *(("timeout", value) for value in ("-1", "2147483648", "abc", "", "5x")),
    *(("tcp-keepalive", value) for value in ("-1", "maybe", "")),
    ("protected-mode", "1"),
    ("loglevel", "loud"),
    ("requirepass", "x" * 513),
    ("readonly-password", "x" * 513),
    *(("http-hosts", value) for value in ("a:1", "-a", "*")),
    *(("trace-url", value) for value in ("http://t", "javascript:{trace_id}", "{trace_id}")),
    *(("trace-url", f"http://t/{{trace_id}}{rest}") for rest in (" x", "x" * 1_024)),
    *(("beanstalk-replicate", value) for value in ("-1", "65536", "all")),
    *(("beanstalk-max-job-size", value) for value in ("0", "1073741825", "1mb")),
    *(("maxclients", value) for value in ("0", "-1", "many")),
    *(("maxmemory", value) for value in ("", "-1", "abc", "1tb")),
    ("maxmemory-policy", "foo"),
    ("maxmemory-samples", "0"),
    ("activerehashing", ""),
    *(("hz", value) for value in ("-1", "abc", "")),
    ("appendonly", "maybe"),
    ("appendfsync", "foo"),
    ("auto-aof-rewrite-percentage", "-1"),
    ("auto-aof-rewrite-min-size", "-1"),
    ("aof-rewrite-incremental-fsync", "true"),
    ("aof-load-truncated", "true"),
    ("aof-enqueue-jobs-once", "true"),
    *(("cluster-node-timeout", value) for value in ("-1", "soon")),
    ("cluster-discovery-interval", "0"),
    ("cluster-forget-after", "-1"),
    *(("cluster-name", value) for value in ("a b", "x" * 65, "shop!", "é")),
    *(("cluster-meet-allow", value) for value in ("all", "10.0.0.1/33", "1.2.3.4,5.6.7.8")),
    ("cluster-link-buffer-limit", "-1"),
    *(("replicate-again-after", value) for value in ("-1", "31622401", "soon")),
    *(("replicate-again-rate", value) for value in ("-1", "1000001")),
    ("leaving-evacuates", "perhaps"),
    *(("shutdown-evacuates", value) for value in ("-1", "86401", "soon")),
    ("slowlog-log-slower-than", "-1"),
    ("slowlog-max-len", "-1"),
    ("latency-monitor-threshold", "-1"),
    ("history", "14d"),
    ("eventlog", "perhaps"),
    ("eventlog-rotate-size", "big"),
    ("eventlog-queues", ""),
    ("eventlog-rotate-time", "0"),
    ("eventlog-body", "all"),
    *(
        ("client-output-buffer-limit", value)
        for value in (
            "normal 1 2",
            "slave 1 2 3",
            "normal 1 2 -3",
            "normal -1 2 3",
            "normal 1x 2 3",
        )
    ),
    ("watchdog-period", "-1"),
]


class GetTests(SynchronousTestCase):
    """CONFIG GET."""

    def names(self, pattern: bytes) -> list[str]:
        """The names that CONFIG GET lists for ``pattern``."""
        return [name.decode() for name, _ in config.get(Settings(dir="/"), pattern)]

    def test_order(self) -> None:
        """The names of the original come first, in its order, because tools print them as
        received."""
        self.assertEqual([*ORIGINAL_GET_ORDER.split(), "protected-mode"], self.names(b"*"))

    def test_patterns_match_like_in_the_original(self) -> None:
        """Patterns of a recorded session must not match additional directives."""
        self.assertEqual(["cluster-node-timeout"], self.names(b"cluster*"))
        expected = [name for name in ORIGINAL_GET_ORDER.split() if name.startswith("a")]
        self.assertEqual(8, len(expected))
        self.assertEqual(expected, self.names(b"a*"))

    def test_exact_name(self) -> None:
        """A directive that patterns do not list can still be requested by its name."""
        settings = Settings(dir="/", cluster_bus_port=17000)
        self.assertEqual(
            [(b"cluster-bus-port", b"17000")], config.get(settings, b"cluster-bus-port")
        )

    def test_nothing_matches(self) -> None:
        """Unknown names, names in other case, and hidden directives have an empty reply."""
        for pattern in (b"nosuch", b"HZ", b"appendfilename", b"cluster-config-file", b"include"):
            self.assertEqual([], self.names(pattern))

    def test_defaults(self) -> None:
        """The values of a node without any configuration are those of the original."""
        shown = dict(config.get(Settings(dir="/data"), b"*"))
        expected = {
            b"requirepass": b"",
            b"unixsocket": b"",
            b"logfile": b"",
            b"pidfile": b"/var/run/disque.pid",
            b"maxmemory": b"1073741824",
            b"port": b"7711",
            b"unixsocketperm": b"0",
            b"bind": b"",
            b"tcp-keepalive": b"0",
            b"dir": b"/data",
            b"client-output-buffer-limit": b"normal 0 0 0",
            b"syslog-facility": b"local0",
        }
        self.assertEqual(expected, {name: shown[name] for name in expected})

    def test_paths_as_given(self) -> None:
        """A path is shown as the operator wrote it, not as an absolute one."""
        settings = Settings(dir="/data", logfile="/data/a.log", written_paths={"logfile": "a.log"})
        self.assertEqual([(b"logfile", b"a.log")], config.get(settings, b"logfile"))


class SetTests(SynchronousTestCase):
    """CONFIG SET."""

    def refuse(self, name: str, value: str, **limits: Any) -> str:
        """The error for a value that must be refused without changing anything."""
        settings = Settings(dir="/")
        error: CommandError = self.assertRaises(
            CommandError, config.set_value, settings, name.encode(), value.encode(), **limits
        )
        self.assertEqual(Settings(dir="/"), settings)
        return error.reply().decode()

    def test_accepted(self) -> None:
        """Every directive that can be set accepts valid values, with units for sizes."""
        for name, value, expected, shown in ACCEPTED:
            settings = Settings(dir="/")
            self.assertEqual(
                name, config.set_value(settings, name.upper().encode(), value.encode())
            )
            self.assertEqual(expected, DIRECTIVES[name].value(settings), (name, value))
            got = config.get(settings, name.encode())
            self.assertEqual([(name.encode(), shown.encode())], got)

    def test_refused(self) -> None:
        """An invalid value is named in the error, and does not change the setting."""
        for name, value in REFUSED:
            expected = f"ERR Invalid argument '{value}' for CONFIG SET '{name}'"
            self.assertEqual(expected, self.refuse(name, value))

    def test_every_settable_directive_is_tested(self) -> None:
        """A new directive that can be set needs valid and invalid values in these tables."""
        settable = {name for name, directive in DIRECTIVES.items() if directive.settable} - {"dir"}
        self.assertEqual(settable, {name for name, *_ in ACCEPTED})
        self.assertEqual(settable, {name for name, _ in REFUSED})

    def test_unsupported(self) -> None:
        """A directive that only a restart can change is refused, under the name that was sent."""
        for name in ("port", "Foo", "no-appendfsync-on-rewrite", "bind", "include", "logfile"):
            self.assertEqual(f"ERR Unsupported CONFIG parameter: {name}", self.refuse(name, "1"))

    def test_name_with_line_break(self) -> None:
        """A name with a line break cannot insert a second reply."""
        self.assertEqual("ERR Unsupported CONFIG parameter: a  +OK", self.refuse("a\r\n+OK", "1"))

    def test_maxclients_beyond_the_system(self) -> None:
        """The error shows which number would be accepted, however large the requested one is."""
        for value in ("101", "2147483647"):
            self.assertEqual(
                "ERR The operating system is not able to handle the specified number of clients, "
                "try with 100",
                self.refuse("maxclients", value, max_clients_limit=100),
            )

    def test_maxclients_at_the_limit(self) -> None:
        """The number shown in that error is accepted."""
        settings = Settings(dir="/")
        config.set_value(settings, b"maxclients", b"100", max_clients_limit=100)
        self.assertEqual(100, settings.maxclients)

    def test_empty_output_limit_changes_nothing(self) -> None:
        """An empty list of limits changes no limit."""
        settings = Settings(dir="/", client_output_buffer_limit=OutputLimit(1, 2, 3))
        config.set_value(settings, b"client-output-buffer-limit", b"")
        self.assertEqual(OutputLimit(1, 2, 3), settings.client_output_buffer_limit)


class SetDirTests(SynchronousTestCase):
    """CONFIG SET dir."""

    def setUp(self) -> None:
        """Create a folder that contains a folder and a file."""
        self.root = Path(self.mktemp()).resolve()
        (self.root / "sub").mkdir(parents=True)
        (self.root / "file").touch()
        self.settings = Settings(dir=str(self.root), cluster_config_file=str(self.root / "nodes"))

    def set_dir(self, value: bytes) -> None:
        """Send CONFIG SET dir with this value."""
        config.set_value(self.settings, b"dir", value, files=Files("/"))

    def test_relative(self) -> None:
        """A relative folder is resolved from the current one, and shown as an absolute path."""
        self.set_dir(b"./sub")
        self.assertEqual(str(self.root / "sub"), self.settings.dir)

    def test_only_dir_changes(self) -> None:
        """When the folder of the log changes, the nodes file of the node stays where it is."""
        before = attrs.evolve(self.settings)
        self.set_dir(b"sub")
        self.assertEqual(attrs.evolve(before, dir=str(self.root / "sub")), self.settings)

    def test_refused(self) -> None:
        """A folder that cannot be used is refused with the error of the operating system."""
        for value, text in [
            (b"nosuch", "No such file or directory"),
            (b"file", "Not a directory"),
            (b"", "No such file or directory"),
        ]:
            error = self.assertRaises(CommandError, self.set_dir, value)
            self.assertEqual(f"ERR Changing directory: {text}".encode(), error.reply())
        self.assertEqual(str(self.root), self.settings.dir)


class TableTests(SynchronousTestCase):
    """The tables of directives are consistent."""

    def test_every_directive_has_an_attribute(self) -> None:
        """Every directive has an attribute, and every attribute has a directive."""
        fields = {field.name for field in attrs.fields(Settings)}
        reader_only = {"config_file", "written_paths", "listen", "policies", "renames"}
        rows = {directive.attribute for directive in DIRECTIVES.values()}
        self.assertEqual(fields - reader_only, rows)

    def test_orders_name_known_directives_once(self) -> None:
        """A misspelled name in one of the orders would otherwise only be noticed when a file is
        rewritten."""
        for order in (GET_ORDER + GET_BY_NAME, REWRITE_ORDER):
            self.assertEqual(len(order), len(set(order)))
            self.assertEqual(set(), set(order) - set(DIRECTIVES))

    def test_everything_in_files_is_rewritten(self) -> None:
        """CONFIG REWRITE writes every directive, so that none is lost; only ``databases`` stays
        unchanged."""
        in_file = {name for name, directive in DIRECTIVES.items() if directive.in_file}
        self.assertEqual(in_file - {"databases"}, set(REWRITE_ORDER))

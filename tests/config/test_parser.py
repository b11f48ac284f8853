"""Tests of reading configuration from files, standard input and the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config import (
    DIRECTIVES,
    ConfigAccessError,
    ConfigLineError,
    Files,
    OutputLimit,
    Settings,
    load,
)
from disque_tx.config.lists import WaitFor
from disque_tx.core.policies.policies import checked_pairs
from disque_tx.errors import ConfigError

SAMPLE = Path(__file__).parents[2] / "deploy" / "disque.conf"

# Line, value of its attribute.
ACCEPTED: list[tuple[str, Any]] = [
    ("daemonize YES", True),
    ("pidfile /run/x.pid", "/run/x.pid"),
    ("port 0", 0),
    ("PORT 65535", 65535),
    ('port "7711"', 7711),
    ("processes 1", 1),
    ("processes 128", 128),
    ("processes Auto", 0),
    ("process-port 7800", 7800),
    ("tcp-backlog 0", 0),
    ("bind 127.0.0.1 ::1", ["127.0.0.1", "::1"]),
    ("bind" + " 127.0.0.1" * 16, ["127.0.0.1"] * 16),
    ("unixsocket /run/x.sock", "/run/x.sock"),
    ('unixsocket ""', ""),
    ("unixsocketperm 0777", 0o777),
    ("timeout 30", 30),
    ("tcp-keepalive 60", 60),
    ("tcp-keepalive yes", 1),
    ("protected-mode no", False),
    ("loglevel Warning", "warning"),
    ('logfile ""', ""),
    ("syslog-enabled yes", True),
    ('syslog-ident "two words"', "two words"),
    ("syslog-facility USER", "user"),
    ("syslog-facility local7", "local7"),
    ("databases 1", 1),
    ("dir /", "/"),
    ("requirepass " + "x" * 512, b"x" * 512),
    ('requirepass ""', b""),
    ('requirepass "\\xff\\n"', b"\xff\n"),
    ("maxclients 1", 1),
    ("maxmemory 2GB", 2 * 1024**3),
    ("maxmemory-policy noeviction", "noeviction"),
    ("maxmemory-samples 1", 1),
    ("activerehashing no", False),
    ("hz 100", 100),
    ("hz 0", 1),
    ("hz 9999", 500),
    ("appendonly yes", True),
    ("appendfilename jobs.aof", "jobs.aof"),
    ("appendfsync no", "no"),
    ("no-appendfsync-on-rewrite yes", True),
    ("auto-aof-rewrite-percentage 0", 0),
    ("auto-aof-rewrite-min-size 1mb", 1024**2),
    ("aof-rewrite-incremental-fsync no", False),
    ("aof-load-truncated no", False),
    ("aof-enqueue-jobs-once yes", True),
    ("cluster-config-file /data/n.conf", "/data/n.conf"),
    ("cluster-node-timeout 1", 1),
    ("cluster-bus-port 17000", 17000),
    ("cluster-announce-ip 10.0.0.1", "10.0.0.1"),
    ("cluster-announce-port 1", 1),
    ("cluster-announce-ip fd00:0::1", "fd00::1"),
    ('cluster-announce-ip ""', ""),
    ("cluster-announce-bus-port 2", 2),
    ("cluster-meet-allow 10.0.0.0/8 ::1", ["10.0.0.0/8", "::1"]),
    ("cluster-meet-allow *", []),
    ("cluster-name shop", "shop"),
    (
        "cluster-discovery dns:n.example:7711 srv:_d._tcp.example file:/n static:a,[::1]:7@8",
        ["dns:n.example:7711", "srv:_d._tcp.example", "file:/n", "static:a,[::1]:7@8"],
    ),
    ("cluster-discovery-interval 2", 2),
    ("cluster-discovery-nameservers 127.0.0.1:5353 [::1]", ["127.0.0.1:5353", "[::1]"]),
    ("cluster-forget-after 3600", 3600),
    ("cluster-wait-for 3", WaitFor(3, 0)),
    ("cluster-wait-for 3 60", WaitFor(3, 60)),
    ("readonly-password look", b"look"),
    ("http-hosts Queue.example.com node-1", ["queue.example.com", "node-1"]),
    ("trace-url https://t.example/{trace_id}?q=1", "https://t.example/{trace_id}?q=1"),
    ("beanstalk-replicate 0", 0),
    ("beanstalk-max-job-size 1", 1),
    ("cluster-insecure yes", True),
    ("cluster-bus-tls yes", True),
    ("cluster-bus-tls-cert /data/node.pem", "/data/node.pem"),
    ("cluster-bus-tls-key /data/node.key", "/data/node.key"),
    ("cluster-bus-tls-ca /data/ca.pem", "/data/ca.pem"),
    ("cluster-link-buffer-limit 1mb", 1024**2),
    ("replicate-again-after 60", 60),
    ("replicate-again-rate 0", 0),
    ("leaving-evacuates yes", True),
    ("shutdown-evacuates 60", 60),
    ("slowlog-log-slower-than -1", -1),
    ("slowlog-max-len 0", 0),
    ("slowlog-max-len -1", 2**63 - 1),
    ("latency-monitor-threshold 0", 0),
    ("history no", False),
    ("client-output-buffer-limit normal 1mb 2kb 3", OutputLimit(1024**2, 2048, 3)),
    ("listen resp tcp:7000", [("resp", "tcp:7000")]),
    ("eventlog yes", True),
    ("eventlog-dir /data/events", "/data/events"),
    ("eventlog-rotate-size 1mb", 1024**2),
    ("eventlog-rotate-time 60", 60),
    ("eventlog-queues mail*", "mail*"),
    ("eventlog-body hash", "hash"),
    ("workqueue-redis redis://:secret@host:1/2", "redis://:secret@host:1/2"),
    ('workqueue-prefixes images "my mail"', ["images", "my mail"]),
    ("workqueue-clean-every 5", 5),
    ("workqueue-deep-clean-every 0", 0),
]

COUNT = "Bad directive or wrong number of arguments"
REFUSED = [
    ("nosuch 1", COUNT),
    ("watchdog-period 100", COUNT),
    ("port", COUNT),
    ("port 1 2", COUNT),
    ("bind", COUNT),
    ("include", COUNT),
    ("dir", COUNT),
    ("rename-command ping", COUNT),
    ("listen resp", COUNT),
    ("policy", COUNT),
    ("policy mail:*", COUNT),
    ("policy mail:* ttl", COUNT),
    ("policy mail:* ttl 60 retry", COUNT),
    ("client-output-buffer-limit normal 0 0", COUNT),
    ('""', COUNT),
    ('dir "/tmp', "Unbalanced quotes in configuration line"),
    ("daemonize 1", "argument must be 'yes' or 'no'"),
    ("timeout -1", "Invalid timeout value"),
    ("timeout 2147483648", "Invalid timeout value"),
    ("tcp-keepalive -1", "Invalid tcp-keepalive value"),
    ("tcp-backlog -1", "Invalid backlog value"),
    *(
        (f"processes {word}", "The number of processes is 1 to 128, or auto")
        for word in ("0", "-1", "129", "5000", "many", '""')
    ),
    ("process-port 65536", "Invalid port"),
    ("port -1", "Invalid port"),
    ("port 65536", "Invalid port"),
    ("port abc", "Invalid number 'abc'"),
    ("port 12x", "Invalid number '12x'"),
    ('hz ""', "Invalid number ''"),
    ("bind" + " 127.0.0.1" * 17, "Too many bind addresses specified"),
    ('bind "a b"', "Invalid bind address 'a b'"),
    ("unixsocketperm 1000", "Invalid socket file permissions"),
    ("unixsocketperm 9999", "Invalid socket file permissions"),
    (
        "loglevel loud",
        "Invalid log level. Must be one of debug, verbose, notice, warning",
    ),
    ("logfile /nosuch/x.log", "Can't open the log file: No such file or directory"),
    (
        "syslog-facility local8",
        "Invalid log facility. Must be one of USER or between LOCAL0-LOCAL7",
    ),
    ("databases 0", "Invalid number of databases"),
    ("maxclients 0", "Invalid max clients limit"),
    ("maxmemory 0", "You need to specify a memory limit greater than zero"),
    ("maxmemory 1tb", "Invalid memory size '1tb'"),
    ("maxmemory-policy lru", "Invalid maxmemory policy"),
    ("maxmemory-samples 0", "maxmemory-samples must be 1 or greater"),
    ("appendfilename a/b", "appendfilename can't be a path, just a filename"),
    ("appendfilename a\\b", "appendfilename can't be a path, just a filename"),
    ("appendfilename ..", "appendfilename can't be a path, just a filename"),
    ("appendfsync sometimes", "argument must be 'no', 'always' or 'everysec'"),
    (
        "auto-aof-rewrite-percentage -1",
        "Invalid negative percentage for AOF auto rewrite",
    ),
    ("requirepass " + "x" * 513, "Password is longer than CONFIG_AUTHPASS_MAX_LEN"),
    ("rename-command nosuch x", "No such command in rename-command"),
    ("rename-command ping Info", "Target command name already exists"),
    ('policy "" ttl 60', "A policy needs a pattern"),
    ("policy mail:* nosuch 60", "Unknown policy setting 'nosuch'"),
    (
        "policy mail:* ttl 0",
        "Policy setting 'ttl' must be a whole number of seconds from 1 to 4294967295",
    ),
    ("cluster-node-timeout 0", "cluster node timeout must be 1 or greater"),
    ("latency-monitor-threshold -1", "The latency threshold can't be negative"),
    ("client-output-buffer-limit slave 0 0 0", "Unrecognized client limit class"),
    (
        "client-output-buffer-limit normal 0 0 -1",
        "Negative number of seconds in soft limit is invalid",
    ),
    ("client-output-buffer-limit normal 1x 0 0", "Invalid memory size '1x'"),
    ('cluster-config-file ""', "Invalid path ''"),
    ('pidfile "a\\x00b"', "Invalid path 'a\\x00b'"),
    ("cluster-announce-port 65536", "Invalid port"),
    ('cluster-announce-ip "a b"', "Invalid address 'a b'"),
    ("cluster-announce-ip host.example", "Invalid address 'host.example'"),
    ("cluster-announce-ip 10.0.0", "Invalid address '10.0.0'"),
    ("cluster-meet-allow", COUNT),
    (
        "cluster-name a/b",
        "A cluster-name has 1 to 64 letters, digits, dots, dashes and underscores",
    ),
    ("cluster-discovery", COUNT),
    (
        "cluster-discovery dns:a consul:b",
        "'consul:b' begins with none of dns:, srv:, file:, static:",
    ),
    ("cluster-discovery-interval 0", "cluster-discovery-interval must be 1 to 3600 seconds"),
    ("cluster-discovery-nameservers", COUNT),
    ("cluster-discovery-nameservers ns", "'ns' is not the address of a name server"),
    ("cluster-forget-after -1", "cluster-forget-after must be 0 to 31622400 seconds"),
    ("cluster-wait-for 1 2 3", COUNT),
    ("cluster-wait-for -1", "cluster-wait-for waits for 0 to 1000 nodes"),
    ("cluster-wait-for 2 -1", "cluster-wait-for waits for 0 to 86400 seconds"),
    ("readonly-password " + "x" * 513, "Password is longer than CONFIG_AUTHPASS_MAX_LEN"),
    ("http-hosts", COUNT),
    ("http-hosts queue:80", "Invalid host name 'queue:80'"),
    (
        "trace-url t.example",
        "Invalid address of traces 't.example': it is http:// or https://, with {trace_id} where"
        " the ID goes",
    ),
    ("cluster-meet-allow 10.0.0.1 everybody", "Invalid address or network 'everybody'"),
    ("cluster-link-buffer-limit -1", "The limit of the buffer of a link can't be negative"),
    (
        "replicate-again-after -1",
        "The time until copies are made again is 0 for never, or up to a year",
    ),
    ("replicate-again-rate 1000001", "0 to 1000000 jobs per second can get copies again"),
    (
        "shutdown-evacuates 86401",
        "The time for giving jobs away at a shutdown is 0 for none, or up to a day",
    ),
    ("eventlog-rotate-size 1kb", "The size of a segment of the event log must be 64kb or more"),
    ("eventlog-rotate-time 0", "A segment of the event log must be open for 1 second or more"),
    ('eventlog-queues ""', "Invalid pattern ''"),
    ("eventlog-body all", "eventlog-body must be no, hash or yes"),
    ("workqueue-redis http://host", "Invalid URL of a Redis server"),
    ('workqueue-prefixes ""', COUNT),
    ("workqueue-clean-every 0", "The time between two cleans is given in whole seconds"),
    ('listen "" tcp:1', "listen needs the name of a protocol and an endpoint"),
]


def no_stdin() -> bytes:
    """Standard input that must not be read."""
    raise AssertionError("standard input was read")


class ConfigTestCase(SynchronousTestCase):
    """Reads configurations in a folder of its own."""

    def setUp(self) -> None:
        """Create the folder."""
        self.root = Path(self.mktemp()).resolve()
        (self.root / "sub").mkdir(parents=True)

    def path(self, *parts: str) -> str:
        """An absolute path below the folder."""
        return str(self.root.joinpath(*parts))

    def write(self, name: str, *lines: str) -> str:
        """Write a file with these lines; returns its name."""
        (self.root / name).write_text("".join(line + "\n" for line in lines))
        return name

    def load(self, *argv: str) -> Settings:
        """Load a configuration, with the folder as the start directory and two commands that can be
        renamed."""
        files = Files(str(self.root))
        return load(list(argv), no_stdin, files, [b"ping", b"info"], checked_pairs)

    def load_lines(self, *lines: str) -> Settings:
        """Load a file with these lines."""
        return self.load(self.write("disque.conf", *lines))

    def refuse(self, *argv: str) -> str:
        """The message of the error that loading must raise."""
        error: ConfigLineError = self.assertRaises(ConfigLineError, self.load, *argv)
        return str(error)


class LineTests(ConfigTestCase):
    """Single lines of configuration text."""

    def test_accepted(self) -> None:
        """Every directive accepts valid values in a file."""
        for line, expected in ACCEPTED:
            attribute = line.split()[0].lower().replace("-", "_")
            self.assertEqual(expected, getattr(self.load_lines(line), attribute), line)

    def test_refused(self) -> None:
        """Every invalid value has its own message, which people and scripts search for."""
        for line, message in REFUSED:
            self.write("disque.conf", "# first", f"\t{line}  ")
            self.assertEqual(
                "\n*** FATAL CONFIG FILE ERROR ***\n"
                "Reading the configuration file, at line 2\n"
                f">>> '{line}'\n"
                f"{message}\n"
                f"(in {self.path('disque.conf')})",
                self.refuse("disque.conf"),
            )

    def test_every_directive_is_tested(self) -> None:
        """A new directive needs a valid value in this table."""
        in_file = {name for name, directive in DIRECTIVES.items() if directive.in_file}
        self.assertEqual(in_file | {"listen"}, {line.split()[0].lower() for line, _ in ACCEPTED})

    def test_comments_and_blanks(self) -> None:
        """Comments, blank lines and Windows line ends are ignored."""
        settings = self.load_lines("", "  # port 1", " \t\r", "port 7000\r", "\v")
        self.assertEqual(7000, settings.port)

    def test_later_overrides_earlier(self) -> None:
        """A later line overrides an earlier one, also in an included file."""
        settings = self.load_lines("port 1", "bind 10.0.0.1", "port 2", "bind ::1")
        self.assertEqual((2, ["::1"]), (settings.port, settings.bind))

    def test_repeatable(self) -> None:
        """Several listeners and renamed commands are all kept, in order."""
        settings = self.load_lines(
            "listen resp tcp:1",
            "rename-command PING beep",
            "listen b unix:2",
            'rename-command info ""',
        )
        self.assertEqual([("resp", "tcp:1"), ("b", "unix:2")], settings.listen)
        self.assertEqual([(b"PING", b"beep"), (b"info", b"")], settings.renames)

    def test_policies(self) -> None:
        """Policies are kept in order, with their values in normal form."""
        settings = self.load_lines('policy "a b*" TTL 060 retry 5', "policy x pause IN")
        rows = [(b"a b*", b"ttl", b"60"), (b"a b*", b"retry", b"5"), (b"x", b"pause", b"in")]
        self.assertEqual(rows, settings.policies)

    def test_renamed_name_is_free(self) -> None:
        """Two commands can swap their names, because the table changes line by line."""
        settings = self.load_lines(
            "rename-command ping tmp", "rename-command info ping", "rename-command tmp info"
        )
        self.assertEqual(3, len(settings.renames))

    def test_sample_file_is_the_defaults(self) -> None:
        """The sample file has the documented default values."""
        (self.root / "sample.conf").write_bytes(SAMPLE.read_bytes())
        expected = self.load("--logfile", "", "--pidfile", "/var/run/disque.pid")
        settings = self.load("sample.conf")
        expected.config_file = self.path("sample.conf")
        expected.written_paths = settings.written_paths
        self.assertEqual(expected, settings)

    def test_sample_file_names_everything(self) -> None:
        """Every directive is mentioned in the sample file, where users look for it."""
        text = SAMPLE.read_text()
        words = {line.lstrip("# ").split(" ")[0] for line in text.splitlines()}
        in_file = {name for name, directive in DIRECTIVES.items() if directive.in_file}
        instructions = {"include", "rename-command", "listen", "policy"}
        self.assertEqual(set(), (in_file | instructions) - words)


class CommandLineTests(ConfigTestCase):
    """The arguments of the program."""

    def test_no_arguments(self) -> None:
        """Without arguments, the defaults apply, with paths in the start directory."""
        nodes = self.path("nodes.conf")
        expected = Settings(
            dir=str(self.root), cluster_config_file=nodes, eventlog_dir=self.path("events")
        )
        self.assertEqual(expected, self.load())

    def test_options(self) -> None:
        """Several words after an option are its values."""
        settings = self.load("--port", "7000", "--bind", "127.0.0.1", "::1")
        self.assertEqual((7000, ["127.0.0.1", "::1"]), (settings.port, settings.bind))
        self.assertEqual("", settings.config_file)

    def test_options_override_the_file(self) -> None:
        """Options override the file, so that several nodes can share it."""
        self.write("disque.conf", "port 1", "hz 20")
        settings = self.load("disque.conf", "--port", "2")
        self.assertEqual((2, 20), (settings.port, settings.hz))
        self.assertEqual(self.path("disque.conf"), settings.config_file)

    def test_arguments_are_quoted(self) -> None:
        """The value of an option is kept byte for byte, whatever the shell passed."""
        secret = 'a "b" \\n \udcff#'
        self.assertEqual(os.fsencode(secret), self.load("--requirepass", secret).requirepass)

    def test_option_is_named(self) -> None:
        """An error in an option names the option, and no line of a file."""
        self.assertEqual(
            "\n*** FATAL CONFIG FILE ERROR ***\n"
            "Reading the command line, at the option '--port'\n"
            ">>> 'port \"x\"'\n"
            "Invalid number 'x'\n"
            "(in the command line)",
            self.refuse("--port", "x"),
        )

    def test_option_behind_a_file(self) -> None:
        """The same applies when options follow a valid file; quotes do not hide the option's
        name."""
        self.write("disque.conf", "port 1", "hz 20")
        text = self.refuse("disque.conf", "--hz", "10", "--port", "x")
        self.assertIn("at the option '--port'\n>>> 'port \"x\"'\n", text)

    def test_words_before_any_option(self) -> None:
        """A word before any option is not accepted as a directive."""
        self.write("disque.conf", "port 1")
        text = self.refuse("disque.conf", "7000")
        self.assertIn("\n>>> '\"7000\"'\n" + COUNT, text)
        self.assertIn("at the word '7000', which follows no option", text)

    def test_standard_input(self) -> None:
        """A configuration from standard input has no file to rewrite."""
        settings = load(["-", "--hz", "50"], lambda: b"port 7000\nhz 20", Files(str(self.root)))
        self.assertEqual((7000, 50, ""), (settings.port, settings.hz, settings.config_file))

    def test_standard_input_is_named(self) -> None:
        """An error in standard input names no file."""
        error = self.assertRaises(ConfigLineError, load, ["-"], lambda: b"port x")
        self.assertIn("at line 1\n", str(error))
        self.assertIn("(in standard input)", str(error))


class FileTests(ConfigTestCase):
    """Files and folders named in a configuration."""

    def fail_to_open(self, *argv: str) -> str:
        """The message of the error when a file or folder cannot be used."""
        error: ConfigAccessError = self.assertRaises(ConfigAccessError, self.load, *argv)
        self.assertIsInstance(error, ConfigError)
        return str(error)

    def test_missing_file(self) -> None:
        """A missing file is shown as it was written."""
        expected = "Fatal error, can't open config file './nosuch.conf'"
        self.assertEqual(expected, self.fail_to_open("./nosuch.conf"))

    def test_missing_include(self) -> None:
        """A missing included file prevents the start, as the main file does."""
        self.write("disque.conf", "include nosuch.conf")
        expected = "Fatal error, can't open config file 'nosuch.conf'"
        self.assertEqual(expected, self.fail_to_open("disque.conf"))

    def test_missing_dir(self) -> None:
        """A node does not run in another folder than the configured one."""
        text = "Can't chdir to 'nosuch': No such file or directory"
        self.assertEqual(text, self.fail_to_open("--dir", "nosuch"))

    def test_dir_with_nul(self) -> None:
        """A path with a NUL is refused like a missing folder."""
        self.write("disque.conf", 'dir "a\\x00b"')
        self.assertIn(": Invalid argument", self.fail_to_open("disque.conf"))

    def test_include_applies_in_its_place(self) -> None:
        """An included file overrides lines before it, and is overridden by lines after it."""
        self.write("more.conf", "port 2", "hz 20")
        settings = self.load_lines("port 1", "include more.conf", "hz 30")
        self.assertEqual((2, 30), (settings.port, settings.hz))

    def test_include_and_dir_follow_dir(self) -> None:
        """``include`` and ``dir`` are resolved from the latest ``dir``."""
        (self.root / "sub" / "deep").mkdir()
        self.write("sub/more.conf", "port 2")
        settings = self.load_lines("dir ./sub", "include more.conf", "dir deep")
        self.assertEqual((2, self.path("sub", "deep")), (settings.port, settings.dir))

    def test_error_in_include(self) -> None:
        """An error in an included file shows its name, and the line in it."""
        self.write("disque.conf", "", "", "include more.conf")
        self.write("more.conf", "port x")
        text = self.refuse("disque.conf")
        self.assertIn("at line 1\n>>> 'port x'\n", text)
        self.assertIn(f"(in {self.path('more.conf')})", text)

    def test_include_of_itself(self) -> None:
        """A loop of includes is an error, instead of an endless start."""
        self.write("disque.conf", "include disque.conf")
        self.assertIn("\nToo many nested includes", self.refuse("disque.conf"))

    def test_many_includes_in_a_row(self) -> None:
        """Only nested includes are limited, not their number."""
        self.write("more.conf", "port 2")
        self.assertEqual(2, self.load_lines(*["include more.conf"] * 20).port)

    def test_paths_are_resolved_from_the_last_dir(self) -> None:
        """The order of lines does not change where a node finds its nodes file."""
        settings = self.load_lines("cluster-config-file n.conf", "logfile a.log", "dir sub")
        self.assertEqual(self.path("sub", "n.conf"), settings.cluster_config_file)
        self.assertEqual(self.path("sub", "a.log"), settings.logfile)
        self.assertEqual(
            {"cluster-config-file": "n.conf", "logfile": "a.log"}, settings.written_paths
        )

    def test_log_file_is_opened(self) -> None:
        """The log file is opened at once, and its content kept, so that errors appear before the
        first message."""
        (self.root / "sub" / "a.log").write_text("before\n")
        self.load_lines("dir sub", "logfile a.log")
        self.assertEqual("before\n", (self.root / "sub" / "a.log").read_text())

    def test_log_file_error_names_the_last_line(self) -> None:
        """Only the last log file is used, and an error shows its line."""
        self.write("disque.conf", "logfile /nosuch/a.log", "logfile sub", "port 1")
        text = self.refuse("disque.conf")
        self.assertIn("at line 2\n>>> 'logfile sub'\nCan't open the log file: Is a directory", text)

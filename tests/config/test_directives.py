"""Which numbers each directive takes."""

from __future__ import annotations

from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config.directives import DIRECTIVES
from disque_tx.config.kinds import Clamped, MemorySize, Number

_INT32: Final = 2**31 - 1
_INT64: Final = 2**63 - 1
_PORTS: Final = (
    *("port", "process-port", "cluster-bus-port", "cluster-announce-port"),
    "cluster-announce-bus-port",
)
#: The least and the greatest number in a file.
_LIMITS: Final = {
    **dict.fromkeys(_PORTS, (0, 65_535)),
    "processes": (1, 128),
    "tcp-backlog": (0, _INT32),
    "timeout": (0, _INT32),
    "tcp-keepalive": (0, _INT32),
    "databases": (1, _INT32),
    "beanstalk-replicate": (0, 65_535),
    "beanstalk-max-job-size": (1, 1 << 30),
    "maxclients": (1, _INT32),
    "maxmemory-samples": (1, _INT64),
    "auto-aof-rewrite-percentage": (0, _INT64),
    "cluster-node-timeout": (1, _INT64),
    "cluster-discovery-interval": (1, 3_600),
    "cluster-forget-after": (0, 366 * 86_400),
    "replicate-again-after": (0, 366 * 86_400),
    "replicate-again-rate": (0, 1_000_000),
    "shutdown-evacuates": (0, 86_400),
    "slowlog-log-slower-than": (-(2**63), _INT64),
    "latency-monitor-threshold": (0, _INT64),
    "eventlog-rotate-time": (1, _INT32),
    "workqueue-clean-every": (1, _INT32),
    "workqueue-deep-clean-every": (0, _INT32),
    "watchdog-period": (0, _INT32),
}
#: Numbers that are moved into their range, or have no upper limit.
_OTHERS: Final = {"hz", "slowlog-max-len"}


class NumberTests(SynchronousTestCase):
    """Numbers in files, and in CONFIG SET."""

    def test_limits(self) -> None:
        """Each directive takes its least and its greatest number, and none beyond."""
        numbers = {name for name, one in DIRECTIVES.items() if isinstance(one.kind, Number)}
        self.assertEqual(numbers, _LIMITS.keys() | _OTHERS)
        for name, limits in _LIMITS.items():
            kind = DIRECTIVES[name].kind
            for number in limits:
                self.assertEqual(number, kind.parse([b"%d" % number]), name)
            for number in (limits[0] - 1, limits[1] + 1):
                self.assertRaises(ValueError, kind.parse, [b"%d" % number])

    def test_set(self) -> None:
        """CONFIG SET takes the same numbers, except where the original takes others."""
        other = {"cluster-node-timeout": (0, 1), "slowlog-log-slower-than": (0, 0)}
        for name, (least, most) in _LIMITS.items():
            kind = DIRECTIVES[name].kind
            if name == "processes":
                continue
            set_least, taken = other.get(name, (least, least))
            self.assertEqual(taken, kind.parse_set(b"%d" % set_least), name)
            self.assertEqual(most, kind.parse_set(b"%d" % most), name)
            self.assertRaises(ValueError, kind.parse_set, b"%d" % (set_least - 1))
            self.assertRaises(ValueError, kind.parse_set, b"%d" % (most + 1))

    def test_moved(self) -> None:
        """``hz`` is moved into its range; a negative length of the slow log means any."""
        kind = DIRECTIVES["hz"].kind
        self.assertIsInstance(kind, Clamped)
        found = [kind.parse([word]) for word in (b"-1", b"0", b"1", b"500", b"501")]
        self.assertEqual([1, 1, 1, 500, 500], found)
        self.assertEqual(1, kind.parse_set(b"0"))
        self.assertRaises(ValueError, kind.parse_set, b"-1")
        length = DIRECTIVES["slowlog-max-len"].kind
        self.assertEqual([_INT64, 0, 7], [length.parse([word]) for word in (b"-1", b"0", b"7")])
        self.assertRaises(ValueError, length.parse_set, b"-1")

    def test_sizes(self) -> None:
        """Each directive takes its least size and none below, in files and in CONFIG SET, which
        also takes 0 for as much memory as there is; what REWRITE writes can be read again."""
        least = {
            "maxmemory": 1,
            "auto-aof-rewrite-min-size": 0,
            "cluster-link-buffer-limit": 0,
            "eventlog-rotate-size": 64 * 1024,
        }
        sizes = {name for name, one in DIRECTIVES.items() if isinstance(one.kind, MemorySize)}
        self.assertEqual(least.keys(), sizes)
        for name, size in least.items():
            kind = DIRECTIVES[name].kind
            self.assertEqual(size, kind.parse([b"%d" % size]), name)
            self.assertRaises(ValueError, kind.parse, [b"%d" % (size - 1)])
            self.assertEqual(size, kind.parse_set(b"%d" % size), name)
            self.assertEqual(size, kind.parse([kind.line(size) or b""]), name)
            if name != "maxmemory":
                self.assertRaises(ValueError, kind.parse_set, b"%d" % (size - 1))
        kind = DIRECTIVES["maxmemory"].kind
        self.assertEqual(0, kind.parse_set(b"0"))
        self.assertLess(_INT64 // 2, kind.parse([kind.line(0) or b""]))


class ChoiceTests(SynchronousTestCase):
    """One of a few words."""

    def test_words(self) -> None:
        """Each directive takes its words whole, and an error names them."""
        for name, words, error in (
            ("loglevel", "debug verbose notice warning", "one of debug, verbose, notice, warning"),
            ("syslog-facility", "user local0 local7", "one of USER or between LOCAL0-LOCAL7"),
            ("appendfsync", "no always everysec", "must be 'no', 'always' or 'everysec'"),
            ("eventlog-body", "no hash yes", "must be no, hash or yes"),
            ("maxmemory-policy", "acks noeviction", "Invalid maxmemory policy"),
        ):
            kind = DIRECTIVES[name].kind
            for word in words.split():
                self.assertEqual(word, kind.parse([word.encode()]), name)
            for wrong in (b"us", b"e", b"must", b"", b"Invalid", b"local8"):
                with self.assertRaisesRegex(ValueError, error):
                    kind.parse([wrong])


class PlaceTests(SynchronousTestCase):
    """Where directives may stand."""

    def test_not_in_files(self) -> None:
        """All but one can be in a file."""
        found = [name for name, one in DIRECTIVES.items() if not one.in_file]
        self.assertEqual(["watchdog-period"], found)

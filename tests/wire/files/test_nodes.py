"""The text of the nodes file, compared with files of the original."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.nodes.membership import membership_from_file
from disque_tx.messages.nodes import FAIL, LEAVING, MYSELF, NOADDR, PFAIL, NodeEntry, flags_text
from disque_tx.wire.files.nodes import parse, render

VECTORS = Path(__file__).parents[2] / "vectors" / "nodes-conf"
UNIX_MS = 1_795_000_000_000
NOW_MS = 7
LOADED_MS = UNIX_MS + NOW_MS
ME = b"a" * 40
CASES: list[dict[str, Any]] = json.loads((VECTORS / "cases.json").read_text())


def untimed(text: bytes) -> list[list[bytes]]:
    """The lines in fixed order, with every nonzero time replaced by the time of loading."""
    lines = sorted(line.split(b" ") for line in text.splitlines())
    for words in lines:
        words[3:5] = [b"0" if word == b"0" else b"%d" % LOADED_MS for word in words[3:5]]
    return lines


class GoldenTests(SynchronousTestCase):
    """Files that the original wrote."""

    def test_fields(self) -> None:
        """Every file of an old cluster is read field by field."""
        described = json.loads((VECTORS / "parsed.json").read_text())
        for name, rows in described.items():
            entries, faults = parse((VECTORS / name).read_bytes(), NOW_MS)
            self.assertEqual([], faults)
            self.assertEqual(len(rows), len(entries), name)
            for row, entry in zip(rows, entries, strict=True):
                self.assertEqual(
                    (row["id"], row["ip"], row["port"], ",".join(row["flags"])),
                    (
                        entry.id.decode(),
                        entry.ip.decode(),
                        entry.port,
                        flags_text(entry.flags).decode(),
                    ),
                )
                self.assertEqual(NOW_MS if row["ping_sent"] else 0, entry.ping_sent_ms)
                self.assertEqual(NOW_MS if row["pong_received"] else 0, entry.pong_received_ms)
                self.assertEqual(NOW_MS, entry.created_ms)

    def test_cases(self) -> None:
        """Unusual files that the original accepts are accepted with the same result."""
        for case in CASES:
            if case["expect"]["exit_code"] is None:
                self._accepted(case)

    def _accepted(self, case: dict[str, Any]) -> None:
        saved = case["expect"]["file_after_saveconfig"].encode("latin-1")
        entries, faults = parse(case["file"].encode("latin-1"), NOW_MS)
        self.assertEqual([], faults, case["name"])
        membership = membership_from_file(entries, case["port"], lambda: saved[:40])
        written = render(list(membership.nodes.values()), UNIX_MS)
        offline = [words[:5] for words in untimed(saved)]
        self.assertEqual(offline, [words[:5] for words in untimed(written)], case["name"])

    def test_damaged_cases(self) -> None:
        """Where the original refuses to start, this node starts with all readable lines."""
        kept = {}
        for case in CASES:
            if case["expect"]["exit_code"] is not None:
                entries, faults = parse(case["file"].encode("latin-1"), NOW_MS)
                self.assertNotEqual([], faults, case["name"])
                kept[case["name"]] = [entry.id for entry in entries]
        expected: dict[str, list[bytes]] = {
            "seven_fields": [],
            "five_fields": [],
            "no_myself": [b"b" * 40],
            "short_id": [],
            "no_colon": [],
            "unknown_flag": [],
            "two_myself": [ME],
        }
        self.assertEqual(expected, kept)


class DamageTests(SynchronousTestCase):
    """Damaged files: the error names the line, and the other lines are used."""

    def assert_refused(self, fault: str, *lines: bytes) -> None:
        """This is the first error in these lines."""
        _, faults = parse(b"\n".join(lines), NOW_MS)
        self.assertEqual(fault, faults[0])

    def test_reasons(self) -> None:
        """The operator learns where the file is damaged and how."""
        good = ME + b" :7711 myself 0 0 connected"
        peer = b"b" * 40
        self.assert_refused("line 2: 5 fields instead of 6", good, peer + b" ::1:1 noflags 0 0")
        self.assert_refused("line 1: longer than 1023 bytes", b"x" * 1024)
        self.assert_refused("line 1: unbalanced quotes", b'"')
        self.assert_refused(
            "line 2: the address has no colon before the port", good, peer + b" 1 noflags 0 0 c"
        )
        self.assert_refused(
            "line 1: the port is not a number up to 65535", ME + b" :65536 myself 0 0 c"
        )
        self.assert_refused(
            "line 1: the address is neither IPv4 nor IPv6", ME + b" host:1 myself 0 0 c"
        )
        self.assert_refused(
            "line 1: a time is not a number of milliseconds", ME + b" :1 myself -1 0 c"
        )
        self.assert_refused("line 1: unknown flag 'master'", ME + b" :1 master 0 0 c")
        self.assert_refused("line 2: the node of line 1 appears again", good, good)
        self.assert_refused("no line has the flag 'myself'", b"vars x 1")
        variable = b"vars bus-port-" + peer + b" x"
        self.assert_refused("line 1: the port is not a number up to 65535", variable, good)

    def test_rescue(self) -> None:
        """One damaged line costs one node, not the node's own ID or the whole cluster."""
        lines = [
            b"b" * 40 + b" ::1:7712 noflags 0 0 connected",
            b"\0" * 30,
            ME + b" :7711 myself 0 0 connected",
            ME + b" :7711 myself 0 0 connected",
            b"c" * 40 + b" ::1:7713 noflags 0 0",
            b"d" * 40 + b" ::1:7714 leaving 0 0 disconnected",
        ]
        entries, faults = parse(b"\n".join(lines), NOW_MS)
        self.assertEqual([b"b" * 40, ME, b"d" * 40], [entry.id for entry in entries])
        expected = [
            "line 2: 1 fields instead of 6",
            "line 4: the node of line 3 appears again",
            "line 5: 5 fields instead of 6",
        ]
        self.assertEqual(expected, faults)

    @given(st.binary(max_size=300))
    def test_any_bytes(self, text: bytes) -> None:
        """Any file can be read, and if no damage is reported nothing was skipped."""
        entries, faults = parse(text, NOW_MS)
        mine = [entry for entry in entries if entry.flags & MYSELF]
        self.assertLessEqual(len(mine), 1)
        if text and not faults:
            self.assertEqual(1, len(mine))


ADDRESSES = st.ip_addresses().map(lambda address: str(address).encode())
PORTS = st.integers(0, 65535)
FLAGS = st.sampled_from([0, PFAIL, FAIL, LEAVING, NOADDR, FAIL | NOADDR])


class RoundTripTests(SynchronousTestCase):
    """What is written is what is read."""

    @given(st.lists(st.tuples(ADDRESSES, PORTS, FLAGS, PORTS), max_size=5))
    def test_round_trip(self, rows: list[tuple[bytes, int, int, int]]) -> None:
        """No address, port or flag is lost over a restart."""
        entries = [NodeEntry(ME, b"", 7711, MYSELF, 0)]
        for number, (ip, port, flags, bus_port) in enumerate(rows):
            entries.append(NodeEntry(b"%040d" % number, ip, port, flags, 0))
            entries[-1].bus_port = bus_port
        text = render(entries, UNIX_MS)
        loaded, faults = parse(text, NOW_MS)
        self.assertEqual([], faults)
        self.assertEqual(text, render(loaded, UNIX_MS))
        self.assertEqual([e.bus_port for e in entries], [e.bus_port for e in loaded])

    def test_bus_port(self) -> None:
        """A bus port is on a line of its own that the original skips, since it reads only six
        fields."""
        entry = NodeEntry(b"b" * 40, b"::1", 7712, 0, 0)
        entry.bus_port = 9000
        lines = render([NodeEntry(ME, b"", 7711, MYSELF, 0), entry], UNIX_MS).splitlines()
        self.assertEqual(b"vars bus-port-" + b"b" * 40 + b" 9000", lines[2])
        self.assertEqual([6, 6], [len(line.split()) for line in lines[:2]])

    def test_times(self) -> None:
        """On disk is the time of day; what is read counts from now, whatever the clock did."""
        entry = NodeEntry(ME, b"", 7711, MYSELF, 0)
        entry.pong_received_ms = 5
        text = render([entry], UNIX_MS)
        self.assertEqual([b"0", b"%d" % (UNIX_MS + 5)], text.split()[3:5])
        (loaded,), _ = parse(text, 99)
        self.assertEqual((0, 99), (loaded.ping_sent_ms, loaded.pong_received_ms))

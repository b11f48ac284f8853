"""The text of the nodes file, against files of the original."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.membership import membership_from_file
from disque_tx.errors import PeerError
from disque_tx.nodetable import FAIL, LEAVING, MYSELF, NOADDR, PFAIL, NodeEntry, flags_text
from disque_tx.wire.nodesfile import parse, render

VECTORS = Path(__file__).parent.parent / "vectors" / "nodes-conf"
LOADED_MS = 1_795_000_000_000
ME = b"a" * 40


def untimed(text: bytes) -> list[list[bytes]]:
    """The lines in fixed order, every time that is not zero replaced by the time of loading."""
    lines = sorted(line.split(b" ") for line in text.splitlines())
    for words in lines:
        words[3:5] = [b"0" if word == b"0" else b"%d" % LOADED_MS for word in words[3:5]]
    return lines


class GoldenTests(SynchronousTestCase):
    """Files that the original wrote."""

    def test_fields(self) -> None:
        """Every file of an old cluster is understood field by field."""
        described = json.loads((VECTORS / "parsed.json").read_text())
        for name, rows in described.items():
            entries = parse((VECTORS / name).read_bytes(), LOADED_MS, 7)
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
                self.assertEqual(LOADED_MS if row["ping_sent"] else 0, entry.ping_sent_ms)
                self.assertEqual(LOADED_MS if row["pong_received"] else 0, entry.pong_received_ms)
                self.assertEqual(7, entry.created_ms)

    def test_cases(self) -> None:
        """Loading and saving decides about every odd file as the original did."""
        for case in json.loads((VECTORS / "cases.json").read_text()):
            text = case["file"].encode("latin-1")
            if case["expect"]["exit_code"] is None:
                self._accepted(case, text)
            else:
                with self.assertRaises(PeerError, msg=case["name"]):
                    parse(text, LOADED_MS, 0)

    def _accepted(self, case: dict[str, Any], text: bytes) -> None:
        saved = case["expect"]["file_after_saveconfig"].encode("latin-1")
        entries = parse(text, LOADED_MS, 0)
        membership = membership_from_file(entries, case["port"], lambda: saved[:40])
        written = render(list(membership.nodes.values()))
        offline = [words[:5] for words in untimed(saved)]
        self.assertEqual(offline, [words[:5] for words in untimed(written)], case["name"])


class RefusalTests(SynchronousTestCase):
    """Damaged files: the reason names the line."""

    def assert_refused(self, reason: str, *lines: bytes) -> None:
        """The text is refused with exactly this reason."""
        with self.assertRaises(PeerError) as caught:
            parse(b"\n".join(lines), LOADED_MS, 0)
        self.assertEqual(reason, str(caught.exception))

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

    @given(st.binary(max_size=300))
    def test_any_bytes(self, text: bytes) -> None:
        """Whatever is in the file, it is read or refused, and nothing worse happens."""
        try:
            entries = parse(text, LOADED_MS, 0)
        except PeerError:
            return
        self.assertEqual(1 if text else 0, len([e for e in entries if e.flags & MYSELF]))


ADDRESSES = st.ip_addresses().map(lambda address: str(address).encode())
FLAGS = st.sampled_from([0, PFAIL, FAIL, LEAVING, NOADDR, FAIL | NOADDR])


class RoundTripTests(SynchronousTestCase):
    """What is written is what is read."""

    @given(st.lists(st.tuples(ADDRESSES, st.integers(0, 65535), FLAGS), max_size=5))
    def test_round_trip(self, rows: list[tuple[bytes, int, int]]) -> None:
        """No address, port or flag is lost over a restart."""
        entries = [NodeEntry(ME, b"", 7711, MYSELF, 0)]
        entries += [
            NodeEntry(b"%040d" % number, ip, port, flags, 0)
            for number, (ip, port, flags) in enumerate(rows)
        ]
        text = render(entries)
        self.assertEqual(text, render(parse(text, LOADED_MS, 0)))

"""The text of the nodes file and the rows it describes (cluster protocol, section 9).

A line: ``<id> <ip>:<port> <flags> <ping_sent> <pong_received> <connected|disconnected>``

Other things are kept in lines ``vars <name> <value>``, which the original skips: the bus
port of a node, if it is not the one that belongs to its port, under ``bus-port-<id>``.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.errors import PeerError
from disque_tx.messages.limits import PORT_MAX
from disque_tx.messages.nodes import HANDSHAKE, MYSELF, NodeEntry, parse_flags
from disque_tx.messages.records import NODE_ID_LENGTH
from disque_tx.text.quoting import split

#: A line is at most ID, address, all flags and two times; the original reads no longer ones either.
LINE_BYTES_MAX: Final = 1023
#: The longest text form of an IPv6 address.
IP_BYTES_MAX: Final = 45
_BUS_PORT: Final = b"bus-port-"
_IP_CHARACTERS: Final = b"0123456789abcdefABCDEF.:"
#: Enough for milliseconds since 1970, and far from what 64 bits hold.
_TIME_DIGITS_MAX: Final = 18


def render(entries: list[NodeEntry], unix_ms: i64) -> bytes:
    """The file's content; nodes in a handshake are not members yet and are left out.

    ``unix_ms``: the wall clock when the steady clock was zero.
    """
    members = [entry for entry in entries if not entry.flags & HANDSHAKE]
    lines = [entry.line(unix_ms) for entry in members]
    for entry in members:
        if entry.bus_port and not entry.flags & MYSELF:
            lines.append(b"vars %s%s %d\n" % (_BUS_PORT, entry.id, entry.bus_port))
    return b"".join(lines)


def parse(text: bytes, now_ms: i64) -> tuple[list[NodeEntry], list[str]]:
    """The rows that can be read, and what is wrong with the others, by line.

    At most one row is MYSELF; if none is though the text is not empty, that is also a fault.
    ``now_ms``, the steady clock, is when the rows were created, and every time that is not zero.
    """
    rows = _Rows(now_ms)
    for number, line in enumerate(text.split(b"\n"), 1):
        try:
            rows.add(line, number)
        except PeerError as error:
            rows.faults.append(str(error))
    if text and not rows.has_myself:
        rows.faults.append("no line has the flag 'myself'")
    for node_id, bus_port in rows.bus_ports.items():
        if node_id in rows.by_id:
            rows.by_id[node_id].bus_port = bus_port
    return list(rows.by_id.values()), rows.faults


class _Rows:
    """What was read so far."""

    def __init__(self, now_ms: i64) -> None:
        self.by_id: dict[bytes, NodeEntry] = {}
        self.bus_ports: dict[bytes, int] = {}
        self.faults: list[str] = []
        self.has_myself: bool = False
        self._lines: dict[bytes, int] = {}
        self._now_ms: i64 = now_ms

    def add(self, line: bytes, number: int) -> None:
        words = _words(line, number)
        if not words:
            return
        if words[0].lower() == b"vars":
            self._variables(words, number)
            return
        entry = _entry(words, number, self._now_ms)
        if entry.id in self.by_id:
            raise _bad(number, f"the node of line {self._lines[entry.id]} appears again")
        if entry.flags & MYSELF:
            if self.has_myself:
                raise _bad(number, "a second node has the flag 'myself'")
            self.has_myself = True
        self.by_id[entry.id] = entry
        self._lines[entry.id] = number

    def _variables(self, words: list[bytes], number: int) -> None:
        """Pairs of name and value; those of other programs mean nothing here."""
        for place in range(1, len(words) - 1, 2):
            if words[place].startswith(_BUS_PORT):
                bus_port = _port(words[place + 1], number)
                self.bus_ports[words[place][len(_BUS_PORT) :]] = bus_port


def _bad(number: int, reason: str) -> PeerError:
    return PeerError(f"line {number}: {reason}")


def _words(line: bytes, number: int) -> list[bytes]:
    if len(line) > LINE_BYTES_MAX:
        raise _bad(number, f"longer than {LINE_BYTES_MAX} bytes")
    words = split(line)
    if words is None:
        raise _bad(number, "unbalanced quotes")
    return words


def _entry(words: list[bytes], number: int, now_ms: i64) -> NodeEntry:
    if len(words) != 6:
        raise _bad(number, f"{len(words)} fields instead of 6")
    node_id = words[0]
    if len(node_id) != NODE_ID_LENGTH or not node_id.isalnum():
        raise _bad(number, f"a node ID has {NODE_ID_LENGTH} letters and digits")
    ip, port = _address(words[1], number)
    try:
        flags = parse_flags(words[2])
    except ValueError as error:
        raise _bad(number, str(error)) from None
    entry = NodeEntry(node_id, ip, port, flags, now_ms)
    entry.ping_sent_ms = _time(words[3], number, now_ms)
    entry.pong_received_ms = _time(words[4], number, now_ms)
    return entry


def _address(text: bytes, number: int) -> tuple[bytes, int]:
    """The last colon separates, since IPv6 addresses hold colons themselves."""
    ip, colon, port = text.rpartition(b":")
    if not colon:
        raise _bad(number, "the address has no colon before the port")
    if len(ip) > IP_BYTES_MAX or ip.strip(_IP_CHARACTERS):
        raise _bad(number, "the address is neither IPv4 nor IPv6")
    return ip, _port(port, number)


def _port(text: bytes, number: int) -> int:
    if not text.isdigit() or len(text) > 5 or int(text) > PORT_MAX:
        raise _bad(number, "the port is not a number up to 65535")
    return int(text)


def _time(text: bytes, number: int, now_ms: i64) -> i64:
    if not text.isdigit() or len(text) > _TIME_DIGITS_MAX:
        raise _bad(number, "a time is not a number of milliseconds")
    return now_ms if int(text) else 0

"""The text of the nodes file and the rows it describes (cluster protocol, section 9).

A line: ``<id> <ip>:<port> <flags> <ping_sent> <pong_received> <connected|disconnected>``
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.errors import PeerError
from disque_tx.messages import NODE_ID_LENGTH
from disque_tx.nodetable import HANDSHAKE, MYSELF, NodeEntry, parse_flags
from disque_tx.quoting import split

#: A line is at most ID, address, all flags and two times; the original reads no longer ones either.
LINE_BYTES_MAX: Final = 1023
#: The longest text form of an IPv6 address.
IP_BYTES_MAX: Final = 45
_IP_CHARACTERS: Final = b"0123456789abcdefABCDEF.:"
#: Enough for milliseconds since 1970, and far from what 64 bits hold.
_TIME_DIGITS_MAX: Final = 18


def render(entries: list[NodeEntry]) -> bytes:
    """The file's content; handshakes are nobody yet and are left out."""
    return b"".join([entry.line() for entry in entries if not entry.flags & HANDSHAKE])


def parse(text: bytes, unix_ms: i64, now_ms: i64) -> list[NodeEntry]:
    """The rows of a nodes file, exactly one of them MYSELF; empty for an empty text.

    ``unix_ms`` takes the place of every time that is not zero; ``now_ms``, the steady clock, is
    when the rows were created. ``PeerError`` names the line and what is wrong with it.
    """
    if not text:
        return []
    entries: list[NodeEntry] = []
    seen: dict[bytes, int] = {}
    for number, line in enumerate(text.split(b"\n"), 1):
        words = _words(line, number)
        if not words or words[0].lower() == b"vars":
            continue
        entry = _entry(words, number, unix_ms, now_ms)
        if entry.id in seen:
            raise _bad(number, f"the node of line {seen[entry.id]} appears again")
        seen[entry.id] = number
        if entry.flags & MYSELF and any(other.flags & MYSELF for other in entries):
            raise _bad(number, "a second node has the flag 'myself'")
        entries.append(entry)
    if not any(entry.flags & MYSELF for entry in entries):
        raise PeerError("no line has the flag 'myself'")
    return entries


def _bad(number: int, reason: str) -> PeerError:
    return PeerError(f"line {number}: {reason}")


def _words(line: bytes, number: int) -> list[bytes]:
    if len(line) > LINE_BYTES_MAX:
        raise _bad(number, f"longer than {LINE_BYTES_MAX} bytes")
    words = split(line)
    if words is None:
        raise _bad(number, "unbalanced quotes")
    return words


def _entry(words: list[bytes], number: int, unix_ms: i64, now_ms: i64) -> NodeEntry:
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
    entry.ping_sent_ms = _time(words[3], number, unix_ms)
    entry.pong_received_ms = _time(words[4], number, unix_ms)
    return entry


def _address(text: bytes, number: int) -> tuple[bytes, int]:
    """The last colon separates, since IPv6 addresses hold colons themselves."""
    ip, colon, port = text.rpartition(b":")
    if not colon:
        raise _bad(number, "the address has no colon before the port")
    if len(ip) > IP_BYTES_MAX or ip.strip(_IP_CHARACTERS):
        raise _bad(number, "the address is neither IPv4 nor IPv6")
    if not port.isdigit() or len(port) > 5 or int(port) > 65535:
        raise _bad(number, "the port is not a number up to 65535")
    return ip, int(port)


def _time(text: bytes, number: int, unix_ms: i64) -> i64:
    if not text.isdigit() or len(text) > _TIME_DIGITS_MAX:
        raise _bad(number, "a time is not a number of milliseconds")
    return unix_ms if int(text) else 0

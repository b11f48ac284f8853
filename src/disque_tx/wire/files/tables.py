"""The text of the file of a shared table, and its registers (cluster protocol, section 21.4).

Lines, with words quoted as in configuration files::

    # Policies of a cluster of disque-tx, ...    (or: # Schedules of ...)
    version 1
    counter <the greatest counter seen>
    set <counter> <node ID> <pattern> <setting> <value>
    del <counter> <node ID> <pattern> <setting> <seconds since 1970>
    checksum <hash of all lines before, in hexadecimal digits>

The file of a table that was repaired has version 2. Behind ``counter`` stands the generation of
that, and behind each register its own, as one more word.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from mypy_extensions import i64

from disque_tx.errors import PeerError
from disque_tx.messages.records import NODE_ID_LENGTH
from disque_tx.messages.tables import (
    NAME_BYTES_MAX,
    PATTERN_BYTES_MAX,
    SCHEDULE_BYTES_MAX,
    Register,
)
from disque_tx.text.quoting import quote, split

VERSION: Final = 2
_VERSION_UNREPAIRED: Final = 1
#: What a file holds: the first word of its title.
POLICIES: Final = b"Policies"
SCHEDULES: Final = b"Schedules"
_TITLE: Final = b"# %s of a cluster of disque-tx"
_COMMANDS: Final = {POLICIES: b"QPOLICY", SCHEDULES: b"SCHEDULE"}
_CHECKSUM: Final = b"checksum "
#: Room for the longest words, every byte of them escaped.
_LINE_BYTES_MAX: Final = 4 * (PATTERN_BYTES_MAX + NAME_BYTES_MAX + SCHEDULE_BYTES_MAX) + 200
#: Of numbers that fit into a machine word.
_DIGITS_MAX: Final = 18


def render(
    registers: list[Register], greatest: i64, content: bytes = POLICIES, generation: i64 = 0
) -> bytes:
    """The whole file. ``generation``, ``greatest``: the greatest generation, and counter of it,
    seen. ``content``: what it holds."""
    title = _TITLE % content + b", written by the node: change them by %s.\n" % _COMMANDS[content]
    head = b"version %d\ncounter %d\n" % (_VERSION_UNREPAIRED, greatest)
    if generation:
        head = b"version %d\ncounter %d %d\n" % (VERSION, greatest, generation)
    lines = [title, head]
    for register in registers:
        if not register.line:
            register.line = _line(register)
        lines.append(register.line)
    text = b"".join(lines)
    return text + _CHECKSUM + checksum(text) + b"\n"


def checksum(text: bytes) -> bytes:
    """What stands in the last line of a file whose other lines are ``text``."""
    return blake2b(text, digest_size=16).hexdigest().encode()


def _line(register: Register) -> bytes:
    word, last = b"set", quote(register.value)
    if register.deleted_s:
        word, last = b"del", b"%d" % register.deleted_s
    start = b"%s %d %s " % (word, register.counter, register.node)
    line = start + b"%s %s %s" % (quote(register.pattern), quote(register.name), last)
    return line + (b" %d\n" % register.generation if register.generation else b"\n")


def parse(text: bytes, content: bytes = POLICIES) -> tuple[list[Register], int, int]:
    """The registers of a file, the greatest generation seen, and the greatest counter of it.

    ``PeerError`` with what is wrong: the file is from a later version, is not a file with this
    ``content``, or is damaged.
    """
    if not text.startswith(_TITLE % content):
        raise PeerError(f"it is no file of {content.lower().decode()}")
    lines = text.split(b"\n")
    version = lines[1].split() if len(lines) > 1 else []
    if len(version) == 2 and version[0] == b"version" and version[1].isdigit():
        if len(version[1]) > _DIGITS_MAX or int(version[1]) > VERSION:
            raise PeerError("a later version of disque-tx has written it")
    head, mark, found = text.rpartition(_CHECKSUM)
    if not mark or found != checksum(head) + b"\n":
        raise PeerError("its checksum is wrong or missing: it was not written to its end")
    registers: list[Register] = []
    generation: i64 = 0
    greatest: i64 = 0
    for number, line in enumerate(head.split(b"\n"), 1):
        words = split(line) if len(line) <= _LINE_BYTES_MAX else None
        if words is None:
            raise _bad(number)
        if not words or line.startswith(b"#") or words[0] == b"version":
            continue
        if words[0] == b"counter" and len(words) in (2, 3):
            greatest = max(greatest, _number(words[1], number))
            generation = _number(words[2], number) if len(words) == 3 else 0
        else:
            registers.append(_register(words, number))
    return registers, generation, greatest


def _register(words: list[bytes], number: int) -> Register:
    if not 6 <= len(words) <= 7 or words[0] not in (b"set", b"del"):
        raise _bad(number)
    if len(words[2]) != NODE_ID_LENGTH:
        raise _bad(number)
    generation = _number(words[6], number) if len(words) == 7 else 0
    counter = _number(words[1], number)
    node, pattern, name = words[2], words[3], words[4]
    if words[0] == b"del":
        deleted_s = _number(words[5], number)
        return Register(pattern, name, b"", counter, node, deleted_s, generation=generation)
    return Register(pattern, name, words[5], counter, node, generation=generation)


def _number(word: bytes, number: int) -> int:
    if not word.isdigit() or len(word) > _DIGITS_MAX:
        raise _bad(number)
    return int(word)


def _bad(number: int) -> PeerError:
    return PeerError(f"line {number} is not one of its kinds")

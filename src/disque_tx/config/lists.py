"""Kinds of values that are addresses, or several words; others are in
:mod:`disque_tx.config.kinds`."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from typing import Final

import attrs

from disque_tx.config.kinds import WRONG_WORDS, MemorySize, Text, ValueKind, decode, encode, only
from disque_tx.config.units import parse_int, printable, show_memory
from disque_tx.text.quoting import quote

_HOST: Final = re.compile(rb"[0-9A-Za-z.:%_-]+")
_NAME: Final = re.compile(rb"[0-9A-Za-z]([0-9A-Za-z._-]{0,252}[0-9A-Za-z])?")
_SIZE: Final = MemorySize("A memory size can't be negative")


@attrs.frozen
class Addresses(ValueKind[list[str]]):
    """Addresses to listen on; none means all."""

    def parse(self, words: list[bytes]) -> list[str]:
        if not words:
            raise ValueError(WRONG_WORDS)
        if len(words) > 16:
            raise ValueError("Too many bind addresses specified")
        for word in words:
            if not _HOST.fullmatch(word):
                raise ValueError(f"Invalid bind address '{printable(word)}'")
        return [decode(word) for word in words]

    def show(self, value: list[str]) -> bytes:
        return encode(" ".join(value))

    def line(self, value: list[str]) -> bytes | None:
        return self.show(value) if value else None


@attrs.frozen
class Prefixes(ValueKind[list[str]]):
    """Key prefixes of work queues."""

    def parse(self, words: list[bytes]) -> list[str]:
        if not words or b"" in words:
            raise ValueError(WRONG_WORDS)
        return [decode(word) for word in words]

    def show(self, value: list[str]) -> bytes:
        return encode(" ".join(value))

    def line(self, value: list[str]) -> bytes | None:
        return b" ".join([quote(encode(prefix)) for prefix in value]) if value else None


@attrs.frozen
class Hosts(ValueKind[list[str]]):
    """Names of hosts, without ports."""

    def parse(self, words: list[bytes]) -> list[str]:
        if not words:
            raise ValueError(WRONG_WORDS)
        return [self._name(word) for word in words if word]

    def _name(self, word: bytes) -> str:
        if not _NAME.fullmatch(word):
            raise ValueError(f"Invalid host name '{printable(word)}'")
        return decode(word).lower()

    def parse_set(self, value: bytes) -> list[str]:
        return self.parse(value.split() or [b""])

    def show(self, value: list[str]) -> bytes:
        return encode(" ".join(value))

    def line(self, value: list[str]) -> bytes | None:
        return self.show(value) if value else None


@attrs.frozen
class Ip(Text):
    """A literal address, or none."""

    message: str = "Invalid address '{}'"
    pattern: re.Pattern[str] = re.compile(r"[0-9A-Fa-f.:]{0,45}")

    def parse(self, words: list[bytes]) -> str:
        text = super().parse(words)
        try:
            return str(ip_address(text)) if text else ""
        except ValueError as error:
            raise ValueError(self.message.replace("{}", printable(only(words)))) from error


@attrs.frozen
class Networks(ValueKind[list[str]]):
    """Addresses and networks ``address/prefix``; none, or ``*``, means all."""

    def parse(self, words: list[bytes]) -> list[str]:
        if not words:
            raise ValueError(WRONG_WORDS)
        return [] if b"*" in words else [self._network(word) for word in words if word]

    def _network(self, word: bytes) -> str:
        try:
            network = ip_network(decode(word), strict=False)
        except ValueError as error:
            raise ValueError(f"Invalid address or network '{printable(word)}'") from error
        return str(network).removesuffix(f"/{network.max_prefixlen}")

    def parse_set(self, value: bytes) -> list[str]:
        return self.parse(value.split() or [b""])

    def show(self, value: list[str]) -> bytes:
        return encode(" ".join(value))

    def line(self, value: list[str]) -> bytes | None:
        return self.show(value) if value else None


@attrs.frozen
class WaitFor:
    """For how many nodes, itself included, a node waits before it serves, and for how many seconds
    at most; 0 means not at all, and without an end."""

    nodes: int = 0
    timeout_s: int = 0


@attrs.frozen
class WaitForNodes(ValueKind[WaitFor]):
    """``<nodes> [timeout]``."""

    def parse(self, words: list[bytes]) -> WaitFor:
        if len(words) not in (1, 2):
            raise ValueError(WRONG_WORDS)
        numbers = [parse_int(word) for word in words]
        if not 0 <= numbers[0] <= 1_000:
            raise ValueError("cluster-wait-for waits for 0 to 1000 nodes")
        if not 0 <= numbers[-1] <= 86_400:
            raise ValueError("cluster-wait-for waits for 0 to 86400 seconds")
        return WaitFor(*numbers)

    def show(self, value: WaitFor) -> bytes:
        return b"%d %d" % (value.nodes, value.timeout_s)


@attrs.frozen
class OutputLimit:
    """When a client that does not read is disconnected: at once above ``hard_bytes``, or after
    ``soft_s`` seconds above ``soft_bytes``; 0 means never."""

    hard_bytes: int = 0
    soft_bytes: int = 0
    soft_s: int = 0


@attrs.frozen
class OutputLimits(ValueKind[OutputLimit]):
    """``normal <hard> <soft> <seconds>``; CONFIG SET takes several in one string (P25)."""

    def parse(self, words: list[bytes]) -> OutputLimit:
        if len(words) != 4:
            raise ValueError(WRONG_WORDS)
        if words[0].lower() != b"normal":
            raise ValueError("Unrecognized client limit class")
        soft_s = parse_int(words[3])
        if soft_s < 0:
            raise ValueError("Negative number of seconds in soft limit is invalid")
        return OutputLimit(_SIZE.parse(words[1:2]), _SIZE.parse(words[2:3]), soft_s)

    def parse_set(self, value: bytes) -> OutputLimit | None:
        words = value.split(b" ") if value else []
        limit = None
        for start in range(0, len(words), 4):
            limit = self.parse(words[start : start + 4])
        return limit

    def show(self, value: OutputLimit) -> bytes:
        return b"normal %d %d %d" % (value.hard_bytes, value.soft_bytes, value.soft_s)

    def line(self, value: OutputLimit) -> bytes:
        sizes = show_memory(value.hard_bytes), show_memory(value.soft_bytes)
        return b"normal %s %s %d" % (*sizes, value.soft_s)

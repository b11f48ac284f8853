"""Where nodes are looked for: the words of ``cluster-discovery``, and the lines of its files.

Each word is one source: ``dns:<name>[:port[@busport]]``, ``srv:<name>``, ``file:<path>``, or
``static:<host[:port[@busport]]>,...``. The same places, one a line, are in files.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final

import attrs

from disque_tx.config.kinds import WRONG_WORDS, ValueKind, decode, encode
from disque_tx.config.units import printable
from disque_tx.messages.limits import PORT_MAX
from disque_tx.text.quoting import quote

KINDS: Final = ("dns", "srv", "file", "static")
_SOURCES_MAX: Final = 16
_PLACES_MAX: Final = 1_000
_LABEL: Final = "[0-9A-Za-z_]([0-9A-Za-z_-]{0,61}[0-9A-Za-z_])?"
_NAME: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*\.?")
_PLACE: Final = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:@\s]+)(:(?P<port>\d{1,5}))?(@(?P<bus>\d{1,5}))?"
)


@attrs.frozen
class NodePlace:
    """Where a node may be. ``host``: a name or an address. ``port``: for clients, 0 for that of
    this node. ``bus_port``: 0 for the one that belongs to the port."""

    host: str
    port: int = 0
    bus_port: int = 0


@attrs.frozen
class Source:
    """``text``: as it was written. ``kind``: one of ``KINDS``. ``name``: of SRV records, or the
    path of the file, otherwise empty. ``places``: whose addresses are looked up."""

    text: str
    kind: str
    name: str = ""
    places: tuple[NodePlace, ...] = ()


def parse_place(text: str) -> NodePlace:
    """``host[:port[@busport]]``, an IPv6 address in brackets; ``ValueError`` says what is wrong."""
    found = _PLACE.fullmatch(text)
    if found is None:
        raise ValueError(f"'{_shown(text)}' is not host, host:port or host:port@busport")
    host = found["host"].strip("[]")
    if not _is_host(host, found["host"].startswith("[")):
        raise ValueError(f"'{_shown(text)}' has neither the name nor the address of a host")
    ports = [int(found[part] or 0) for part in ("port", "bus")]
    written = [found[part] for part in ("port", "bus") if found[part] is not None]
    if any(not 0 < int(port) <= PORT_MAX for port in written):
        raise ValueError(f"'{_shown(text)}' has a port that is not 1 to {PORT_MAX}")
    if ports[0] > PORT_MAX - 10_000 and not ports[1]:
        raise ValueError(f"'{_shown(text)}' needs a bus port, as in host:port@busport")
    return NodePlace(host, *ports)


def _is_host(host: str, bracketed: bool) -> bool:
    try:
        return (ip_address(host).version == 6) == bracketed
    except ValueError:
        # What has only digits and dots is an address with a mistake.
        return not bracketed and bool(_NAME.fullmatch(host)) and not host.replace(".", "").isdigit()


def parse_source(text: str) -> Source:
    """One word of the directive; ``ValueError`` says what is wrong."""
    kind, colon, rest = text.partition(":")
    if not colon or kind not in KINDS or not rest:
        known = ", ".join(f"{one}:" for one in KINDS)
        raise ValueError(f"'{_shown(text)}' begins with none of {known}")
    if kind == "srv":
        if not _NAME.fullmatch(rest):
            raise ValueError(f"'{_shown(text)}' has no name of SRV records, without a port")
        return Source(text, kind, rest)
    if kind == "file":
        if not rest.startswith("/") or "\0" in rest:
            raise ValueError(f"'{_shown(text)}' has no path that begins with /")
        return Source(text, kind, rest)
    words = [rest] if kind == "dns" else rest.split(",")
    if len(words) > _PLACES_MAX:
        raise ValueError(f"more than {_PLACES_MAX} places after 'static:'")
    return Source(text, kind, "", tuple([parse_place(word) for word in words]))


def parse_file(text: str) -> tuple[NodePlace, ...]:
    """The places in a file: one a line, what follows a ``#`` is a comment. ``ValueError`` says in
    which line what is wrong."""
    places: list[NodePlace] = []
    for number, line in enumerate(text.splitlines(), 1):
        word = line.partition("#")[0].strip()
        if word:
            try:
                places.append(parse_place(word))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
    return tuple(places[:_PLACES_MAX])


def _shown(text: str) -> str:
    return printable(encode(text))


@attrs.frozen
class Sources(ValueKind[list[str]]):
    """The sources of ``cluster-discovery``, as they were written."""

    def parse(self, words: list[bytes]) -> list[str]:
        if not words:
            raise ValueError(WRONG_WORDS)
        texts = [decode(word) for word in words if word]
        if len(texts) > _SOURCES_MAX:
            raise ValueError(f"cluster-discovery has at most {_SOURCES_MAX} sources")
        for text in texts:
            parse_source(text)
        return list(dict.fromkeys(texts))

    def show(self, value: list[str]) -> bytes:
        return encode(" ".join(value))

    def line(self, value: list[str]) -> bytes | None:
        return b" ".join([quote(encode(text)) for text in value]) if value else None


@attrs.frozen
class NameServers(ValueKind[list[str]]):
    """Addresses of name servers, with or without ports."""

    def parse(self, words: list[bytes]) -> list[str]:
        if not words:
            raise ValueError(WRONG_WORDS)
        return [self._server(decode(word)) for word in words if word]

    def _server(self, text: str) -> str:
        place = parse_place(text)
        try:
            ip_address(place.host)
        except ValueError:
            raise ValueError(f"'{_shown(text)}' is not the address of a name server") from None
        return text

    def show(self, value: list[str]) -> bytes:
        return encode(" ".join(value))

    def line(self, value: list[str]) -> bytes | None:
        return self.show(value) if value else None

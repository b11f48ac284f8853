"""Forms of output: replies as people or programs read them (client protocol, section 22.1).

``formatted`` is for people, ``raw`` and ``csv`` for shell tools, ``json`` for programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from disque_tx.cli.replies import ErrorReply, Pairs, Reply, StatusReply
from disque_tx.text.quoting import quote

_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]")
#: Commands whose replies are text for people: printed unchanged in every form but JSON.
_VERBATIM: Final = {
    b"INFO": frozenset[bytes](),
    b"CLUSTER": frozenset((b"NODES", b"INFO")),
    b"CLIENT": frozenset((b"LIST",)),
    b"LATENCY": frozenset((b"GRAPH", b"DOCTOR")),
}


class Style:
    """How to print. ``delimiter``: between array elements in the raw form. ``colour``: errors in
    red, for terminals."""

    def __init__(self, form: str, delimiter: bytes = b"\n", colour: bool = False) -> None:
        self.form = form
        self.delimiter = delimiter
        self.colour = colour

    def render(self, args: list[bytes], reply: Reply) -> bytes:
        """The reply to the request ``args`` as it is printed, line end included."""
        if self.form != "json" and is_verbatim(args):
            return raw(reply, self.delimiter)
        return _FORMS[self.form](self, reply)


def is_verbatim(args: list[bytes]) -> bool:
    """Whether the reply to this request is always printed raw, without an extra line end."""
    words = [arg.upper() for arg in args[:2]]
    seconds = _VERBATIM.get(words[0])
    return seconds is not None and (not seconds or words[-1] in seconds)


def raw(reply: Reply, delimiter: bytes) -> bytes:
    """Strings as they are, arrays flattened; no line end of its own, except after an error."""
    if reply is None:
        return b""
    if isinstance(reply, ErrorReply):
        return reply + b"\n"
    if isinstance(reply, bytes):
        return bytes(reply)
    if isinstance(reply, int):
        return b"%d" % reply
    return delimiter.join([raw(element, delimiter) for element in reply])


def csv(reply: Reply) -> bytes:
    """Comma separated, strings quoted, arrays flattened; no line end."""
    if reply is None:
        return b"NIL"
    if isinstance(reply, ErrorReply):
        return b"ERROR," + quote(reply)
    if isinstance(reply, bytes):
        return quote(reply)
    if isinstance(reply, int):
        return b"%d" % reply
    return b",".join([csv(element) for element in reply])


def formatted(reply: Reply, indent: bytes = b"", colour: bool = False) -> bytes:
    """For people: types can be distinguished, and control characters are escaped."""
    if reply is None:
        return b"(nil)\n"
    if isinstance(reply, ErrorReply):
        line = b"(error) " + _harmless(reply)
        return (b"\x1b[31m%b\x1b[0m\n" if colour else b"%b\n") % line
    if isinstance(reply, StatusReply):
        return _harmless(reply) + b"\n"
    if isinstance(reply, bytes):
        return quote(reply) + b"\n"
    if isinstance(reply, int):
        return b"(integer) %d\n" % reply
    return _numbered(reply, indent, colour) if reply else b"(empty list or set)\n"


def _numbered(elements: list[Reply], indent: bytes, colour: bool) -> bytes:
    width = len(str(len(elements)))
    deeper = indent + b" " * (width + 2)
    lines = [
        b"%*d) %b" % (width, number, formatted(element, deeper, colour))
        for number, element in enumerate(elements, 1)
    ]
    return indent.join(lines)


def _harmless(text: bytes) -> bytes:
    return _CONTROL.sub(lambda match: b"\\x%02x" % match[0][0], text)


def jsonable(reply: Reply) -> object:
    """The reply as values of JSON; strings that are not UTF-8 become ``{"base64": ...}``, errors
    ``{"error": ...}``."""
    if isinstance(reply, ErrorReply):
        return {"error": reply.decode("utf-8", "backslashreplace")}
    if isinstance(reply, bytes):
        return _text(reply)
    if isinstance(reply, Pairs):
        return {
            _key(key): jsonable(value) for key, value in zip(reply[::2], reply[1::2], strict=False)
        }
    if isinstance(reply, list):
        return [jsonable(element) for element in reply]
    return reply


def _text(data: bytes) -> object:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        import binascii

        return {"base64": binascii.b2a_base64(data, newline=False).decode("ascii")}


def _key(key: Reply) -> str:
    return key.decode("utf-8", "backslashreplace") if isinstance(key, bytes) else str(key)


def human_size(size_bytes: int) -> str:
    """A size for people, such as ``1.50M``."""
    size = float(size_bytes)
    if size < 1024:
        return f"{size_bytes}B"
    unit = "B"
    for larger in "KMGT":
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.2f}{unit}"


def _json_line(style: Style, reply: Reply) -> bytes:
    # Only this form needs the module, and a one-shot command must start fast.
    import json

    return json.dumps(jsonable(reply), ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"


def _raw_line(style: Style, reply: Reply) -> bytes:
    return raw(reply, style.delimiter) + b"\n"


def _csv_line(style: Style, reply: Reply) -> bytes:
    return csv(reply) + b"\n"


def _formatted_lines(style: Style, reply: Reply) -> bytes:
    return formatted(reply, colour=style.colour)


_FORMS: Final[dict[str, Callable[[Style, Reply], bytes]]] = {
    "raw": _raw_line,
    "csv": _csv_line,
    "json": _json_line,
    "formatted": _formatted_lines,
}

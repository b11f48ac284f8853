"""The table of routes: which function answers which path, and what the description says of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

import attrs

from disque_tx.plugins import QUEUE_BYTES_MAX
from disque_tx.protocols.http.server.checks import SAFE_METHODS
from disque_tx.protocols.http.server.exchange import Exchange, Parameter
from disque_tx.protocols.http.server.problems import Problem, bad_request

Handler = Callable[[Exchange], Any]
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_MARKERS: Final = frozenset((b".", b".."))
#: Bytes of a body: where nothing else is said, with many IDs of jobs, and with the body of a job.
BODY_BYTES: Final = 4 * 1024
IDS_BODY_BYTES: Final = 128 * 1024
JOB_BODY_BYTES: Final = 16 * 1024 * 1024
#: Clients and proxies take ``.`` and ``..`` for steps in a path, however they are encoded. Names
#: like these are written so; the name ``=.`` is written ``%3D.``.
_ESCAPED: Final = {b"=.": b".", b"=..": b".."}


@attrs.frozen
class Route:
    """One operation.

    ``path``: with ``{name}`` for one segment. ``handler``: returns a value for JSON, a ``Reply``,
    or a Deferred of one of them; raises ``Problem``. ``open``: served without a password;
    ``identifies``: and yet the handler gets the role of the client. ``page``: a file of the
    console, which is not a part of the API. ``costly``: its work grows with all of the node, so few
    of these are served at a time.
    ``body``: the schema of the JSON it takes, ``None`` if it takes none; ``body_max``: bytes of it.
    ``answer``: the schema of what it returns. ``also``: other statuses of an answer with that
    schema. ``errors``: the statuses of its own problems, besides those of all routes.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    parameters: tuple[Parameter, ...] = ()
    body: dict[str, Any] | None = None
    body_max: int = BODY_BYTES
    answer: dict[str, Any] | None = None
    status: int = 200
    also: tuple[int, ...] = ()
    content_type: str = "application/json"
    errors: tuple[int, ...] = ()
    open: bool = False
    identifies: bool = False
    costly: bool = False
    page: bool = False

    @property
    def changes(self) -> bool:
        """Whether it needs the password of the node."""
        return self.method not in SAFE_METHODS

    @property
    def public(self) -> bool:
        """Whether it is the same for everybody, and cheap: the console's files and the health."""
        return self.open and not self.identifies and not self.changes

    @property
    def names(self) -> list[str]:
        """The parameters in the path."""
        return _PARAMETER.findall(self.path)


def segment(name: str | bytes) -> str:
    """A name as one segment of a path, as :meth:`Routes.find` reads it."""
    quoted = quote(name, safe="")
    return f"={quoted}" if quoted.encode() in _MARKERS else quoted


def _decoded(word: bytes) -> bytes:
    return _ESCAPED.get(word) or unquote_to_bytes(word)


class Routes:
    """All routes of a listener."""

    def __init__(self) -> None:
        self._table: dict[tuple[str | None, ...], dict[str, Route]] = {}

    def __iter__(self) -> Iterator[Route]:
        for methods in self._table.values():
            yield from methods.values()

    def add(self, *routes: Route) -> None:
        """Serve these, too."""
        for route in routes:
            segments = route.path.split("/")[1:]
            shape = tuple(None if _PARAMETER.fullmatch(word) else word for word in segments)
            self._table.setdefault(shape, {})[route.method] = route

    def find(self, method: str, path: bytes) -> tuple[Route, dict[str, bytes]]:
        """The route of a request and the parameters in its path, percent-decoded.

        A queue may have any name, slashes included: they are encoded as ``%2F``, and the names
        ``.`` and ``..`` as ``=.`` and ``=..``. Raises ``Problem`` with 404 or 405.
        """
        words = path.split(b"/")[1:]
        if any(word in _MARKERS for word in words):
            raise bad_request("The path must not contain . or .. segments.")
        allowed: set[str] = set()
        for shape, methods in self._matching(words):
            route = methods.get("GET" if method == "HEAD" else method)
            if route is not None:
                pairs = zip(shape, words, strict=True)
                values = [_decoded(word) for part, word in pairs if part is None]
                return route, _checked(dict(zip(route.names, values, strict=True)))
            allowed |= {*methods, *(("HEAD",) if "GET" in methods else ())}
        if allowed:
            names = ", ".join(sorted(allowed))
            raise Problem(405, "METHOD", f"This path takes {names}.", headers={"Allow": names})
        raise Problem(404, "PATH", "There is nothing at this path.")

    def _matching(
        self, words: list[bytes]
    ) -> Iterator[tuple[tuple[str | None, ...], dict[str, Route]]]:
        for shape, methods in self._table.items():
            if len(shape) == len(words) and all(
                bool(word) if part is None else part.encode() == word
                for part, word in zip(shape, words, strict=True)
            ):
                yield shape, methods


def _checked(values: dict[str, bytes]) -> dict[str, bytes]:
    """The parameters of a path, none of which is too long for the name of a queue."""
    for name, value in values.items():
        if len(value) > QUEUE_BYTES_MAX:
            raise bad_request(f"{name} has {QUEUE_BYTES_MAX} bytes at most.")
    return values

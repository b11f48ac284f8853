"""One request as handlers see it, the parameters that it may have, and the answer."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final
from urllib.parse import parse_qsl

import attrs
from twisted.internet.defer import Deferred

from disque_tx.plugins import IConnection, IHost, Role
from disque_tx.protocols.http.server.checks import only
from disque_tx.protocols.http.server.largejson import read_flat, refuse_constant
from disque_tx.protocols.http.server.problems import Problem, bad_request
from disque_tx.protocols.http.server.slices import Slices

#: Bytes of a pattern for names, and of names with commas between them.
PATTERN_BYTES: Final = 256
LIST_BYTES: Final = 4 * 1024
#: JavaScript rounds larger numbers; they are written as strings.
EXACT_MAX: Final = 2**53 - 1
_QUERY_FIELDS_MAX: Final = 50
_DEPTH_MAX: Final = 32
#: Bodies that are read at once, whatever they contain.
SMALL_BYTES: Final = 64 * 1024
#: Values in a larger one: the IDs of all letters that one request may name, and some more.
VALUES_MAX: Final = 12_000
_SEPARATORS: Final = (b",", b"[", b"{")


@attrs.frozen
class Parameter:
    """A word of the query, or a header. ``kind``: its type in JSON Schema. ``least``, ``most``: of
    a number. ``longest``: bytes of text. ``place``: ``query`` or ``header``."""

    name: str
    summary: str
    kind: str = "string"
    default: Any = None
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()
    required: bool = False
    longest: int = PATTERN_BYTES
    place: str = "query"


@attrs.define
class Reply:
    """An answer that is not JSON with status 200. ``body``: bytes, a value for JSON, or an
    asynchronous generator of bytes, which are sent as the client takes them."""

    body: bytes | AsyncGenerator[bytes, None] | Any = b""
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = attrs.Factory(dict)


@attrs.define
class Exchange:
    """A request that was admitted. ``parameters``, ``schema``: what its route takes in the query
    and in headers, and as JSON, ``None`` for nothing. ``path``: the parameters in its path.
    ``query``: raw, behind the ``?``. ``body``: bytes. ``request``: of twisted.web, for answers that
    are streamed. ``may_go_on``: whether its client would be admitted again, for those that take
    long. ``slices``: for work that takes long."""

    host: IHost
    connection: IConnection
    role: Role
    parameters: tuple[Parameter, ...]
    schema: dict[str, Any] | None
    path: dict[str, bytes]
    query: bytes
    body: bytes
    content_type: str
    request: Any
    may_go_on: Callable[[], bool]
    slices: Slices
    accept: str = ""
    _words: dict[str, str] | None = None

    def call(self, *words: bytes) -> Deferred[Any]:
        """Run a command of the node with the rights of this client."""
        return self.connection.call(self.role, *words)

    def word(self, name: str) -> str | None:
        """A word of the query, as the route describes it; ``None`` if it is absent."""
        if self._words is None:
            self._words = self._parsed()
        parameter = self._described(name)
        value = self._words.get(name)
        if value is None:
            if parameter.required:
                raise bad_request(f"The parameter {name} is missing.")
            return None if parameter.default is None else str(parameter.default)
        if len(value.encode()) > parameter.longest:
            raise bad_request(f"{name} has {parameter.longest} bytes at most.")
        if parameter.choices and value not in parameter.choices:
            raise bad_request(f"{name} must be one of {', '.join(parameter.choices)}.")
        return value

    def number(self, name: str) -> int:
        """A number of the query, within the limits that the route describes."""
        parameter = self._described(name)
        return whole(name, self.word(name) or "0", parameter.least, parameter.most)

    def header(self, parameter: Parameter) -> bytes | None:
        """A header that the route describes; ``None`` if it is absent."""
        value = only(self.request.requestHeaders, parameter.name)
        if value is not None and len(value) > parameter.longest:
            raise bad_request(f"{parameter.name} has {parameter.longest} bytes at most.")
        return value

    def _described(self, name: str) -> Parameter:
        return next(parameter for parameter in self.parameters if parameter.name == name)

    def check_query(self) -> None:
        """Refuse words that the route does not know: a typing error must not change the meaning of
        a request."""
        self._words = self._parsed()
        known = {parameter.name for parameter in self.parameters if parameter.place == "query"}
        unknown = sorted(self._words.keys() - known)
        if unknown:
            raise bad_request(f"There is no parameter {unknown[0][:50]!r} here.")

    def _parsed(self) -> dict[str, str]:
        try:
            pairs = parse_qsl(
                self.query.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=_QUERY_FIELDS_MAX,
            )
        except ValueError as error:
            raise bad_request("The query is malformed.") from error
        words = dict(pairs)
        if len(words) != len(pairs):
            raise bad_request("A parameter occurs twice.")
        return words

    def json(self) -> dict[str, Any]:
        """The members of the body, which must be an object in JSON; an empty body is an empty
        object."""
        if not self.body:
            return {}
        self._check_type()
        if sum(map(self.body.count, _SEPARATORS)) > VALUES_MAX and len(self.body) > SMALL_BYTES:
            detail = f"The body of this request may have {VALUES_MAX} values at most."
            raise Problem(413, "SIZE", detail)
        try:
            value = json.loads(self.body, parse_constant=refuse_constant)
        except (ValueError, RecursionError) as error:
            raise bad_request("The body is not valid JSON.") from error
        return self._known(value)

    async def flat_json(self) -> dict[str, Any]:
        """Like :meth:`json`, for a body that may be large, whose members are neither objects nor
        arrays: it is read in slices, and long strings are the bytes of their UTF-8."""
        if len(self.body) <= SMALL_BYTES:
            return self.json()
        self._check_type()
        try:
            return self._known(await read_flat(self.body, self.slices))
        except ValueError as error:
            raise bad_request(f"The body is not valid JSON: {error}.") from error

    def _check_type(self) -> None:
        if self.content_type.partition(";")[0].strip().lower() != "application/json":
            raise Problem(415, "TYPE", "The body must be JSON, of type application/json.")

    def _known(self, value: Any) -> dict[str, Any]:
        """The members, of which none is unknown."""
        if not isinstance(value, dict):
            raise bad_request("The body must be an object.")
        schema = self.schema or {}
        unknown = sorted(value.keys() - schema.get("properties", {}).keys())
        if unknown:
            raise bad_request(f"There is no member {unknown[0][:50]!r} here.")
        return value


def whole(name: str, value: object, least: int, most: int) -> int:
    """A whole number, written as a number or as a string of digits."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise bad_request(f"{name} must be a whole number from {least} to {most}.")
    return value


def exact(value: Any) -> Any:
    """The value with all integers that JavaScript would round as strings, and ``None`` in place of
    numbers that JSON does not have."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) > EXACT_MAX:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name: exact(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [exact(member) for member in value]
    return value

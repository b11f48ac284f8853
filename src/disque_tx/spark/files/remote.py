"""The event logs of running nodes, by HTTP: which finished files there are, and what is in them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import quote, urlsplit

import attrs

from disque_tx.client.encryption import ssl_context
from disque_tx.client.options import TLS
from disque_tx.spark.errors import BadOption, EventsLost, NodeRefused
from disque_tx.spark.options import SECURITY, FormatOptions, password_of, tls_of
from disque_tx.spark.process.threads import in_threads

_PATH: Final = "/api/v1/events/files"
_TIMEOUT_S: Final = 10.0
_PAGE_FILES: Final = 10_000
_ASKED_AT_ONCE: Final = 16
#: A node that serves others is asked again so often, and so much later each time.
_TRIES: Final = 6
_REST_S: Final = 0.5
_BUSY: Final = 503
_MISSING: Final = 404
_REFUSED: Final = frozenset((401, 403, 421))
_NAME: Final = re.compile(
    r"dt=\d{4}-\d\d-\d\d/hour=\d\d/events-(?P<node>[0-9a-f]{8})-(?P<boot>\d{1,18})-(?P<first>\d{1,18})"
    r"\.jsonl\.zst"
)
_PLACE: Final = "dt=%Y-%m-%d/hour=%H"
_NODES_MAX: Final = 1_000
#: The options of nodes, besides their addresses.
CONNECTION: Final = ("nodes", *SECURITY)


@attrs.frozen(order=True)
class LogFile:
    """A finished file. ``node``, ``boot_ms``: whose log, and of which of its starts. ``first``: the
    number of its first event, which grows from file to file. ``name``: where it is in the log."""

    name: str
    node: str
    boot_ms: int
    first: int

    @property
    def log(self) -> str:
        """The log it belongs to."""
        return f"{self.node}-{self.boot_ms}"

    @property
    def hour(self) -> datetime:
        """The hour of its first event, in UTC."""
        return _hour(self.name)

    @classmethod
    def of(cls, name: str) -> LogFile | None:
        """The file of this name; ``None`` if it is not that of a file of a log."""
        found = _NAME.fullmatch(name)
        try:
            _hour(name)
        except ValueError:
            return None
        if found is None:
            return None
        return cls(name, found["node"], int(found["boot"]), int(found["first"]))


def place_of(hour: datetime) -> str:
    """What the names of the files of an hour begin with."""
    return hour.strftime(_PLACE)


def _hour(name: str) -> datetime:
    return datetime.strptime(f"{name.rpartition('/')[0]}+0000", f"{_PLACE}%z")


@attrs.frozen
class EventNodes:
    """Nodes by the addresses of their listeners for HTTP, such as ``http://10.0.0.1:7780``."""

    urls: tuple[str, ...]
    password: str | None = attrs.field(repr=False)
    tls: TLS

    def listed(self, after: Mapping[str, str]) -> tuple[dict[str, list[LogFile]], list[str]]:
        """The files of each node behind a name, as far as ``after`` has one for it; and why others
        did not answer. All are asked at the same time.

        :raises NodeRefused: when a node refuses to say.
        """
        found: dict[str, list[LogFile]] = {}
        silent: list[str] = []
        answers = in_threads(
            lambda url: self._answer(url, after.get(url, "")), self.urls, _ASKED_AT_ONCE
        )
        for url, answer in zip(self.urls, answers, strict=True):
            if isinstance(answer, Exception):
                silent.append(f"{url}: {answer}")
            else:
                found[url] = answer
        return found, silent

    def _answer(self, url: str, after: str) -> list[LogFile] | Exception:
        """The files of a node, or why it did not answer."""
        try:
            return self._files(url, after)
        except (OSError, HTTPException, LookupError, TypeError, ValueError) as error:
            return error

    def _files(self, url: str, after: str) -> list[LogFile]:
        found: list[LogFile] = []
        while True:
            place = f"{_PATH}?limit={_PAGE_FILES}&after={quote(after, safe='')}"
            try:
                with self._get(url, place) as response:
                    answer: dict[str, Any] = json.load(response)
            except FileNotFoundError as error:
                raise NodeRefused(f"{url} has no list of event files. Is it older?") from error
            if not answer["log"]:
                raise NodeRefused(f"{url} keeps no event log. Set eventlog yes there.")
            names = (LogFile.of(str(row["name"])) for row in answer["files"])
            found += [file for file in names if file is not None]
            if answer["next"] is None:
                return found
            after = str(answer["next"])

    def content(self, urls: Iterable[str], file: LogFile) -> HTTPResponse:
        """What is in a file, compressed, from the first of these nodes that has it.

        :raises EventsLost: when none of them has it any more.
        :raises OSError: when one of them does not answer, and no other one has it.
        """
        silent: Exception | None = None
        for url in urls:
            try:
                return self._get(url, f"{_PATH}/{quote(file.name, safe='')}")
            except FileNotFoundError:
                continue
            except (OSError, HTTPException) as error:
                silent = error
        raise silent or EventsLost(
            f"{file.name} was removed before it was read. Start the query with a new checkpoint,"
            " and keep files longer than it is away."
        )

    def _get(self, url: str, place: str) -> HTTPResponse:
        """The answer of a node, whose status is 200."""
        for rest in range(_TRIES):
            connection = self._connection(url)
            headers = {"Connection": "close"}
            if self.password is not None:
                headers["Authorization"] = f"Bearer {self.password}"
            connection.request("GET", place, headers=headers)
            response = connection.getresponse()
            if response.status == 200:
                return response
            response.read()
            connection.close()
            if response.status == _MISSING:
                raise FileNotFoundError(f"{url} has no {place}.")
            if response.status in _REFUSED:
                raise NodeRefused(f"{url} answers {response.status} {response.reason} to {place}.")
            if response.status != _BUSY:
                break
            time.sleep(_REST_S * (1 << rest))
        raise OSError(f"{url} answers {response.status} {response.reason}")

    def _connection(self, url: str) -> HTTPConnection:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if parts.scheme == "https":
            context = ssl_context(self.tls)
            return HTTPSConnection(host, port, timeout=_TIMEOUT_S, context=context)
        return HTTPConnection(host, port, timeout=_TIMEOUT_S)


def event_nodes(checked: FormatOptions) -> EventNodes:
    """The nodes of the option ``nodes``, with those of the connection.

    :raises BadOption: when an address is none, or has a password, which plans would show.
    """
    given = checked.required("nodes", "http://10.0.0.1:7780,http://10.0.0.2:7780")
    urls = tuple(dict.fromkeys(url.strip().rstrip("/") for url in given.split(",")))
    if len(urls) > _NODES_MAX:
        raise checked.invalid("nodes", f"at most {_NODES_MAX} addresses")
    for url in urls:
        _check(url)
    return EventNodes(urls, password_of(checked), tls_of(checked))


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _bad(url) from None
    if parts.username is not None or parts.password is not None:
        raise BadOption(
            "The option nodes must not contain a password, as Spark shows it in plans. Set"
            " disque.password, which Spark does not show."
        )
    wrong = parts.path or parts.query or parts.fragment or port == 0 or not parts.hostname
    if wrong or parts.scheme not in ("http", "https"):
        raise _bad(url)


def _bad(url: str) -> BadOption:
    return BadOption(
        f"The option nodes has {url[:100]!r}, which is not the address of a listener for HTTP, as"
        " in http://10.0.0.1:7780."
    )

"""The finished files of the event log, for programs elsewhere that read all of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, BinaryIO, Final

from disque_tx.protocols.http.api.base.values import FLAG, NUMBER, ROOT, TEXT, array, schema
from disque_tx.protocols.http.server.exchange import Exchange, Parameter, Reply
from disque_tx.protocols.http.server.problems import Problem
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.slices import SLICE_BYTES, Slices
from disque_tx.protocols.http.server.streaming import listing

#: Files in one answer.
FILES_MAX: Final = 10_000
_FILES: Final = 1_000


async def show(exchange: Exchange) -> Reply:
    """The names of files, sorted by the hour of their first event."""
    limit, begin = exchange.number("limit"), exchange.word("after") or ""
    files = exchange.host.event_files()
    after: dict[str, Any] = {"log": files is not None, "next": None}
    steps = iter(()) if files is None else files.listed(begin)
    return Reply(listing("files", _rows(exchange.slices, steps, limit, after), after))


async def _rows(
    slices: Slices, steps: Iterator[list[tuple[str, int]]], limit: int, after: dict[str, Any]
) -> AsyncIterator[dict[str, Any]]:
    for some in steps:
        for name, size in some:
            yield {"name": name, "bytes": size}
            limit -= 1
            if not limit:
                after["next"] = name
                return
        await slices.turn()


def file(exchange: Exchange) -> Reply:
    """One of them, as it is."""
    files = exchange.host.event_files()
    name = exchange.path["name"].decode("latin-1")
    try:
        if files is None:
            raise FileNotFoundError
        found = files.open(name)
    except FileNotFoundError as error:
        raise Problem(404, "NOFILE", "There is no such file of the event log.") from error
    return Reply(_pieces(found), content_type="application/zstd")


async def _pieces(file: BinaryIO) -> AsyncGenerator[bytes, None]:
    with file:
        while piece := file.read(SLICE_BYTES):
            yield piece


def event_file_routes() -> list[Route]:
    """The list, and a file."""
    row = schema(name=TEXT, bytes=NUMBER)
    return [
        Route(
            "GET", f"{ROOT}/events/files", show, "The finished files of the event log of this"
            " daemon, sorted by name, which begins with the hour of the first event",
            (
                Parameter("after", "Only files behind this name, or this beginning of names"),
                Parameter("limit", "How many", "integer", _FILES, 1, FILES_MAX),
            ),
            answer=schema(files=array(row), log=FLAG, next={"type": ["string", "null"]}),
            costly=True,
        ),
        Route(
            "GET", f"{ROOT}/events/files/{{name}}", file, "A file of the event log: a line of"
            " JSON for each event, compressed by Zstandard",
            content_type="application/zstd", errors=(404,),
        ),
    ]  # fmt: skip

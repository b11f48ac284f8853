"""The files of the console: read once, served with entity tags, and compressed for those who
take that."""

from __future__ import annotations

import gzip
import re
from hashlib import sha256
from pathlib import Path
from typing import Final

import attrs

from disque_tx.protocols.http.server.exchange import Exchange, Reply
from disque_tx.protocols.http.server.problems import Problem
from disque_tx.protocols.http.server.routes import Route

FOLDER: Final = Path(__file__).parent / "console"
_START: Final = "index.html"
#: In Accept-Encoding; with a weight of zero it is refused.
_GZIP: Final = re.compile(r"(?:^|,)\s*gzip\s*(?:;\s*q\s*=\s*(?!0(?:\.0*)?\s*(?:,|$))[^,]*)?(?:,|$)")
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@attrs.frozen
class File:
    """``tag``: the entity tag, quotes included. ``packed``: the data by gzip."""

    data: bytes
    packed: bytes
    content_type: str
    tag: str


def read_files() -> dict[str, File]:
    """All files by name; those of types that browsers need not know are left out."""
    return {
        path.name: File(
            data,
            gzip.compress(data, mtime=0),
            _TYPES[path.suffix],
            f'"{sha256(data).hexdigest()[:32]}"',
        )
        for path in sorted(FOLDER.iterdir())
        if path.suffix in _TYPES
        for data in (path.read_bytes(),)
    }


class ConsoleFiles:
    """Answers requests for files."""

    def __init__(self, files: dict[str, File]) -> None:
        self._files = files

    def start(self, exchange: Exchange) -> Reply:
        """The page that everything begins with."""
        return self._serve(exchange, _START)

    def file(self, exchange: Exchange) -> Reply:
        """A file by its name."""
        return self._serve(exchange, exchange.path["file"].decode("latin-1"))

    def _serve(self, exchange: Exchange, name: str) -> Reply:
        file = self._files.get(name)
        if file is None:
            raise Problem(404, "PATH", "There is nothing at this path.")
        # The browser asks each time, so that a new version of the node is never mixed with an old
        # console, and gets an answer without a body.
        packed = _GZIP.search(exchange.request.getHeader("Accept-Encoding") or "") is not None
        # Each form has a tag of its own: caches must not take one for the other.
        tag = f'{file.tag[:-1]}-gzip"' if packed else file.tag
        headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        known = exchange.request.getHeader(b"If-None-Match") or b""
        if tag.encode() in (
            known_tag.strip().removeprefix(b"W/") for known_tag in known.split(b",")
        ):
            return Reply(b"", 304, file.content_type, headers)
        if packed:
            headers["Content-Encoding"] = "gzip"
        return Reply(file.packed if packed else file.data, 200, file.content_type, headers)


def file_routes() -> list[Route]:
    """The start page, and the files that it loads. The files contain nothing of the node, so they
    need no password."""
    files = ConsoleFiles(read_files())
    return [
        Route(
            "GET", "/", files.start, "The console", content_type="text/html", also=(304,),
            open=True, page=True,
        ),
        Route(
            "GET", "/console/{file}", files.file, "A file of the console", also=(304,),
            errors=(404,), open=True, page=True,
        ),
    ]  # fmt: skip

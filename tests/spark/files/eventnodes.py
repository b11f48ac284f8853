"""A node that serves the files of an event log by HTTP, as far as readers of it are concerned."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import zstandard

from disque_tx.services.events.finished import FinishedFiles
from tests.spark.pipeline.logs import job_id

FILES = "/api/v1/events/files"


class EventNode:
    """``busy``: how many of the next requests get 503. ``status``: of all answers, if not 200.
    ``asked``: what the list was asked for. ``log``: whether the event log is on."""

    def __init__(self, folder: Path, node: str = "3c0f1d52", password: str = "") -> None:
        self.folder = folder
        self.node = node
        self.password = password
        self.busy = 0
        self.status = 200
        self.page = 1_000
        self.log = True
        self.asked: list[str] = []
        self._server: Any = None
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Serve, at the address of before."""
        node = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                node.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()

    def put(self, boot_ms: int, first: int, count: int, place: str) -> str:
        """A finished file of a log, with so many events; returns its name."""
        name = f"{place}/events-{self.node}-{boot_ms}-{first:012d}.jsonl.zst"
        lines = [
            json.dumps(
                {
                    "specversion": "1.0", "id": f"{self.node}-{boot_ms}-{number}",
                    "source": f"disque:{self.node}", "time": "2026-11-26T17:00:00.000000Z",
                    "type": "disque.job.added", "subject": job_id(number),
                }
            )
            for number in range(first, first + count)
        ]  # fmt: skip
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zstandard.compress("".join(f"{line}\n" for line in lines).encode()))
        return name

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer a request."""
        parts = urlsplit(request.path)
        wanted = f"Bearer {self.password}" if self.password else None
        if request.headers.get("Authorization") != wanted:
            self._send(request, 401, b"")
        elif self.busy or self.status != 200:
            self._send(request, 503 if self.busy else self.status, b"")
            self.busy = max(0, self.busy - 1)
        elif parts.path == FILES:
            query = parse_qs(parts.query, keep_blank_values=True)
            self.asked.append(query["after"][0])
            self._send(request, 200, self._list(query["after"][0]))
        else:
            try:
                with FinishedFiles([str(self.folder)]).open(
                    unquote(parts.path[len(FILES) + 1 :])
                ) as file:
                    self._send(request, 200, file.read())
            except FileNotFoundError:
                self._send(request, 404, b"")

    def _list(self, after: str) -> bytes:
        steps = FinishedFiles([str(self.folder)]).listed(after)
        rows = [{"name": name, "bytes": size} for step in steps for name, size in step]
        more = rows[self.page - 1]["name"] if len(rows) > self.page else None
        answer = {"files": rows[: self.page], "log": self.log, "next": more}
        return json.dumps(answer).encode()

    def _send(self, request: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

"""HTTP of a daemon of several processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen

from tests.acceptance.daemon import free_port
from tests.acceptance.processes.group import GroupTestCase


class HttpGroupCase(GroupTestCase):
    """``size``: how many processes. Connections go to one of them after the other."""

    size = 2

    def setUp(self) -> None:
        super().setUp()
        self.http = free_port()
        self.processes = self.group(self.size, f"listen http tcp:{self.http}:interface=127.0.0.1")

    def fetch(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """The answer to one request, on a connection of its own."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        request = Request(f"http://127.0.0.1:{self.http}{path}", data, headers)
        with urlopen(request) as answer:
            text = answer.read().decode()
        return json.loads(text) if path.startswith("/api") else text

    def at_each(self, check: Callable[[], None]) -> None:
        """Do this as often as there are processes and more: each answers at least once."""
        for _ in range(2 * self.size):
            check()

    def add(self, number: int, queue: str, count: int, *options: str | int) -> list[str]:
        """The IDs of jobs, added at one process. ``options``: in place of REPLICATE 1."""
        port = self.processes.own_port(number)
        words = options or ("REPLICATE", 1)
        return [
            str(self.processes.ask(port, "ADDJOB", queue, f"{queue}{number}", 0, *words))
            for _ in range(count)
        ]

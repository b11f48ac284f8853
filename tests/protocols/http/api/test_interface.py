"""What programs rely on in the routes of the API, compared with the table ``interface.txt``.

The table has a line for each route: method, path, statuses of its answers, statuses of its own
problems, bytes of its body, and its type if that is not JSON; then its parameters, each with its
kind, default and bounds. Who changes it on purpose changes the table, and says so in the log of
changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from disque_tx.protocols.http.server.exchange import Parameter
from disque_tx.protocols.http.server.routes import Route
from tests.protocols.http.httpbench import HttpCase

_TABLE = Path(__file__).with_name("interface.txt")


def _numbers(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers)) or "-"


def described(route: Route) -> Iterator[str]:
    """The lines of a route in the table."""
    words = [route.method, route.path, _numbers((route.status, *route.also))]
    words += [_numbers(route.errors), str(route.body_max) if route.body else "-"]
    if route.content_type != "application/json":
        words.append(route.content_type)
    flags = {"open": route.open, "identifies": route.identifies, "costly": route.costly}
    yield " ".join([*words, *(name for name, is_set in flags.items() if is_set)])
    for parameter in route.parameters:
        yield f"  {_bounded(parameter)}"


def _bounded(parameter: Parameter) -> str:
    words = [parameter.name, parameter.place, parameter.kind]
    if parameter.required:
        words.append("required")
    if parameter.default is not None:
        words.append(f"default={parameter.default}")
    if parameter.kind == "integer":
        words.append(f"{parameter.least}..{parameter.most}")
    elif parameter.choices:
        words.append("|".join(parameter.choices))
    else:
        words.append(f"longest={parameter.longest}")
    return " ".join(words)


class InterfaceTests(HttpCase):
    """All routes of a node."""

    def test_table(self) -> None:
        """No route, status, parameter or bound changes without notice."""
        routes = sorted(
            (route for route in self.factory.routes if not route.page),
            key=lambda route: (route.path, route.method),
        )
        found = [line for route in routes for line in described(route)]
        self.assertEqual(_TABLE.read_text().splitlines(), found)

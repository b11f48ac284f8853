"""The configuration at run time: CONFIG GET and CONFIG SET (client protocol, section 9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from disque_tx.config.directives import DIRECTIVES, GET_BY_NAME, GET_ORDER, Directive
from disque_tx.config.kinds import decode, encode
from disque_tx.config.paths import Files, os_error_text, resolve
from disque_tx.config.settings import Settings
from disque_tx.config.units import glob_match
from disque_tx.errors import CommandError


def get(settings: Settings, pattern: bytes) -> list[tuple[bytes, bytes]]:
    """CONFIG GET: name and value of every visible parameter that matches the glob pattern."""
    names = [name for name in GET_ORDER if glob_match(pattern, encode(name))]
    names += [name for name in GET_BY_NAME if pattern == encode(name)]
    return [(encode(name), DIRECTIVES[name].show(settings)) for name in names]


@attrs.frozen
class _Outside:
    """What a new value is checked against besides the table."""

    max_clients_limit: int | None
    files: Files


def _checked_maxclients(settings: Settings, value: int, outside: _Outside) -> int:
    limit = outside.max_clients_limit
    if limit is not None and value > limit:
        text = "The operating system is not able to handle the specified number of clients"
        raise CommandError("ERR", f"{text}, try with {limit}")
    return value


def _entered_dir(settings: Settings, value: str, outside: _Outside) -> str:
    try:
        return outside.files.enter(resolve(settings.dir, value))
    except OSError as error:
        raise CommandError("ERR", f"Changing directory: {os_error_text(error)}") from error


def _raised_watchdog(settings: Settings, value: int, outside: _Outside) -> int:
    """A watchdog that is faster than two runs of the cron would bite for nothing."""
    return max(value, 2 * (1000 // settings.hz)) if value else 0


_Check = Callable[[Settings, Any, _Outside], Any]
_CHECKS: Final[dict[str, _Check]] = {
    "maxclients": _checked_maxclients,
    "dir": _entered_dir,
    "watchdog-period": _raised_watchdog,
}


def set_value(
    settings: Settings,
    name: bytes,
    value: bytes,
    max_clients_limit: int | None = None,
    files: Files | None = None,
) -> str:
    """CONFIG SET: check ``value``, assign it, and return the directive's name.

    ``max_clients_limit``: the most clients the operating system allows, ``None`` if unknown.
    ``files``: where a new ``dir`` is looked up. Raises ``CommandError`` with the texts of section
    9; ``settings`` is then unchanged. What follows from the new value is up to the caller.
    """
    directive = DIRECTIVES.get(decode(name.lower()))
    if directive is None or not directive.settable:
        raise CommandError("ERR", f"Unsupported CONFIG parameter: {name.decode('latin-1')}")
    parsed = _parsed(directive, name, value)
    if parsed is not None:
        check = _CHECKS.get(directive.name)
        if check is not None:
            parsed = check(settings, parsed, _Outside(max_clients_limit, files or Files()))
        directive.assign(settings, parsed)
    return directive.name


def _parsed(directive: Directive, name: bytes, value: bytes) -> Any:
    try:
        return directive.kind.parse_set(value)
    except ValueError as error:
        given = value.decode("latin-1"), name.decode("latin-1")
        text = "Invalid argument '{}' for CONFIG SET '{}'".format(*given)
        raise CommandError("ERR", text) from error

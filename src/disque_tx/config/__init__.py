"""The configuration of a node (client protocol, sections 9 and 21).

:func:`load` reads :class:`Settings` from files and the command line; :func:`get`,
:func:`set_value` and :func:`rewrite` are CONFIG GET, CONFIG SET and CONFIG REWRITE.
"""

from __future__ import annotations

from disque_tx.config.directives import DIRECTIVES, Directive
from disque_tx.config.lists import OutputLimit
from disque_tx.config.parameters import get, rewrite, set_value
from disque_tx.config.parser import ConfigAccessError, ConfigLineError, load
from disque_tx.config.paths import Files
from disque_tx.config.settings import Settings

__all__ = [
    "DIRECTIVES",
    "ConfigAccessError",
    "ConfigLineError",
    "Directive",
    "Files",
    "OutputLimit",
    "Settings",
    "get",
    "load",
    "rewrite",
    "set_value",
]

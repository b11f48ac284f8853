"""Reading a configuration, under the name by which programs that embed a node know it; see
:mod:`disque_tx.config`."""

from __future__ import annotations

from disque_tx.config.parameters import rewrite
from disque_tx.config.parser import (
    ConfigAccessError,
    ConfigLineError,
    command_line_text,
    load,
)
from disque_tx.config.paths import Files

__all__ = ["ConfigAccessError", "ConfigLineError", "Files", "command_line_text", "load", "rewrite"]

"""The former name of :mod:`disque_tx.plugins`."""

from __future__ import annotations

import warnings

from disque_tx import plugins
from disque_tx.plugins import *  # noqa: F403
from disque_tx.services.turns.interfaces import IClock, IRoundsReactor, ITurn

__all__ = ["IClock", "IRoundsReactor", "ITurn"]
__all__ += plugins.__all__

warnings.warn(
    "disque_tx.services.interfaces is now disque_tx.plugins; the old name works until 2.0",
    DeprecationWarning,
    stacklevel=2,
)

"""The blocking client: for scripts, notebooks, and workers without a reactor."""

from __future__ import annotations

from disque_tx.client.blocking.client import Disque

__all__ = ["Disque"]

"""The blocking client: for scripts, notebooks, and workers without a reactor."""

from __future__ import annotations

from disque_tx.client.blocking.client import Disque, Queue, TakenJob

__all__ = ["Disque", "Queue", "TakenJob"]

"""The asyncio client: for programs with an event loop, and without Twisted's reactor."""

from __future__ import annotations

from disque_tx.client.aio.client import Disque, TakenJob

__all__ = ["Disque", "TakenJob"]

"""TLS under a name that programs may know; it is :class:`disque_tx.client.TLS`."""

from __future__ import annotations

from disque_tx.client.options import TLS

__all__ = ["TLS"]

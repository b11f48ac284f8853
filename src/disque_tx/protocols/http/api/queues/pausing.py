"""A pause of a queue that is kept: on all nodes, as a setting of a policy."""

from __future__ import annotations

from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.text.globs import escaped

_NONE = b"none"


async def keep_pause(exchange: Exchange, name: bytes, wanted: bytes) -> None:
    """Pause a queue on all nodes, also on those that join later, until this is called again.

    What PAUSE said is ended, and with ``none`` what policies say as well: one of other queues, too,
    holds for them only.
    """
    pattern = escaped(name)
    if wanted == _NONE:
        await exchange.call(b"QPOLICY", b"DEL", pattern, b"pause")
    if wanted != _NONE or await _in_force(exchange, name) != _NONE:
        await exchange.call(b"QPOLICY", b"SET", pattern, b"pause", wanted)
    await exchange.call(b"PAUSE", name, _NONE, b"BCAST")


async def _in_force(exchange: Exchange, name: bytes) -> bytes:
    """The pause that policies say."""
    rows = await exchange.call(b"QPOLICY", b"GET", name)
    return next((bytes(value) for setting, value, _ in rows if setting == b"pause"), _NONE)

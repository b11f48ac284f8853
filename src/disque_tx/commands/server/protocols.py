"""What the clients of each protocol did: of RESP, and of the protocols of plugins."""

from __future__ import annotations

from typing import Final

from disque_tx.commands.base.context import Server
from disque_tx.commands.base.stats import ProtocolStats

#: The protocol of Disque's clients.
RESP: Final = "resp"


def protocol_stats(server: Server) -> list[tuple[str, ProtocolStats]]:
    """Every protocol in use, RESP first. RESP is what the others leave of the totals, so that its
    requests cost nothing more."""
    stats = server.stats
    resp = ProtocolStats()
    resp.connected = len(server.clients)
    resp.connections = stats.connections_received
    resp.input_bytes = stats.net_input_bytes
    resp.output_bytes = stats.net_output_bytes
    resp.commands = stats.commands_processed
    resp.errors = stats.errors
    for other in stats.protocols.values():
        resp.connected -= other.connected
        resp.connections -= other.connections
        resp.input_bytes -= other.input_bytes
        resp.output_bytes -= other.output_bytes
        resp.commands -= other.commands
        resp.errors -= other.errors
    return [(RESP, resp), *sorted(stats.protocols.items())]


def protocol_fields(server: Server) -> list[tuple[str, str]]:
    """The fields of INFO's section Protocols."""
    return [
        (
            f"protocol_{name}",
            f"connected={of.connected},connections={of.connections},commands={of.commands}"
            f",errors={of.errors},input_bytes={of.input_bytes},output_bytes={of.output_bytes}",
        )
        for name, of in protocol_stats(server)
    ]

"""Changes that clients make to tables that all nodes have alike (cluster protocol, 21.3)."""

from __future__ import annotations

from collections.abc import Callable

from disque_tx.commands.base.context import Server
from disque_tx.core.nodes.duplicateids import identity_conflict_error
from disque_tx.core.tables.exchange import TableExchange
from disque_tx.core.tables.table import SharedTable
from disque_tx.errors import CommandError
from disque_tx.messages.tables import Register


def change(
    server: Server,
    table: SharedTable,
    save: Callable[[], None],
    exchange: TableExchange,
    changes: list[Register],
) -> None:
    """Make changes, save them, and only then send them to other nodes.

    Raises ``CommandError``, and changes nothing, on the later of two processes with one node ID,
    and when they cannot be saved.
    """
    node = server.node
    if node.membership.identity.suspended:
        raise identity_conflict_error()
    if not changes:
        return
    before = table.apply(changes, node.wall_us // 1_000_000)
    try:
        save()
    except CommandError:
        table.revert(before)
        raise
    exchange.announce(changes)


def repair(
    server: Server, table: SharedTable, save: Callable[[], None], exchange: TableExchange
) -> int:
    """Make the table anew in the next generation; how many of its registers hold a value. Raises
    ``CommandError`` as :func:`change` does."""
    registers = table.registers
    generation, greatest, loaded = registers.generation, registers.greatest, registers.loaded
    try:
        change(server, table, save, exchange, table.plan_repair(server.node.wall_us // 1_000_000))
    except CommandError:
        registers.generation, registers.greatest = generation, greatest
        registers.loaded = loaded
        raise
    return sum([register.deleted_s == 0 for register in registers.all()])

"""CLUSTER: the node table and this node's place in it (client protocol, section 12)."""

from __future__ import annotations

from typing import Final

from disque_tx.commands.base.arguments import NOT_A_NUMBER, integer, quoted
from disque_tx.commands.base.context import Server, Subcommand, run_subcommand
from disque_tx.core.base.client import Client
from disque_tx.core.nodes.addresses import ports_usable
from disque_tx.errors import CommandError, syntax_error
from disque_tx.messages.limits import PORT_MAX
from disque_tx.messages.records import NODE_ID_LENGTH

_HOST_BYTES_MAX: Final = 253
_NON_LETTERS: Final = b"0123456789._-"
_HOST_BYTES: Final = _NON_LETTERS + b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def cluster(server: Server, client: Client, argv: list[bytes]) -> None:
    """CLUSTER MEET | NODES | MYID | INFO | FORGET | RESET | LEAVING | SAVECONFIG."""
    refusal = CommandError("ERR", "Wrong CLUSTER subcommand or number of arguments")
    run_subcommand(_SUBCOMMANDS, server, client, argv, refusal)


def _meet(server: Server, client: Client, argv: list[bytes]) -> None:
    """MEET ip port [bus-port]; beyond the original, ``ip`` may be a host name."""
    ip, port, bus_port = argv[2], integer(argv[3]), 0
    if port == NOT_A_NUMBER:
        raise CommandError("ERR", f"Invalid TCP port specified: {quoted(argv[3])}")
    if len(argv) == 5:
        bus_port = _bus_port(argv[4])
    node = server.node
    if _is_host_name(ip) and ports_usable(port, bus_port):
        if bus_port:
            raise CommandError("ERR", "A bus port can only be given with a literal address")
        node.outbox.resolves.append((ip, int(port)))
    elif not node.membership.meet(ip, port, bus_port, node.now_ms):
        raise CommandError("ERR", f"Invalid node address specified: {quoted(ip)}:{port}")
    client.replies.status(b"OK")


def _bus_port(text: bytes) -> int:
    port = integer(text)
    if port == NOT_A_NUMBER or not 1 <= port <= PORT_MAX:
        raise CommandError("ERR", f"Invalid bus port specified: {quoted(text)}")
    return int(port)


def _is_host_name(text: bytes) -> bool:
    """Whether this is not a literal address, but may be a host name to resolve."""
    if len(text) > _HOST_BYTES_MAX or text.strip(_HOST_BYTES) or b"" in text.split(b"."):
        return False
    return text.strip(_NON_LETTERS) != b""


def node_list(server: Server, client: Client, argv: list[bytes]) -> None:
    """NODES: a line for each node (client protocol, section 12.1)."""
    node = server.node
    client.replies.bulk(node.membership.nodes_text(node.wall_us // 1000 - node.now_ms))


def _myid(server: Server, client: Client, argv: list[bytes]) -> None:
    client.replies.bulk(server.node.membership.myself.id)


def _info(server: Server, client: Client, argv: list[bytes]) -> None:
    membership = server.node.membership
    fields = [
        (b"state", b"ok"),
        (b"known_nodes", b"%d" % len(membership.nodes)),
        (b"reachable_nodes", b"%d" % len(membership.reachable)),
        (b"size", b"%d" % membership.size),
        (b"stats_messages_sent", b"%d" % membership.messages_sent),
        (b"stats_messages_received", b"%d" % membership.messages_received),
    ]
    duplicate_ids = server.node.cluster.duplicate_ids()
    if (
        duplicate_ids
    ):  # the original has no such field, and clients may know the fields by their places
        fields.append((b"twins", b"%d" % duplicate_ids))
    client.replies.bulk(b"".join([b"cluster_%s:%s\r\n" % field for field in fields]))


def _forget(server: Server, client: Client, argv: list[bytes]) -> None:
    node, node_id = server.node, argv[2]
    if len(node_id) != NODE_ID_LENGTH:
        raise CommandError("ERR", "Invalid node identifier")
    entry = node.membership.nodes.get(node_id)
    if entry is None:
        raise CommandError("ERR", f"Unknown node {quoted(node_id)}")
    if entry is node.membership.myself:
        raise CommandError("ERR", "I tried hard but I can't forget myself...")
    node.cluster.forget(node_id)
    client.replies.status(b"OK")


def _reset(server: Server, client: Client, argv: list[bytes]) -> None:
    how = argv[2].lower() if len(argv) == 3 else b"soft"
    if how not in (b"soft", b"hard"):
        raise syntax_error()
    node = server.node
    node.flush_all()
    node.cluster.reset(how == b"hard")
    if len(node.policy_table.registers):
        node.policy_table.clear()
        server.control.save_policies()
    if len(node.timetable.registers):
        node.timetable.clear()
        server.control.save_schedules()
    client.replies.status(b"OK")


def _leaving(server: Server, client: Client, argv: list[bytes]) -> None:
    membership = server.node.membership
    if len(argv) == 2:
        client.replies.status(b"yes" if membership.leaving else b"no")
        return
    word = argv[2].lower()
    if word not in (b"yes", b"no"):
        raise CommandError("ERR", "Wrong argument for CLUSTER LEAVING. Use 'yes' or 'no'")
    evacuates = len(argv) == 4
    if evacuates and (word != b"yes" or argv[3].lower() != b"evacuate"):
        raise CommandError("ERR", "Only EVACUATE can follow CLUSTER LEAVING yes")
    evacuation = server.node.evacuation
    membership.set_leaving(word == b"yes")
    if word == b"no":
        evacuation.call_off()
    elif evacuates or evacuation.automatic:
        evacuation.begin()
    client.replies.status(b"OK")


def _saveconfig(server: Server, client: Client, argv: list[bytes]) -> None:
    server.control.save_nodes()
    client.replies.status(b"OK")


_SUBCOMMANDS: Final = {
    b"meet": Subcommand(_meet, 4, 5),
    b"nodes": Subcommand(node_list, 2, 2),
    b"myid": Subcommand(_myid, 2, 2),
    b"info": Subcommand(_info, 2, 2),
    b"forget": Subcommand(_forget, 3, 3),
    b"reset": Subcommand(_reset, 2, 3),
    b"leaving": Subcommand(_leaving, 2, 4),
    b"saveconfig": Subcommand(_saveconfig, 2, 2),
}

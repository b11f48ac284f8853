"""Workers that are connected, as they describe themselves: CLIENT ANNOUNCE, and the question for it
(client protocol, section 8).
"""

from __future__ import annotations

from typing import Final

from disque_tx.commands.base.announcements import TEXT_BYTES_MAX
from disque_tx.commands.base.arguments import integer
from disque_tx.commands.base.context import Server
from disque_tx.core.base.client import Client
from disque_tx.errors import CommandError, syntax_error

#: Rows of one answer, and bytes of their texts.
_ROWS_MAX: Final = 500
_BYTES_MAX: Final = 128 * 1024
#: How the names of the connections of workers begin that describe themselves in it alone.
_NAMED: Final = b"disque-worker/"


def announce(server: Server, caller: Client, argv: list[bytes]) -> None:
    """CLIENT ANNOUNCE text"""
    text = argv[2]
    if len(text) > TEXT_BYTES_MAX:
        raise CommandError("ERR", f"CLIENT ANNOUNCE takes {TEXT_BYTES_MAX} bytes at most")
    if not server.announced.put(caller, text, server.clients, server.node.now_ms):
        raise CommandError("ERR", "Too many clients have announced something")
    caller.replies.status(b"OK")


def workers_question(server: Server, client: Client, argv: list[bytes]) -> None:
    """WORKERS first count: how many connections of workers there are, and rows from the first on,
    as many as fit: ID, address and name of the client, whether it is connected, milliseconds since
    it wrote its text, and the text. Workers without one come last, with -1."""
    first, count = integer(argv[1]), integer(argv[2])
    if first < 0 or not 1 <= count <= _ROWS_MAX:
        raise syntax_error()
    now_ms = server.node.now_ms
    found: list[tuple[Client, int, bytes]] = []
    announced = set[int]()
    for one in server.announced.recent(server.clients, now_ms):
        announced.add(one.client.id)
        found.append((one.client, now_ms - one.at_ms, one.text))
    for other in server.clients.values():
        if other.name.startswith(_NAMED) and other.id not in announced:
            found.append((other, -1, b""))
    chosen: list[tuple[Client, int, bytes]] = []
    size = 0
    for row in found[first : first + count]:
        size += len(row[2])
        if chosen and size > _BYTES_MAX:
            break
        chosen.append(row)
    replies = client.replies
    replies.array(2)
    replies.integer(len(found))
    replies.array(len(chosen))
    for one_client, age_ms, text in chosen:
        replies.array(6)
        replies.integer(int(one_client.id))
        replies.bulk(one_client.addr)
        replies.bulk(one_client.name)
        replies.integer(1 if one_client.id in server.clients else 0)
        replies.integer(age_ms)
        replies.bulk(text)

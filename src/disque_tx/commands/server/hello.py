"""HELLO: Disque's own without arguments, and that of Redis, which also chooses the protocol.

Client protocol, section 11. ``HELLO`` alone lists the nodes. ``HELLO 2|3 [AUTH user password]
[SETNAME name]`` is how clients of Redis begin a connection; it is answered their way.
"""

from __future__ import annotations

from typing import Final

from disque_tx.commands.base.arguments import integer, quoted
from disque_tx.commands.base.context import Server
from disque_tx.commands.server.admin import password_matches
from disque_tx.commands.server.clients import check_name
from disque_tx.core.base.client import Client
from disque_tx.core.nodes.addresses import is_loopback, plain_ip
from disque_tx.core.nodes.membership import priority
from disque_tx.errors import CommandError

_FORMAT_VERSION: Final = 1
#: The only user there is, under the name Redis gives it.
_USER: Final = b"default"
_UNAUTHENTICATED: Final = (
    "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH "
    "<user> <pass> option can be used to authenticate the client and select the RESP protocol "
    "version at the same time"
)


def hello(server: Server, client: Client, argv: list[bytes]) -> None:
    """HELLO | HELLO version [AUTH user password] [SETNAME name].

    The bare form needs an authenticated client; the other one may authenticate, so it checks that
    itself.
    """
    if len(argv) == 1:
        _nodes(server, client)
        return
    version = integer(argv[1])
    if version not in (2, 3):
        raise CommandError("NOPROTO", "unsupported protocol version")
    _begin(server, client, version, _options(argv))


def _nodes(server: Server, client: Client) -> None:
    membership, replies = server.node.membership, client.replies
    here = server.control.local_ip(client)
    replies.array(2 + len(membership.nodes))
    replies.integer(_FORMAT_VERSION)
    replies.bulk(membership.myself.id)
    for entry in membership.nodes.values():
        replies.array(4)
        replies.bulk(entry.id)
        is_me = entry is membership.myself
        ip = membership.announced_ip or entry.ip if is_me else entry.ip
        replies.bulk(_usable(ip, here) if ip or is_me else ip)
        replies.bulk(b"%d" % entry.port)
        replies.bulk(b"%d" % priority(entry))


def _usable(ip: bytes, here: bytes) -> bytes:
    """The address of a node for a client that reached this one at ``here``.

    An unknown one of this node, and a loopback address, which is one of this host, are of no use to
    clients of other hosts; they reach the host at ``here``.
    """
    return here if not ip or (is_loopback(plain_ip(ip)) and not is_loopback(here)) else ip


class _Options:
    """The options after the version; ``None`` where one is missing."""

    __slots__ = ("user", "password", "name")

    def __init__(self) -> None:
        self.user: bytes | None = None
        self.password: bytes = b""
        self.name: bytes | None = None


def _options(argv: list[bytes]) -> _Options:
    options = _Options()
    place = 2
    while place < len(argv):
        word, more = argv[place].lower(), len(argv) - place - 1
        if word == b"auth" and more >= 2:
            options.user, options.password = argv[place + 1], argv[place + 2]
            place += 3
        elif word == b"setname" and more >= 1:
            options.name = argv[place + 1]
            place += 2
        else:
            raise CommandError("ERR", f"syntax error in HELLO option '{quoted(argv[place])}'")
    return options


def _begin(server: Server, client: Client, version: int, options: _Options) -> None:
    if options.name is not None:
        check_name(options.name)
    if options.user is not None:
        matches = password_matches(server, client, options.password)
        if options.user != _USER or not matches:
            client.authenticated = client.reader = False
            raise CommandError("WRONGPASS", "invalid username-password pair or user is disabled.")
    if server.password_required and not client.authenticated:
        raise CommandError("NOAUTH", _UNAUTHENTICATED)
    if options.name is not None:
        client.name = options.name
    client.protocol = version
    server.control.set_protocol(client, version)
    _introduce(server, client)


def _introduce(server: Server, client: Client) -> None:
    """Describe this server in the fields that a Redis client looks for."""
    replies = client.replies
    version = dict(server.control.info_server())["disque_version"]
    replies.mapping(7)
    replies.bulk(b"server")
    replies.bulk(b"disque")
    replies.bulk(b"version")
    replies.bulk(version.encode())
    replies.bulk(b"proto")
    replies.integer(client.protocol)
    replies.bulk(b"id")
    replies.integer(client.id)
    replies.bulk(b"mode")
    replies.bulk(b"standalone")
    replies.bulk(b"role")
    replies.bulk(b"master")
    replies.bulk(b"modules")
    replies.array(0)

"""``disque health``: whether a node serves, for probes.

No job is added: an ADDJOB with an invalid option shows whether one could be. Options are checked
last, after everything that may keep a node from accepting jobs (client protocol, section 4).
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

import click

from disque_tx.cli.connection import (
    ServerAddress,
    ServerConnection,
    ServerConnectionLost,
    ServerUnreachable,
    explained,
)
from disque_tx.cli.options import ClientOptions
from disque_tx.cli.replies import ErrorReply, Reply
from disque_tx.cli.verbs.base import output
from disque_tx.cli.verbs.base.numbers import FiniteRange
from disque_tx.client import addresses
from disque_tx.client.errors import BadAddress
from disque_tx.errors import DisqueError

_TIME_S: Final = 3.0
_PROBE: Final = [b"ADDJOB", b"disque:health", b"", b"0", b"REPLICATE", b"0"]
#: From this part of maxmemory on a node keeps no jobs itself, but has other nodes keep them.
_MEMORY_SHARE: Final = 0.75
#: Answers to the probe of a node that takes jobs. With the read-only password it goes no further;
#: that the log can be written is known from PING.
_PASSED: Final = (b"ERR REPLICATE", b"NOPERM")


class Unhealthy(DisqueError):
    """Why a node does not serve."""


def examine(connection: ServerConnection) -> None:
    """Make all checks.

    :raises Unhealthy: a check failed.
    :raises ConnectionLost: the node closed the connection, or did not answer.
    """
    if connection.auth_error is not None:
        raise Unhealthy(f"it refuses the password: {_text(connection.auth_error)}")
    _asked(connection, b"PING")
    info = _fields(_asked(connection, b"INFO", b"ALL"))
    if info.get("loading", "0") != "0":
        raise Unhealthy("it is reading its log")
    if info.get("cluster_standing_aside") == "yes":
        raise Unhealthy("it stands aside: a process that was started earlier has its ID")
    if _asked(connection, b"CLUSTER", b"LEAVING") == b"yes":
        raise Unhealthy("it is leaving the cluster")
    refusal = connection.call(_PROBE)
    if not (isinstance(refusal, ErrorReply) and refusal.startswith(_PASSED)):
        raise Unhealthy(f"it takes no jobs: {_text(refusal)}")
    if _is_full(connection, info):
        raise Unhealthy("it takes no jobs: its memory is above 75 %, and it has no other node")


def _asked(connection: ServerConnection, *words: bytes) -> Reply:
    reply = connection.call(list(words))
    if isinstance(reply, ErrorReply):
        raise Unhealthy(explained(f"it answers {words[0].decode()} with {_text(reply)}"))
    return reply


def _fields(reply: Reply) -> dict[str, str]:
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else ""
    pairs = [line.partition(":") for line in text.splitlines()]
    return {name: value for name, colon, value in pairs if colon}


def _is_full(connection: ServerConnection, info: dict[str, str]) -> bool:
    limit = info.get("maxmemory", "") or _limit(connection)
    used = info.get("used_memory", "")
    if not (limit.isdecimal() and used.isdecimal()) or not int(limit):
        return False
    if int(used) <= _MEMORY_SHARE * int(limit):
        return False
    nodes = connection.call([b"CLUSTER", b"NODES"])
    lines = nodes.splitlines() if isinstance(nodes, bytes) else []
    return not any(b"myself" not in line and line.endswith(b" connected") for line in lines)


def _limit(connection: ServerConnection) -> str:
    reply = connection.call([b"CONFIG", b"GET", b"maxmemory"])
    found = isinstance(reply, list) and len(reply) == 2
    value = reply[1] if found and isinstance(reply, list) else b""
    return value.decode("ascii", "replace") if isinstance(value, bytes) else ""


def _text(reply: Reply) -> str:
    return reply.decode("utf-8", "replace") if isinstance(reply, bytes) else "an unexpected reply"


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """End the block after this time, even if the resolver hangs."""

    def over(number: int, frame: FrameType | None) -> NoReturn:
        raise Unhealthy(f"it did not answer within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@click.command("health")
@click.argument("node", required=False, metavar="[HOST:PORT]")
@click.option(
    "--timeout",
    "timeout_s",
    type=FiniteRange(0, 86_400, min_open=True),
    default=None,
    help=f"Seconds for everything together; default {_TIME_S:g}.",
)
@click.option("--json", "as_json", is_flag=True, help="As a JSON document.")
@click.pass_obj
def command(
    options: ClientOptions, node: str | None, timeout_s: float | None, as_json: bool
) -> int:
    """Check whether a node serves: it answers, has read its log, is not leaving, does not stand
    aside (two nodes with one ID), and takes jobs.

    The exit status is 0 only then; otherwise it is 1, and a line says why not.
    """
    address = _address(options, node)
    limit_s = timeout_s or options.timeout_s or _TIME_S
    why = ""
    try:
        with _within(limit_s):
            examine(ServerConnection(address, options.password))
    except (Unhealthy, ServerUnreachable, ServerConnectionLost) as error:
        why = str(error)
    if as_json:
        output.document({"node": str(address), "healthy": not why, "why": why or None})
    else:
        click.echo(f"{address}: {why or 'serves'}", err=bool(why))
    return 1 if why else 0


def _address(options: ClientOptions, node: str | None) -> ServerAddress:
    if node is None:
        return options.address
    try:
        given = addresses.address(node)
    except BadAddress as error:
        raise click.BadParameter(str(error)) from None
    return ServerAddress(given.host, given.port, None, options.encryption)

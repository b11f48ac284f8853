"""What a handler of a command works on, and the table in which it is found: name, arity, flags and
handler of each command (client protocol, section 7).

The table and ``Server`` name each other: a handler takes the server, and COMMAND shows the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disque_tx.commands.base.actions import Actions
from disque_tx.commands.base.announcements import Announcements
from disque_tx.commands.base.control import Control
from disque_tx.commands.base.endings import AwaitedEndings
from disque_tx.commands.base.latency import LatencyMonitor
from disque_tx.commands.base.slowlog import SlowLog
from disque_tx.commands.base.stats import Stats
from disque_tx.core.base.client import Client
from disque_tx.core.node import Node
from disque_tx.errors import CommandError

Handler = Callable[["Server", Client, list[bytes]], None]

#: The order in which COMMAND reports flags.
FLAG_ORDER: Final = (
    "write",
    "readonly",
    "denyoom",
    "admin",
    "random",
    "loading",
    "skip_monitor",
    "fast",
)

#: For sub-commands that take any number of words.
ANY: Final = 1 << 30


class Command:
    """One command. ``name``: the original lower-case name. ``arity``: words of the request with
    the name, negative for 'at least'. ``calls`` and ``ns``: its statistics."""

    __slots__ = (
        "name",
        "arity",
        "flags",
        "handler",
        "write",
        "denyoom",
        "loading",
        "fast",
        "calls",
        "ns",
    )

    def __init__(self, name: bytes, arity: int, flags: str, handler: Handler) -> None:
        words = flags.split()
        self.name = name
        self.arity = arity
        self.flags: list[str] = [word for word in FLAG_ORDER if word in words]
        self.handler = handler
        self.write = "write" in words
        # What returns a job to its queue needs no room. COMMAND shows the flags of the original.
        self.denyoom = "denyoom" in words and "returns" not in words
        self.loading = "loading" in words
        self.fast = "fast" in words
        self.calls: i64 = 0
        self.ns: i64 = 0

    def accepts(self, argv: list[bytes]) -> bool:
        """Whether the request has the right number of words."""
        argc = len(argv)
        return argc == self.arity if self.arity > 0 else argc >= -self.arity

    def run(self, server: Server, client: Client, argv: list[bytes]) -> None:
        """Call the handler."""
        self.handler(server, client, argv)

    def before_auth(self, argv: list[bytes]) -> bool:
        """Whether this request needs no password."""
        return self.name == b"auth"


class Registry:
    """Commands by the lower-case name under which clients find them, and in table order."""

    def __init__(self, commands: list[Command]) -> None:
        self.table: list[Command] = commands
        self.by_name: dict[bytes, Command] = {command.name: command for command in commands}

    def rename(self, old: bytes, new: bytes) -> bool:
        """Let ``old`` be found as ``new``, or not at all when ``new`` is empty (section 21.3).

        ``False`` when ``old`` is not there; ``ValueError`` when ``new`` is already taken.
        """
        old, new = old.lower(), new.lower()
        command = self.by_name.get(old)
        if command is None:
            return False
        if new and new in self.by_name:
            raise ValueError(new.decode("latin-1"))
        del self.by_name[old]
        if new:
            self.by_name[new] = command
        return True


class Server:
    """Everything a command handler works on; one per process.

    ``clients``: by ID, oldest first. ``monitors``: clients that used MONITOR, in that order.
    ``registry``: the commands in force. ``paused_until_ms``: CLIENT PAUSE, on the node's steady
    clock; 0 when not paused. ``password_required``: clients must give a password.
    ``eviction_allowed``: ``maxmemory-policy`` is not noeviction. ``joining``: this process does not
    reach the others of its daemon yet, so jobs could get too few copies. ``awaited_nodes``: it
    serves nobody until it reaches this number of nodes, 0 for any. ``degraded``: the log is being
    loaded or cannot be written, or one of these holds, so commands must check that.
    """

    def __init__(
        self,
        node: Node,
        control: Control,
        registry: Registry,
        latency: LatencyMonitor | None = None,
    ) -> None:
        self.node = node
        self.control = control
        self.registry = registry
        self.clients: dict[int, Client] = {}
        self.monitors: list[Client] = []
        self.paused_until_ms: i64 = 0
        self.password_required = False
        self.eviction_allowed = True
        self.joining = False
        self.awaited_nodes: i64 = 0
        self.degraded = False
        self.stats = Stats()
        self.slowlog = SlowLog()
        self.actions = Actions()
        self.endings = AwaitedEndings(node)
        self.announced = Announcements()
        self.latency = latency or LatencyMonitor()

    @property
    def waiting(self) -> bool:
        """This process waits for others before it serves clients."""
        return self.joining or self.awaited_nodes > 0


class Subcommand:
    """``words_min``, ``words_max``: words of the request, with command and sub-command."""

    __slots__ = ("handler", "words_min", "words_max")

    def __init__(self, handler: Handler, words_min: int, words_max: int) -> None:
        self.handler: Handler = handler
        self.words_min: int = words_min
        self.words_max: int = words_max

    def accepts(self, words: int) -> bool:
        """Whether the request has the right number of words."""
        return self.words_min <= words <= self.words_max


def run_subcommand(
    table: dict[bytes, Subcommand],
    server: Server,
    client: Client,
    argv: list[bytes],
    refusal: CommandError,
) -> None:
    """Run the sub-command; raises ``refusal`` when none has that name and number of words."""
    found = table.get(argv[1].lower())
    if found is None or not found.accepts(len(argv)):
        raise refusal
    found.handler(server, client, argv)

"""What commands may ask of the process: configuration, files, its end."""

from __future__ import annotations

import os
import resource
import signal
import time
from typing import TYPE_CHECKING

from twisted.internet.address import IPv4Address, IPv6Address

from disque_tx import config
from disque_tx.commands.context import Control
from disque_tx.config.paths import os_error_text
from disque_tx.core.addresses import plain_ip
from disque_tx.core.client import Client
from disque_tx.errors import CommandError
from disque_tx.services.applied import APPLY
from disque_tx.services.pump import Session

if TYPE_CHECKING:
    from disque_tx.services.root import NodeRoot

#: File descriptors the process needs besides those of its clients (client protocol, section 2).
RESERVED_FDS = 32
#: And, where the system allows it, for the bus: its strangers, and two per node of a large cluster.
BUS_FDS = 512


def clients_allowed() -> int:
    """How many clients the system lets this process have, after asking for as many as it may."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (1 << 31) - 1 if hard == resource.RLIM_INFINITY else hard - RESERVED_FDS


class NodeControl(Control):
    """The control of a daemon; ``root``: its service."""

    def __init__(self, root: NodeRoot) -> None:
        self._root = root

    # -- configuration -----------------------------------------------------------------------

    def config_get(self, pattern: bytes) -> list[tuple[bytes, bytes]]:
        found = config.get(self._root.settings, pattern)
        state = b"no" if self._root.aof.state == "off" else b"yes"
        return [(name, state if name == b"appendonly" else value) for name, value in found]

    def config_set(self, name: bytes, value: bytes) -> None:
        root = self._root
        before_on = root.settings.appendonly
        directive = config.set_value(root.settings, name, value, clients_allowed())
        apply = APPLY.get(directive)
        if apply is not None:
            apply(root.settings, root.server, root.log)
        if directive == "hz":
            root.cron.hz_changed()
        elif directive == "maxclients":
            raise_fd_limit(root.settings.maxclients)
        elif directive.startswith("eventlog"):
            root.eventlog.settings_changed()
        elif directive == "appendonly" and root.settings.appendonly != before_on:
            self._switch_log(root.settings.appendonly)

    def _switch_log(self, wanted: bool) -> None:
        root = self._root
        try:
            if wanted:
                root.aof.enable()
            else:
                root.aof.disable()
        except OSError as error:
            root.settings.appendonly = not wanted
            root.log.warning(f"Unable to switch the log: {os_error_text(error)}")
            raise CommandError("ERR", "Unable to turn on AOF. Check server logs.") from error

    def config_rewrite(self) -> None:
        settings = self._root.settings
        path = settings.config_file
        if not path:
            raise CommandError("ERR", "The server is running without a config file")
        try:
            old = b""
            if os.path.exists(path):
                with open(path, "rb") as file:
                    old = file.read()
            self._root.files.replace(path, config.rewrite(settings, old))
        except OSError as error:
            raise CommandError("ERR", f"Rewriting config file: {os_error_text(error)}") from error

    def password(self) -> bytes:
        return self._root.settings.requirepass

    # -- facts -------------------------------------------------------------------------------

    def info_server(self) -> list[tuple[str, str]]:
        return self._root.process.server()

    def info_memory(self) -> list[tuple[str, str]]:
        return self._root.process.memory()

    def info_persistence(self) -> list[tuple[str, str]]:
        return self._root.aof.info()

    def info_cpu(self) -> list[tuple[str, str]]:
        return self._root.process.cpu()

    def info_eventlog(self) -> list[tuple[str, str]]:
        return self._root.eventlog.info()

    def info_listening(self) -> list[tuple[str, str]]:
        root = self._root
        return [
            ("listening_clients", ",".join(root.listeners.addresses())),
            ("listening_bus", ",".join(root.bus.addresses())),
        ]

    def loading(self) -> bool:
        return self._root.aof.loading

    def write_error(self) -> str:
        return self._root.aof.write_error

    def client_buffers(self, client: Client) -> tuple[int, int, int]:
        return client.connection.buffers() if isinstance(client, Session) else (0, 0, 0)

    def local_ip(self, client: Client) -> bytes:
        if isinstance(client, Session) and client.connection.transport is not None:
            host = client.connection.transport.getHost()
            if isinstance(host, IPv4Address | IPv6Address):
                return plain_ip(host.host.encode())
        return b"127.0.0.1"

    def reset_statistics(self) -> None:
        self._root.aof.reset_statistics()

    # -- actions -----------------------------------------------------------------------------

    def set_protocol(self, client: Client, version: int) -> None:
        client.speak(version)

    def background_rewrite(self) -> None:
        self._root.aof.rewrite()

    def reload_log(self) -> None:
        self._root.aof.reload()

    def save_nodes(self) -> None:
        try:
            self._root.save_nodes(sync=True)
        except OSError as error:
            raise CommandError(
                "ERR", f"error saving the cluster node config: {os_error_text(error)}"
            ) from error

    def shutdown(self, rewrite_log: bool) -> None:
        root = self._root
        aof = root.aof
        if aof.state == "wait-rewrite":
            root.log.warning("The first log is still being written, the process can't stop yet")
            raise CommandError("ERR", "Errors trying to SHUTDOWN. Check logs.")
        if rewrite_log and not aof.loading:
            try:
                aof.rewrite_now()
            except OSError as error:
                root.log.warning(f"Writing the log failed: {os_error_text(error)}")
                raise CommandError("ERR", "Errors trying to SHUTDOWN. Check logs.") from error
        root.log.warning("User requested shutdown...")
        root.request_stop(0)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def restart(self, graceful: bool, delay_ms: int) -> None:
        root = self._root
        if graceful and root.settings.config_file:
            try:
                self.config_rewrite()
            except CommandError as error:
                root.log.warning(f"Restart refused: {error.text}")
                raise CommandError(
                    "ERR", "failed to restart the server. Check server logs."
                ) from error
        root.request_restart(graceful, delay_ms)

    def crash(self, how: str) -> None:
        os.kill(os.getpid(), signal.SIGSEGV if how == "segfault" else signal.SIGABRT)


def raise_fd_limit(maxclients: int) -> int:
    """Let the process have a descriptor per client; returns how many clients fit."""
    wanted = maxclients + RESERVED_FDS + BUS_FDS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return maxclients
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    except (OSError, ValueError):
        limit = soft
    return min(maxclients, limit - RESERVED_FDS)

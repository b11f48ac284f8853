"""What commands may ask of the process: configuration, files, stopping."""

from __future__ import annotations

import os
import resource
import signal
import time
from typing import TYPE_CHECKING, Protocol

from twisted.internet.address import IPv4Address, IPv6Address

from disque_tx import config
from disque_tx.commands.base.control import Control
from disque_tx.config.paths import os_error_text
from disque_tx.core.base.client import Client
from disque_tx.core.nodes.addresses import plain_ip
from disque_tx.errors import CommandError
from disque_tx.services.machine.guesses import network_of
from disque_tx.services.node.consoles import console_addresses
from disque_tx.services.turns.pump import Session

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.engine.sidefiles import TableFiles
    from disque_tx.services.events.lookups import Part
    from disque_tx.services.events.service import EventLog
    from disque_tx.services.machine.platform import Platform
    from disque_tx.services.machine.process import ProcessInfo
    from disque_tx.services.net.certificates import Certificates
    from disque_tx.services.node.aof import AppendOnlyFile

#: File descriptors the process needs besides those of its clients (client protocol, section 2).
RESERVED_FDS = 32
#: And, where the system allows it, for the bus: its strangers, and two per node of a large cluster.
BUS_FDS = 512


def clients_allowed() -> int:
    """How many clients the system lets this process have, after asking for as many as it may."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (1 << 31) - 1 if hard == resource.RLIM_INFINITY else hard - RESERVED_FDS


class Supervisor(Protocol):
    """The whole of the daemon, as far as commands reach it. ``common``: the configuration that
    CONFIG shows, sets and writes. ``table_files``: where the shared tables are kept.
    ``certificates``: those that the node presents."""

    common: Settings
    table_files: TableFiles
    certificates: Certificates

    def setting_changed(self, directive: str) -> None:
        """CONFIG SET changed the value of a directive."""

    def listening(self) -> tuple[list[str], list[str]]:
        """Where clients can connect, and where other nodes can."""

    def save_nodes(self, sync: bool = False) -> None:
        """Write the nodes file; ``OSError`` when it is out of date."""

    def request_stop(self, status: int) -> None:
        """End the process in an orderly way."""

    def request_restart(self, delay_ms: int) -> None:
        """End it and start again."""

    def request_shutdown(self, rewrite_log: bool) -> None:
        """End the daemon in an orderly way; the log of this process is rewritten already."""

    def parameter_set(self, name: bytes, value: bytes) -> None:
        """A client has set a parameter, and it is applied here."""

    def info_processes(self) -> list[tuple[str, str]]:
        """Fields of INFO's Processes section, in order."""


class SingleProcess:
    """The daemon is this process alone."""

    def request_stop(self, status: int) -> None:
        """End the process in an orderly way."""
        raise NotImplementedError

    def request_shutdown(self, rewrite_log: bool) -> None:
        """End the process."""
        self.request_stop(0)

    def parameter_set(self, name: bytes, value: bytes) -> None:
        """Do nothing: a single process has no others to set the parameter in."""

    def info_processes(self) -> list[tuple[str, str]]:
        """Return the number of processes alone; a single process has no further fields."""
        return [("processes", "1")]


class NodeControl(Control):
    """The control of a daemon."""

    def __init__(
        self,
        supervisor: Supervisor,
        settings: Settings,
        platform: Platform,
        process: ProcessInfo,
        aof: AppendOnlyFile,
        eventlog: EventLog,
    ) -> None:
        self._supervisor = supervisor
        self._settings = settings
        self._log = platform.log
        self._files = platform.files
        self._process = process
        self._aof = aof
        self._eventlog = eventlog
        self._guesses = platform.guesses

    # -- configuration -----------------------------------------------------------------------

    def config_get(self, pattern: bytes) -> list[tuple[bytes, bytes]]:
        found = config.get(self._supervisor.common, pattern)
        state = b"no" if self._aof.state == "off" else b"yes"
        return [(name, state if name == b"appendonly" else value) for name, value in found]

    def audit(self, text: str) -> None:
        self._log.notice(text)

    def config_set(self, name: bytes, value: bytes) -> None:
        self.apply_parameter(name, value)
        self._supervisor.parameter_set(name, value)

    def apply_parameter(self, name: bytes, value: bytes) -> None:
        """CONFIG SET in this process; ``CommandError`` when the value is not possible."""
        settings = self._settings
        before_on = settings.appendonly
        directive = config.set_value(self._supervisor.common, name, value, clients_allowed())
        self._supervisor.setting_changed(directive)
        if directive == "maxclients":
            raise_fd_limit(settings.maxclients)
        elif directive.startswith("eventlog"):
            self._eventlog.settings_changed()
        elif directive == "appendonly" and settings.appendonly != before_on:
            self._switch_log(settings.appendonly)

    def _switch_log(self, wanted: bool) -> None:
        try:
            if wanted:
                self._aof.enable()
            else:
                self._aof.disable()
        except OSError as error:
            self._settings.appendonly = self._supervisor.common.appendonly = not wanted
            self._log.warning(f"Unable to switch the log: {os_error_text(error)}")
            raise CommandError("ERR", "Unable to turn on AOF. Check server logs.") from error

    def config_rewrite(self) -> None:
        settings = self._supervisor.common
        path = settings.config_file
        if not path:
            raise CommandError("ERR", "The server is running without a config file")
        try:
            old = b""
            if os.path.exists(path):
                with open(path, "rb") as file:
                    old = file.read()
            self._files.replace(path, config.rewrite(settings, old))
        except OSError as error:
            raise CommandError("ERR", f"Rewriting config file: {os_error_text(error)}") from error

    def password(self) -> bytes:
        return self._settings.requirepass

    def readonly_password(self) -> bytes:
        return self._settings.readonly_password

    # -- facts -------------------------------------------------------------------------------

    def info_server(self) -> list[tuple[str, str]]:
        return self._process.server()

    def info_memory(self) -> list[tuple[str, str]]:
        return self._process.memory()

    def info_persistence(self) -> list[tuple[str, str]]:
        return self._aof.info()

    def info_cpu(self) -> list[tuple[str, str]]:
        return self._process.cpu()

    def info_eventlog(self) -> list[tuple[str, str]]:
        return self._eventlog.info()

    def job_events(self, job_id: bytes, number: int) -> Part | None:
        return self._eventlog.lookups.read(job_id, number) if self._settings.eventlog else None

    def info_listening(self) -> list[tuple[str, str]]:
        clients, nodes = self._supervisor.listening()
        consoles = console_addresses(self._supervisor.common.listen)
        return [
            ("listening_clients", ",".join(clients)),
            ("listening_bus", ",".join(nodes)),
            ("listening_consoles", ",".join(consoles)),
            *self._supervisor.certificates.info(),
        ]

    def info_processes(self) -> list[tuple[str, str]]:
        return self._supervisor.info_processes()

    def loading(self) -> bool:
        return self._aof.loading

    def write_error(self) -> str:
        return self._aof.write_error

    def client_buffers(self, client: Client) -> tuple[int, int, int]:
        return client.connection.buffers() if isinstance(client, Session) else (0, 0, 0)

    def password_wait_s(self, client: Client) -> int:
        return self._guesses.wait_s(_network(client))

    def password_was_wrong(self, client: Client) -> None:
        self._guesses.wrong(_network(client))

    def local_ip(self, client: Client) -> bytes:
        if isinstance(client, Session) and client.connection.transport is not None:
            host = client.connection.transport.getHost()
            if isinstance(host, IPv4Address | IPv6Address):
                return plain_ip(host.host.encode())
        return b"127.0.0.1"

    def reset_statistics(self) -> None:
        self._aof.reset_statistics()

    # -- actions -----------------------------------------------------------------------------

    def set_protocol(self, client: Client, version: int) -> None:
        client.speak(version)

    def background_rewrite(self) -> None:
        self._aof.rewrite()

    def reload_log(self) -> None:
        self._aof.reload()

    def save_nodes(self) -> None:
        try:
            self._supervisor.save_nodes(sync=True)
        except OSError as error:
            raise CommandError(
                "ERR", f"error saving the cluster node config: {os_error_text(error)}"
            ) from error

    def save_policies(self) -> None:
        try:
            self._supervisor.table_files.policies.save()
        except OSError as error:
            raise CommandError(
                "ERR", f"The policies can't be saved: {os_error_text(error)}"
            ) from error

    def save_schedules(self) -> None:
        try:
            self._supervisor.table_files.schedules.save()
        except OSError as error:
            raise CommandError(
                "ERR", f"The schedules can't be saved: {os_error_text(error)}"
            ) from error

    def shutdown(self, rewrite_log: bool) -> None:
        aof = self._aof
        if aof.state == "wait-rewrite":
            self._log.warning("The first log is still being written, the process can't stop yet")
            raise CommandError("ERR", "Errors trying to SHUTDOWN. Check logs.")
        if rewrite_log and not aof.loading:
            try:
                aof.rewrite_now()
            except OSError as error:
                self._log.warning(f"Writing the log failed: {os_error_text(error)}")
                raise CommandError("ERR", "Errors trying to SHUTDOWN. Check logs.") from error
        self._log.warning("User requested shutdown...")
        self._supervisor.request_shutdown(rewrite_log)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def restart(self, graceful: bool, delay_ms: int) -> None:
        if graceful and self._settings.config_file:
            try:
                self.config_rewrite()
            except CommandError as error:
                self._log.warning(f"Restart refused: {error.text}")
                raise CommandError(
                    "ERR", "failed to restart the server. Check server logs."
                ) from error
        self._supervisor.request_restart(delay_ms)

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


def _network(client: Client) -> str:
    """Where a client comes from, by the address that CLIENT LIST shows."""
    host = b"" if client.unix else client.addr.rpartition(b":")[0].strip(b"[]")
    return network_of(host.decode("latin-1"))

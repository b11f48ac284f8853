"""What commands may ask of a simulated process, and what it logs."""

from __future__ import annotations

from fnmatch import fnmatchcase

from disque_tx.commands.base.control import Control
from disque_tx.core.base.client import Client
from disque_tx.errors import CommandError
from disque_tx.sim.machines.interfaces import Running
from disque_tx.sim.machines.sessions import SimSessions
from disque_tx.sim.world.world import World


class SimControl(Control):
    """The control of one process. The only setting is ``maxmemory``. ``sessions``: of its clients,
    to be set before any comes."""

    sessions: SimSessions

    def __init__(self, process: Running) -> None:
        self._process = process

    # -- configuration -----------------------------------------------------------------------

    def config_get(self, pattern: bytes) -> list[tuple[bytes, bytes]]:
        limit = b"%d" % self._process.node.memory.limit
        matches = fnmatchcase("maxmemory", pattern.decode("latin-1"))
        return [(b"maxmemory", limit)] if matches else []

    def config_set(self, name: bytes, value: bytes) -> None:
        if name.lower() != b"maxmemory" or not value.isdigit():
            raise CommandError("ERR", "only maxmemory can be set here, to a number of bytes")
        self._process.node.memory.limit = int(value)

    def config_rewrite(self) -> None:
        raise CommandError("ERR", "The server is running without a config file")

    def password(self) -> bytes:
        return self._process.machine.settings.password

    # -- facts -------------------------------------------------------------------------------

    def info_server(self) -> list[tuple[str, str]]:
        return [("disque_version", "1.0-rc1"), ("process_id", "0")]

    def info_memory(self) -> list[tuple[str, str]]:
        return [("used_memory_rss", "0"), ("mem_allocator", "none")]

    def info_persistence(self) -> list[tuple[str, str]]:
        return self._process.log.info()

    def info_cpu(self) -> list[tuple[str, str]]:
        return [("used_cpu_sys", "0.00"), ("used_cpu_user", "0.00")]

    def info_eventlog(self) -> list[tuple[str, str]]:
        return []

    def loading(self) -> bool:
        return False

    def write_error(self) -> str:
        return self._process.log.write_error

    def client_buffers(self, client: Client) -> tuple[int, int, int]:
        session = self.sessions.by_id.get(int(client.id))
        if session is None:
            return 0, 0, 0
        size = self.sessions.output_bytes(client)
        return session.parser.pending_bytes(), size, session.writer.pieces()

    def local_ip(self, client: Client) -> bytes:
        return self._process.ip

    # -- actions -----------------------------------------------------------------------------

    def set_protocol(self, client: Client, version: int) -> None:
        session = self.sessions.by_id.get(int(client.id))
        if session is not None:
            session.speak(version)

    def background_rewrite(self) -> None:
        self._process.log.rewrite()

    def reload_log(self) -> None:
        self._process.log.reload()

    def save_nodes(self) -> None:
        try:
            self._process.save_nodes(sync=True)
        except OSError as error:
            raise CommandError("ERR", f"error saving the cluster node config: {error}") from error

    def save_policies(self) -> None:
        try:
            self._process.table_files.policies.save()
        except OSError as error:
            raise CommandError("ERR", f"The policies can't be saved: {error}") from error

    def save_schedules(self) -> None:
        try:
            self._process.table_files.schedules.save()
        except OSError as error:
            raise CommandError("ERR", f"The schedules can't be saved: {error}") from error

    def shutdown(self, rewrite_log: bool) -> None:
        if rewrite_log:
            try:
                self._process.log.rewrite_now()
            except OSError as error:
                raise CommandError("ERR", "Errors trying to SHUTDOWN. Check logs.") from error
        self._process.ask_to_stop()

    def restart(self, graceful: bool, delay_ms: int) -> None:
        raise CommandError("ERR", "a simulated process is restarted from outside")

    def sleep(self, seconds: float) -> None:
        self._process.ask_to_pause(int(seconds * 1_000_000))

    def crash(self, how: str) -> None:
        self._process.ask_to_die(how)

    def reset_statistics(self) -> None:
        """Ignored: a simulated process counts nothing of its own."""


class TracedReports:
    """The lines of one process."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name

    def verbose(self, text: str) -> None:
        """Of no interest here."""

    def notice(self, text: str) -> None:
        """What an operator wants to know."""
        self._world.trace("notice", self._name, text)

    def warning(self, text: str) -> None:
        """What an operator must know."""
        self._world.trace("warning", self._name, text)

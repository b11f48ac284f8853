"""A ``Control`` in memory, for tests."""

from __future__ import annotations

from fnmatch import fnmatchcase

from disque_tx.commands.base.control import Control
from disque_tx.core.base.client import Client
from disque_tx.errors import CommandError


class MemoryControl(Control):
    """A control without effects on the process, which records what it was asked for.

    ``settings``: name and value, set and read by CONFIG; any value is taken for a known name.
    ``performed``: every operation with an effect, as a short text, in order. ``refusal``: raised
    by the next operations instead. ``buffers``: by client ID, as :meth:`client_buffers` answers.
    ``ip``: to which clients are connected.
    """

    def __init__(self, settings: dict[bytes, bytes]) -> None:
        self.settings: dict[bytes, bytes] = settings
        self.performed: list[str] = []
        self.refusal: CommandError | None = None
        self.now_us: int = 0
        self.is_loading: bool = False
        self.log_error: str = ""
        self.buffers: dict[int, tuple[int, int, int]] = {}
        self.ip: bytes = b"127.0.0.1"

    def _perform(self, operation: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.performed.append(operation)

    def config_get(self, pattern: bytes) -> list[tuple[bytes, bytes]]:
        glob = pattern.decode("latin-1")
        return [
            (name, value)
            for name, value in self.settings.items()
            if fnmatchcase(name.decode("latin-1"), glob)
        ]

    def config_set(self, name: bytes, value: bytes) -> None:
        if name.lower() not in self.settings:
            text = f"Unsupported CONFIG parameter: {name.decode('latin-1')}"
            raise CommandError("ERR", text)
        self.settings[name.lower()] = value

    def config_rewrite(self) -> None:
        self._perform("rewrite config")

    def password(self) -> bytes:
        return self.settings.get(b"requirepass", b"")

    def readonly_password(self) -> bytes:
        return self.settings.get(b"readonly-password", b"")

    def info_server(self) -> list[tuple[str, str]]:
        return [("disque_version", "1.0-rc1"), ("process_id", "0")]

    def info_memory(self) -> list[tuple[str, str]]:
        return [("used_memory_rss", "0"), ("mem_allocator", "none")]

    def info_persistence(self) -> list[tuple[str, str]]:
        return [("loading", "1" if self.is_loading else "0"), ("aof_enabled", "0")]

    def info_cpu(self) -> list[tuple[str, str]]:
        return [("used_cpu_sys", "0.00"), ("used_cpu_user", "0.00")]

    def info_eventlog(self) -> list[tuple[str, str]]:
        return []

    def info_listening(self) -> list[tuple[str, str]]:
        return []

    def info_processes(self) -> list[tuple[str, str]]:
        return [("processes", "1")]

    def loading(self) -> bool:
        return self.is_loading

    def write_error(self) -> str:
        return self.log_error

    def background_rewrite(self) -> None:
        self._perform("rewrite log")

    def reload_log(self) -> None:
        self._perform("reload log")

    def save_nodes(self) -> None:
        self._perform("save nodes")

    def save_policies(self) -> None:
        self._perform("save policies")

    def save_schedules(self) -> None:
        self._perform("save schedules")

    def shutdown(self, rewrite_log: bool) -> None:
        self._perform("rewrite log and shut down" if rewrite_log else "shut down")

    def sleep(self, seconds: float) -> None:
        self._perform(f"sleep {seconds}")

    def restart(self, graceful: bool, delay_ms: int) -> None:
        self._perform(f"{'restart' if graceful else 'recover'} after {delay_ms} ms")

    def crash(self, how: str) -> None:
        self._perform(f"crash: {how}")

    def reset_statistics(self) -> None:
        self._perform("reset statistics")

    def set_protocol(self, client: Client, version: int) -> None:
        self._perform(f"protocol {version} for client {client.id}")
        client.speak(version)

    def client_buffers(self, client: Client) -> tuple[int, int, int]:
        return self.buffers.get(client.id, (0, 0, 0))

    def local_ip(self, client: Client) -> bytes:
        return self.ip

"""The process: facts for INFO (client protocol, section 10), and notifications for systemd that the
service is ready and alive (``Type=notify``).
"""

from __future__ import annotations

import os
import platform
import resource
import socket
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from twisted.application.service import Service
from twisted.internet.task import LoopingCall

from disque_tx import __version__
from disque_tx.services.machine.delays import Delays

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings

#: The version whose behaviour clients may expect; the version of this program has its own field.
DISQUE_VERSION: Final = "1.0-rc1"
_ASK_S: Final = 1.0
#: How long a manager that does not read may keep the process from its work.
_NOTIFY_S: Final = 1.0
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class ProcessInfo:
    """Facts about this process. ``run_id``: 40 hex digits, new at every start. ``delays``: of its
    periodic work."""

    def __init__(self, settings: Settings, run_id: str) -> None:
        self._settings = settings
        self._run_id = run_id
        self._started_s = time.monotonic()
        self.delays = Delays()

    def server(self) -> list[tuple[str, str]]:
        """INFO's Server section."""
        uptime_s = int(time.monotonic() - self._started_s)
        system = os.uname()
        return [
            ("disque_version", DISQUE_VERSION),
            ("disque_git_sha1", "00000000"),
            ("disque_git_dirty", "0"),
            ("disque_build_id", build_id()),
            ("os", f"{system.sysname} {system.release} {system.machine}"),
            ("arch_bits", "64" if sys.maxsize > 2**32 else "32"),
            ("multiplexing_api", "epoll"),
            ("gcc_version", "0.0.0"),
            ("process_id", str(os.getpid())),
            ("run_id", self._run_id),
            ("tcp_port", str(self._settings.port)),
            ("uptime_in_seconds", str(uptime_s)),
            ("uptime_in_days", str(uptime_s // 86_400)),
            ("hz", str(self._settings.hz)),
            ("executable", os.path.abspath(sys.argv[0])),
            ("config_file", self._settings.config_file),
        ]

    def memory(self) -> list[tuple[str, str]]:
        """The process's part of INFO's Memory section."""
        return [("used_memory_rss", str(resident_bytes())), ("mem_allocator", "libc")]

    def cpu(self) -> list[tuple[str, str]]:
        """INFO's CPU section."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return [
            ("used_cpu_sys", f"{own.ru_stime:.2f}"),
            ("used_cpu_user", f"{own.ru_utime:.2f}"),
            ("used_cpu_sys_children", f"{children.ru_stime:.2f}"),
            ("used_cpu_user_children", f"{children.ru_utime:.2f}"),
            *self.delays.info(),
        ]


def build_id() -> str:
    """A hash that differs between builds: of version and interpreter, as hex."""
    return f"{crc32(f'{__version__}-{platform.python_version()}'.encode()):016x}"


def resident_bytes() -> int:
    """Memory of the process that is in RAM."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def notify(state: str) -> None:
    """Send ``state`` to the service manager, if one waits for it."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path:
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        sock.settimeout(_NOTIFY_S)
        try:
            sock.sendto(state.encode(), address)
        except OSError:
            pass  # nothing listens, or nothing reads: the service runs all the same


class SystemdWatchdog(Service):
    """Notifies systemd twice per period that the reactor still runs; never without
    ``WATCHDOG_USEC``.

    ``alive``: whether what this process is for still works; it is asked every second, because a
    moment at which it does not must not cost half a period.
    """

    def __init__(self, reactor: Any, alive: Callable[[], bool] | None = None) -> None:
        period_us = int(os.environ.get("WATCHDOG_USEC", "0") or 0)
        self._period_s = period_us / 2_000_000
        if alive is not None:
            self._period_s = min(self._period_s, _ASK_S)
        self._alive = alive
        self._loop = LoopingCall(self._run)
        self._loop.clock = reactor

    def _run(self) -> None:
        if self._alive is None or self._alive():
            notify("WATCHDOG=1")

    def startService(self) -> None:
        """Begin."""
        super().startService()
        if self._period_s:
            self._loop.start(self._period_s)

    def stopService(self) -> None:
        """Notify no more."""
        super().stopService()
        if self._loop.running:
            self._loop.stop()

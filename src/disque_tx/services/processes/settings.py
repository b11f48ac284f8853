"""What each process of a daemon gets of its configuration: ports, folders, memory.

1. Processes have numbers from 1. Number K listens K above the ports of the daemon, for clients and
   for other nodes, and has its files in a folder ``process-K`` beside those of a single process.
2. Number 0 is a node that was the only one here: it has the ports and the folders as they are
   written. So a daemon whose number of processes changes finds its nodes again, at their addresses.
3. The memory for jobs is divided. All other limits hold for each process.
4. The port of the daemon itself is the parent's. The bus port that belongs to it is that of number
   0, or else of number 1, so that other nodes can meet the daemon at the port they know.
"""

from __future__ import annotations

import os
from typing import Final

import attrs

from disque_tx.config.settings import PROCESSES_MAX, Settings
from disque_tx.core.nodes.addresses import BUS_PORT_OFFSET
from disque_tx.errors import ConfigError
from disque_tx.messages.limits import PORT_MAX
from disque_tx.services.bus.endpoints import is_loopback

#: Paths of what a process has for itself.
_OWN_FILES: Final = ("cluster_config_file", "eventlog_dir", "logfile")
_FOLDER: Final = "process-"


def processes(settings: Settings) -> int:
    """How many processes the configuration asks for."""
    return settings.processes or min(len(os.sched_getaffinity(0)), PROCESSES_MAX)


def first_port(settings: Settings) -> int:
    """The port for clients of process 1 alone."""
    return settings.process_port or settings.port + 1


def own_port(settings: Settings, number: int) -> int:
    """The port for clients at which others reach this process; that of the daemon for number 0."""
    return first_port(settings) + number - 1 if number else settings.port


def own_bus_port(settings: Settings, number: int) -> int:
    """The port for other nodes of this process."""
    if settings.cluster_bus_port:
        return settings.cluster_bus_port + number
    return own_port(settings, number) + BUS_PORT_OFFSET


def check(settings: Settings, highest: int) -> None:
    """Whether there are ports for processes up to this number; ``ConfigError`` when not."""
    count = f"{highest} {'process' if highest == 1 else 'processes'}"
    if not settings.port:
        raise ConfigError(
            "The processes of a daemon reach each other by TCP, and 'port 0' leaves them no ports."
            " Give a 'port'."
        )
    last, last_bus = own_port(settings, highest), own_bus_port(settings, highest)
    if last > PORT_MAX or last_bus > PORT_MAX:
        raise ConfigError(
            f"For {count} the ports {first_port(settings)} to {last} are needed, and"
            f" {own_bus_port(settings, 1)} to {last_bus} for other nodes, but {PORT_MAX} is the"
            " highest port. Give a lower 'port', or a 'process-port' and a 'cluster-bus-port'."
        )
    if first_port(settings) <= settings.port <= last:
        raise ConfigError(
            f"Port {settings.port} is that of the daemon, and cannot be among those of its {count},"
            f" {first_port(settings)} to {last}. Give another 'process-port'."
        )


def share(settings: Settings, number: int, count: int) -> Settings:
    """The configuration of one of ``count`` processes."""
    port = own_port(settings, number)
    announced, announced_bus = settings.cluster_announce_port, settings.cluster_announce_bus_port
    bus_offset = own_bus_port(settings, number) - own_bus_port(settings, 0)
    meet_allow = settings.cluster_meet_allow
    changed = attrs.evolve(
        settings,
        port=port,
        cluster_bus_port=settings.cluster_bus_port and own_bus_port(settings, number),
        cluster_announce_port=announced and announced + port - settings.port,
        cluster_announce_bus_port=announced_bus and announced_bus + bus_offset,
        cluster_meet_allow=[*meet_allow, meeting_ip(settings)] if meet_allow else [],
        maxmemory=settings.maxmemory and max(1, settings.maxmemory // count),
        dir=own_path(os.path.join(settings.dir, "."), number),
        unixsocket="",
        daemonize=False,
        # One process is enough to clean the work queues of Redis.
        workqueue_redis=settings.workqueue_redis if number <= 1 else "",
    )
    for name in _OWN_FILES:
        path = getattr(settings, name)
        setattr(changed, name, own_path(path, number) if path else "")
    return changed


def own_path(path: str, number: int) -> str:
    """Where a process has this file or, for a path that ends with ``/.``, all files there."""
    folder, name = os.path.split(path)
    name = "" if name == "." else name
    folder = os.path.join(folder, f"{_FOLDER}{number}") if number else folder
    return os.path.join(folder, name) if name else folder


def folders(settings: Settings, number: int) -> list[str]:
    """The folders that a process needs, in the order in which they can be made."""
    mine = share(settings, number, 1)
    parents = [os.path.dirname(getattr(mine, name)) for name in _OWN_FILES if getattr(mine, name)]
    return list(dict.fromkeys([mine.dir, *parents]))


def event_folders(settings: Settings) -> list[str]:
    """Where the event logs of all processes are that ever ran."""
    return [own_path(settings.eventlog_dir, number) for number in numbers_found(settings)]


def lookup_folders(settings: Settings, number: int, others: list[int]) -> list[str]:
    """The event logs that a process looks into when it is asked about a job: its own; the first one
    does so for those that ran once and are not among the ``others``, too."""
    gone: list[int] = []
    if number < min(others, default=number + 1):
        gone = [one for one in numbers_found(settings) if one != number and one not in others]
    return [own_path(settings.eventlog_dir, one) for one in (number, *gone)]


def numbers_found(settings: Settings) -> list[int]:
    """The numbers of the processes whose nodes files exist, also of former ones."""
    folder = os.path.dirname(settings.cluster_config_file)
    try:
        names = os.listdir(folder)
    except OSError:
        names = []
    numbers = [0]
    for name in names:
        digits = name.removeprefix(_FOLDER)
        if name != digits and digits.isdecimal() and str(int(digits)) == digits != "0":
            numbers.append(int(digits))
    paths = {number: own_path(settings.cluster_config_file, number) for number in numbers}
    return sorted(number for number, path in paths.items() if _has_content(path))


def _has_content(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0
    except OSError:
        return False


def log_path(mine: Settings) -> str:
    """The append only file of a process with this share."""
    return os.path.join(mine.dir, mine.appendfilename)


def meeting_ip(settings: Settings) -> str:
    """The address at which the processes reach each other at the start: the one that others see
    where it is known, or else loopback."""
    if settings.cluster_announce_ip:
        return settings.cluster_announce_ip
    is_open = settings.cluster_bus_tls or settings.cluster_insecure
    usable = [host for host in settings.bind if is_open or is_loopback(host)]
    first = usable[0] if usable else "127.0.0.1"
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "localhost": "127.0.0.1"}.get(first, first)

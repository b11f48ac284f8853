"""``disque-server``: the daemon's own program (client protocol, section 21)."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from disque_tx import __version__, config
from disque_tx.cli.programs.signals import Daemon, Report, handle_signals
from disque_tx.errors import ConfigError

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.machine.log import DaemonLog
    from disque_tx.services.node.root import NodeRoot

_USAGE: Final = """\
Usage: disque-server [/path/to/disque.conf | -] [--directive value ...]
       disque-server -v | --version
       disque-server -h | --help
       disque-server --test-memory <megabytes>

Without a file, the defaults are used. With '-', the configuration is read from standard input.
Directives on the command line override the file.

Examples:
       disque-server
       disque-server /etc/disque/disque.conf
       disque-server --port 7777
       disque-server --port 7777 --bind 127.0.0.1 ::1
       disque-server /etc/disque/disque.conf --loglevel verbose
       disque-server --processes auto
       echo 'maxmemory 128mb' | disque-server -
"""
#: What a daemon in the background reports to the process that the user started.
_STARTED: Final = b"\0"
_REASON_BYTES_MAX: Final = 4096

Make = Callable[[Any], Daemon]


def main(argv: list[str] | None = None) -> int:
    """Run the daemon; returns its exit status."""
    words = sys.argv[1:] if argv is None else argv
    first = words[0] if words else ""
    if first in ("-v", "--version"):
        from disque_tx.services.machine.process import DISQUE_VERSION, build_id

        print(
            f"Disque server v={DISQUE_VERSION} sha=00000000:0 malloc=libc bits=64"
            f" build={build_id()} (disque-tx {__version__})"
        )
        return 0
    if first in ("-h", "--help"):
        sys.stderr.write(_USAGE)
        return 1
    if first == "--test-memory":
        return _test_memory(words[1:])
    if first == "--process":
        return _serve_as_child(int(words[1]))
    return _run(words)


def _test_memory(words: list[str]) -> int:
    """Write this much memory and read it back."""
    if len(words) != 1 or not words[0].isascii() or not words[0].isdigit():
        print("Please specify the amount of memory to test in megabytes.")
        print("Example: disque-server --test-memory 4096")
        return 1
    for _ in range(int(words[0])):
        for byte in (0x00, 0xFF, 0x55, 0xAA):
            block = bytearray([byte]) * (1024 * 1024)
            if block.count(byte) != len(block):
                print("Your memory is broken: what was written is not what was read.")
                return 1
    print("Your memory passed this test.")
    return 0


def _run(words: list[str]) -> int:
    from disque_tx.commands.table import standard_registry
    from disque_tx.core.policies.policies import checked_pairs
    from disque_tx.services.machine.log import DaemonLog

    try:
        settings = config.load(
            words,
            sys.stdin.buffer.read,
            commands=standard_registry().by_name,
            policy=checked_pairs,
        )
    except config.ConfigLineError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except ConfigError as error:
        DaemonLog().warning(str(error))
        return 1
    return _serve(settings, defaults=not words)


def _serve(settings: Settings, defaults: bool) -> int:
    from disque_tx.services.node.root import prepare

    try:
        log = prepare(settings)
    except ConfigError as error:
        print(error)
        return 1
    if defaults:
        log.warning(
            "Warning: no config file specified, using the default config. In order to specify a"
            " config file use disque-server /path/to/disque.conf"
        )
    environment = dict(os.environ)  # before the endpoints take what is for them out of it
    several = _has_several(settings)
    report = _daemonize(waits=several) if settings.daemonize else _to_terminal(log)

    def make_one(reactor: Any) -> Daemon:
        from disque_tx.services.node.root import NodeRoot

        return _one_node(NodeRoot(settings, log, reactor))

    def make_several(reactor: Any) -> Daemon:
        from disque_tx.services.processes.parent.parent import Parent

        parent = Parent(settings, log, reactor, environment, report)
        reload, leave = (partial(parent.pass_on, each) for each in (signal.SIGHUP, signal.SIGUSR1))
        evacuate = parent.evacuation.begin
        return Daemon(parent, lambda: False, reload, leave, evacuate, parent.kill)

    if several:
        return _work(make_several, settings, log, report)
    return _work(make_one, settings, log)


def _one_node(root: NodeRoot) -> Daemon:
    def leave() -> None:
        root.node_service.call(b"CLUSTER", b"LEAVING", b"yes").addErrback(
            lambda failure: root.log.warning(f"Cannot leave: {failure.getErrorMessage()}")
        )

    reload, evacuate = root.certificates.reload, root.evacuation.begin
    return Daemon(root, lambda: root.aof.loading, reload, leave, evacuate, lambda: None)


def _has_several(settings: Settings) -> bool:
    """Whether there are to be several processes, or are some left of which there were."""
    from disque_tx.services.processes.parent.surplus import surplus
    from disque_tx.services.processes.settings import processes

    return processes(settings) > 1 or bool(surplus(settings, [0]))


def _serve_as_child(descriptor: int) -> int:
    """Serve as one of several processes; the parent is at the other end of the descriptor."""
    from disque_tx.services.node.root import prepare
    from disque_tx.services.processes.parent.children import read_start

    sock = socket.socket(fileno=descriptor)
    start = read_start()
    log = prepare(start.settings)

    def make(reactor: Any) -> Daemon:
        from disque_tx.services.processes.member.member import MemberRoot

        root = MemberRoot(start, log, reactor, sock)
        return attrs.evolve(_one_node(root), connect=root.connect)

    def failed(reason: str) -> None:
        sock.send(json.dumps(["failed", reason]).encode())

    return _work(make, start.settings, log, failed)


def _daemonize(waits: bool) -> Report:
    """Continue in a child process, in a session of its own without a terminal.

    ``waits``: this process ends when the child has called the function that is returned, with the
    reason why the start has failed, or with an empty text.
    """
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        reason = os.read(reader, _REASON_BYTES_MAX) if waits else _STARTED
        if reason != _STARTED:
            sys.stderr.write(f"{reason.decode(errors='replace') or 'The start has failed.'}\n")
        os._exit(0 if reason == _STARTED else 1)
    os.close(reader)
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    if null > 2:
        os.close(null)
    return _Once(writer).report


class _Once:
    """Reports to the process that was started by the user, once."""

    def __init__(self, writer: int) -> None:
        self._writer = writer

    def report(self, reason: str) -> None:
        """The start has failed for this reason, or is done when it is empty."""
        writer, self._writer = self._writer, -1
        if writer >= 0:
            os.write(writer, reason.encode()[:_REASON_BYTES_MAX] or _STARTED)
            os.close(writer)


def _to_terminal(log: DaemonLog) -> Report:
    """Reports why the start has failed, where the log does not go to the terminal anyway."""

    def report(reason: str) -> None:
        if reason and log.path:
            sys.stderr.write(f"{reason}\n")

    return report


def _work(
    make: Make, settings: Settings, log: DaemonLog, failed: Report = lambda reason: None
) -> int:
    # The reactor is installed after the fork, and only by a process that serves.
    from disque_tx.services.net.reactor import install

    install()
    from twisted.internet import reactor
    from twisted.logger import globalLogBeginner

    running: Any = reactor
    globalLogBeginner.beginLoggingTo([log], redirectStandardIO=False, discardBuffer=True)
    try:
        daemon = make(running)
        daemon.root.privilegedStartService()
    except (ConfigError, OSError) as error:
        log.warning(str(error))
        failed(str(error))
        return 1
    handle_signals(daemon, log, running)
    pid_file = _write_pid_file(settings, log)
    root = daemon.root
    running.callWhenRunning(root.startService)
    running.addSystemEventTrigger("before", "shutdown", root.stopService)
    running.run(installSignalHandlers=False)
    if pid_file:
        os.unlink(pid_file)
    if root.restart_wanted is not None:
        _restart(root.restart_wanted)
    return root.exit_status


def _write_pid_file(settings: Settings, log: DaemonLog) -> str:
    """Write the pid file of a daemon; returns the path to remove at the end."""
    if not settings.daemonize or not settings.pidfile:
        return ""
    try:
        with open(settings.pidfile, "w", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")
    except OSError as error:
        log.warning(f"Can't write the pid file {settings.pidfile}: {error.strerror}")
        return ""
    return settings.pidfile


def _restart(delay_ms: int) -> None:
    """Replace the process by a new one with the same arguments."""
    time.sleep(delay_ms / 1000)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


if __name__ == "__main__":
    sys.exit(main())

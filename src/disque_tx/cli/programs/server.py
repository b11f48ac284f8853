"""``disque-server``: the daemon's own program (client protocol, section 21)."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from disque_tx import __version__, config
from disque_tx.errors import ConfigError

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.host.log import DaemonLog
    from disque_tx.services.root import NodeRoot

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
       echo 'maxmemory 128mb' | disque-server -
"""
_STOP_WITHIN_S: Final = 10


def main(argv: list[str] | None = None) -> int:
    """Run the daemon; returns its exit status."""
    words = sys.argv[1:] if argv is None else argv
    first = words[0] if words else ""
    if first in ("-v", "--version"):
        from disque_tx.services.host.process import DISQUE_VERSION, build_id

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
    return _run(words)


def _test_memory(words: list[str]) -> int:
    """Write this much memory and read it back."""
    if len(words) != 1 or not words[0].isdigit():
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
    from disque_tx.services.host.log import DaemonLog

    try:
        settings = config.load(words, sys.stdin.buffer.read, commands=standard_registry().by_name)
    except config.ConfigLineError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except ConfigError as error:
        DaemonLog().warning(str(error))
        return 1
    return _serve(settings, defaults=not words)


def _serve(settings: Settings, defaults: bool) -> int:
    from disque_tx.services.root import prepare

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
    if settings.daemonize:
        _daemonize()
    return _work(settings, log)


def _daemonize() -> None:
    """Continue in a child process, in a session of its own without a terminal."""
    if os.fork():
        os._exit(0)
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    if null > 2:
        os.close(null)


def _work(settings: Settings, log: DaemonLog) -> int:
    # The reactor is installed after the fork, and only by a process that serves.
    from disque_tx.services.net.reactor import install

    install()
    from twisted.internet import reactor
    from twisted.logger import globalLogBeginner

    from disque_tx.services.root import NodeRoot

    running: Any = reactor
    globalLogBeginner.beginLoggingTo([log], redirectStandardIO=False, discardBuffer=True)
    try:
        root = NodeRoot(settings, log, running)
        root.privilegedStartService()
    except (ConfigError, OSError) as error:
        log.warning(str(error))
        return 1
    _handle_signals(root, log, running)
    pid_file = _write_pid_file(settings, log)
    running.callWhenRunning(root.startService)
    running.addSystemEventTrigger("before", "shutdown", root.stopService)
    running.run(installSignalHandlers=False)
    if pid_file:
        os.unlink(pid_file)
    if root.restart_wanted is not None:
        _restart(*root.restart_wanted)
    return root.exit_status


def _handle_signals(root: NodeRoot, log: DaemonLog, reactor: Any) -> None:
    """SIGTERM and SIGINT stop the node in an orderly way, a second one at once; SIGHUP reloads the
    certificates; SIGPIPE is ignored."""
    from twisted.internet.process import reapAllProcesses

    asked = False

    def stop(number: int, _frame: object) -> None:
        nonlocal asked
        if asked:
            os._exit(1)
        asked = True
        if root.aof.loading:
            os._exit(0)
        name = signal.Signals(number).name
        log.warning(f"Received {name}, scheduling shutdown...")
        signal.signal(signal.SIGALRM, lambda *_: os._exit(1))
        signal.alarm(_STOP_WITHIN_S)
        reactor.callFromThread(root.request_stop, 0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, lambda *_: reactor.callFromThread(root.certificates.reload))
    # The end of processes that the node has started.
    signal.signal(signal.SIGCHLD, lambda *_: reactor.callFromThread(reapAllProcesses))


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


def _restart(graceful: bool, delay_ms: int) -> None:
    """Replace the process by a new one with the same arguments."""
    time.sleep(delay_ms / 1000)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


if __name__ == "__main__":
    sys.exit(main())

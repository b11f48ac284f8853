"""The program ``disque`` (client protocol, section 22.1).

What a one-shot command does not need is imported where it is used: it must start fast.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Final

from disque_tx import __version__
from disque_tx.cli import signals
from disque_tx.cli.connection import ServerConnectionLost, ServerUnreachable
from disque_tx.cli.formatting import Style
from disque_tx.cli.options import ClientOptions, UsageError, parse
from disque_tx.cli.prompt.session import CommandSession
from disque_tx.cli.verbs.base import registry as verbs

_HISTORY_WINDOW_S: Final = 15.0
_STAT_INTERVAL_S: Final = 1.0
_MACHINE_FORMS: Final = frozenset(("json", "csv"))
_TEXT_ONLY_MODES: Final = frozenset(
    ("latency", "latency-history", "stat", "pipe", "intrinsic-latency")
)
#: Stands for the input, with -x.
_INPUT: Final = b"-"


def main(argv: list[str] | None = None) -> int:
    """Run the program; ``argv`` is without the program's name. Returns the exit status."""
    with signals.exit_on_signals():
        return _main(argv)


def _main(argv: list[str] | None) -> int:
    try:
        options = parse(sys.argv[1:] if argv is None else argv, os.environ)
        if options.ask_password:
            options.password = _ask_password()
        if options.form in _MACHINE_FORMS and options.mode in _TEXT_ONLY_MODES:
            raise UsageError(f"--{options.mode} has no output as --{options.form}")
        if options.encrypted and not options.verify:
            print("--insecure: the server's certificate is not checked.", file=sys.stderr)
        return _MODES[options.mode](options)
    except (UsageError, ServerUnreachable) as error:
        return _fail(str(error))
    except ServerConnectionLost as error:
        return _fail(f"Error: {error}\n{error.hint}".rstrip())
    except BrokenPipeError:
        # The reader of the output has gone; the interpreter must not flush to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _fail(text: str) -> int:
    print(text, file=sys.stderr)
    return 1


def _ask_password() -> bytes:
    from getpass import getpass

    try:
        return os.fsencode(getpass("Password: "))
    except EOFError:
        raise UsageError("--askpass: no password was entered") from None


def _style(options: ClientOptions) -> Style:
    terminal = sys.stdout.isatty()
    default = "formatted" if terminal or os.environ.get("FAKETTY") else "raw"
    colour = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return Style(options.form or default, options.delimiter, colour)


def _session(options: ClientOptions) -> CommandSession:
    style = _style(options)
    out = sys.stdout.buffer
    return CommandSession(options.address, options.password, style, out, sys.stderr, time.sleep)


def _command(options: ClientOptions) -> int:
    if not options.command:
        return _lines(options)
    verb = verbs.recognised(options.command)
    if verb is not None:
        return verbs.run(verb, os.fsdecode(options.command[0]), options.command[1:], options)
    args = options.command
    if options.append_input:
        args = _with_input(args, sys.stdin.buffer.read())
    session = _session(options)
    session.run(args, options.repeat, options.interval_s or 0.0)
    # PING asks whether the server is well, so an error decides the exit status.
    decisive = options.fail_on_error or args[0].lower() == b"ping"
    return 1 if decisive and session.errors else 0


def _with_input(args: list[bytes], data: bytes) -> list[bytes]:
    """The words with the input in place of the first ``-``, or at the end."""
    if _INPUT not in args:
        return [*args, data]
    place = args.index(_INPUT)
    return [*args[:place], data, *args[place + 1 :]]


def _lines(options: ClientOptions) -> int:
    from disque_tx.cli.prompt.shell import Quit, Shell

    interactive = sys.stdin.isatty()
    session = _session(options)
    shell = Shell(session, time.monotonic, interactive, options.interval_s or 0.0)
    if interactive:
        from disque_tx.cli.prompt import repl

        return repl.run(shell, repl.LineHistory(repl.history_path()))
    try:
        for line in sys.stdin.buffer:
            shell.execute(line)
    except Quit:
        pass
    return 1 if options.fail_on_error and session.errors else 0


def _bigqueues(options: ClientOptions) -> int:
    return verbs.run(verbs.BIGQUEUES, "--bigqueues", options.command, options)


def _latency(options: ClientOptions) -> int:
    return _measure(options, None)


def _latency_history(options: ClientOptions) -> int:
    return _measure(options, options.interval_s or _HISTORY_WINDOW_S)


def _measure(options: ClientOptions, window_s: float | None) -> int:
    from disque_tx.cli.modes.monitoring import latency

    connection = _session(options).connect()
    latency(connection, sys.stdout.buffer, time.monotonic, time.sleep, window_s)
    return 0


def _stat(options: ClientOptions) -> int:
    from disque_tx.cli.modes.monitoring import RefusedError, stat

    interval_s = options.interval_s or _STAT_INTERVAL_S
    try:
        stat(_session(options).reconnect, sys.stdout.buffer, time.sleep, interval_s)
    except RefusedError as error:
        return _fail(f"The server refused INFO: {error}")
    return 0


def _pipe(options: ClientOptions) -> int:
    from disque_tx.cli.modes.pipe import MARK_LENGTH, PipeMode

    mark = os.urandom(MARK_LENGTH)
    connection = _session(options).connect()
    pipe = PipeMode(connection, sys.stdin.fileno(), sys.stdout.buffer, sys.stderr, mark)
    return pipe.run(options.pipe_timeout_s, time.monotonic)


def _intrinsic_latency(options: ClientOptions) -> int:
    from disque_tx.cli.modes.monitoring import intrinsic_latency

    intrinsic_latency(sys.stdout.buffer, time.perf_counter_ns, options.intrinsic_s)
    return 0


def _help(options: ClientOptions) -> int:
    sys.stdout.write(verbs.USAGE)
    return 0


def _version(options: ClientOptions) -> int:
    print(f"disque {__version__}")
    return 0


_MODES: Final[dict[str, Callable[[ClientOptions], int]]] = {
    "command": _command,
    "bigqueues": _bigqueues,
    "latency": _latency,
    "latency-history": _latency_history,
    "stat": _stat,
    "pipe": _pipe,
    "intrinsic-latency": _intrinsic_latency,
    "help": _help,
    "version": _version,
}

if __name__ == "__main__":
    sys.exit(main())

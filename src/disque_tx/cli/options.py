"""The options of ``disque`` (client protocol, section 22.1)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Final

from disque_tx.cli.connection import Address
from disque_tx.errors import DisqueError

USAGE: Final = """\
Usage: disque [options] [command [argument ...]]

Without a command: a prompt when the input is a terminal, else one command per line of the input.

Where to connect
  -h <host>               default 127.0.0.1
  -p <port>               default 7711
  -s <path>, -u <path>    a Unix socket instead of host and port
  -a <password>           rather set DISQUE_PASSWORD: process lists show arguments

What to run
  -r <n>                  run the command n times; negative: for ever
  -i <seconds>            pause between runs, such as 0.5
  -x                      append the whole input as the last argument

How to print
  --raw                   plain; the default when the output is no terminal
  --no-raw                for people; the default on a terminal
  --csv                   one line of comma separated values per reply
  --json                  one JSON document per reply, a line each
  -d <delimiter>          between array elements in plain output; default newline

Instead of a command
  --latency               measure the round trip of PING until interrupted
  --latency-history       the same, a line per window of -i seconds (default 15)
  --stat                  a line of figures every -i seconds (default 1)
  --intrinsic-latency <s> measure the scheduling delay of this machine; needs no server
  --pipe                  send the input as it is, count replies and errors
  --pipe-timeout <s>      with --pipe: give up after that many silent seconds; default 30,
                          0 waits for ever
  --help                  this text
  -v, --version           the version

Examples
  disque ADDJOB mail "hello" 0
  disque GETJOB FROM mail
  disque -x ADDJOB images 500 < picture.png
  disque --json QSTAT mail
"""


class UsageError(DisqueError):
    """The command line cannot be understood; the text says which word."""


class Options:
    """What the command line asks for. ``mode``: ``command``, or the option that replaces one.
    ``form``: a form of output, or ``None`` for the default of the output device."""

    def __init__(self) -> None:
        self.host = "127.0.0.1"
        self.port = 7711
        self.unix: str | None = None
        self.password: bytes | None = None
        self.repeat = 1
        self.interval_s: float | None = None
        self.append_input = False
        self.form: str | None = None
        self.delimiter = b"\n"
        self.mode = "command"
        self.pipe_timeout_s = 30.0
        self.intrinsic_s = 0.0
        self.command: list[bytes] = []

    @property
    def address(self) -> Address:
        """Where to connect."""
        return Address(self.host, self.port, self.unix)


def _port(text: str) -> int:
    port = int(text)
    if not 0 < port < 65536:
        raise ValueError(text)
    return port


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < 1e9:
        raise ValueError(text)
    return seconds


_VALUED: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "-h": ("host", str),
    "-p": ("port", _port),
    "-s": ("unix", str),
    "-u": ("unix", str),
    "-a": ("password", os.fsencode),
    "-r": ("repeat", int),
    "-i": ("interval_s", _seconds),
    "-d": ("delimiter", os.fsencode),
    "--pipe-timeout": ("pipe_timeout_s", _seconds),
    "--intrinsic-latency": ("intrinsic_s", _seconds),
}
_FLAGS: Final[dict[str, tuple[str, object]]] = {
    "-x": ("append_input", True),
    "--raw": ("form", "raw"),
    "--no-raw": ("form", "formatted"),
    "--csv": ("form", "csv"),
    "--json": ("form", "json"),
    "--latency": ("mode", "latency"),
    "--latency-history": ("mode", "latency-history"),
    "--stat": ("mode", "stat"),
    "--pipe": ("mode", "pipe"),
    "--help": ("mode", "help"),
    "-v": ("mode", "version"),
    "--version": ("mode", "version"),
}


def parse(argv: list[str], environ: Mapping[str, str]) -> Options:
    """The options before the first word without a dash, which starts the command.

    Raises ``UsageError``.
    """
    options = Options()
    if environ.get("DISQUE_PASSWORD"):
        options.password = os.fsencode(environ["DISQUE_PASSWORD"])
    words = list(argv)
    while words and words[0].startswith("-"):
        _take(options, words)
    options.command = [os.fsencode(word) for word in words]
    return options


def _take(options: Options, words: list[str]) -> None:
    word = words.pop(0)
    if word == "-h" and not words:
        word = "--help"
    flag = _FLAGS.get(word)
    if flag is not None:
        setattr(options, flag[0], flag[1])
        return
    valued = _VALUED.get(word)
    if valued is None or not words:
        raise UsageError(f"Unrecognized option or bad number of args for: '{word}'")
    value = words.pop(0)
    try:
        setattr(options, valued[0], valued[1](value))
    except ValueError:
        raise UsageError(f"The value of {word} is out of range or no number: '{value}'") from None
    if word == "--intrinsic-latency":
        options.mode = "intrinsic-latency"

"""The options of ``disque`` (client protocol, section 22.1)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from disque_tx.cli.connection import ServerAddress
from disque_tx.errors import DisqueError

if TYPE_CHECKING:
    from disque_tx.client.options import TLS

_USAGE: Final = """\
Usage: disque [options] [command [argument ...]]
       disque [options] verb [argument ...]

Without a command: a prompt when the input is a terminal, else one command per line of the input.
Verbs are the words below, in lower case; everything else is sent to the server unchanged.

Where to connect
  -h <host>               default 127.0.0.1
  -p <port>               default 7711
  -s <path>               a Unix socket instead of host and port
  -u <url>, -u <path>     disque://[:password@]host[:port], disque+dns://name[:port],
                          disque+srv://name, or a Unix socket
  -a <password>           rather set DISQUE_PASSWORD: process lists show arguments
  --askpass               ask for the password on the terminal

Encryption
  --tls                   use TLS; the port must be a TLS port
  --cacert <file>         PEM file of trusted authorities; default those of the system
  --cert <file>           PEM file of the client's own certificate
  --key <file>            PEM file of its private key
  --sni <name>            the name the certificate must have, instead of the host
  --no-host-check         do not compare the certificate's name with the host
  --insecure              do not check the certificate: anybody can pose as the server

What to run
  -r <n>                  run the command n times; negative: forever
  -i <seconds>            pause between runs, such as 0.5
  -x                      put the whole input in place of the word -, or at the end
  -e                      exit with status 1 when the reply is an error
  --timeout <seconds>     give up when connecting, or a reply, takes longer

How to print
  --raw                   plain; the default when the output is not a terminal
  --no-raw                for people; the default on a terminal
  --csv                   one line of comma separated values per reply
  --json                  one JSON document per reply, a line each
  -d <delimiter>          between array elements in plain output; default newline

Instead of a command
  --latency               measure the round trip of PING until interrupted
  --latency-history       the same, a line per window of -i seconds (default 15)
  --bigqueues             the longest queues, with the rates of -i seconds (default 1)
  -n <count>              with --bigqueues: how many; default 20
  --all-nodes             with --bigqueues: ask all nodes of the cluster
  --stat                  a line of figures every -i seconds (default 1)
  --intrinsic-latency <s> measure the scheduling delay of this machine; needs no server
  --pipe                  send the input unchanged, count replies and errors
  --pipe-timeout <s>      with --pipe: give up after this time without a reply;
                          default 30, 0 waits forever
  --help                  this text
  -v, --version           the version

Verbs: see disque <verb> --help
{verbs}

Examples
  disque ADDJOB mail "hello" 0
  disque GETJOB FROM mail
  disque -x ADDJOB images - 500 < picture.png
  disque --json QSTAT mail
  disque drain mail --to mail.jsonl
  disque -u disque://10.0.0.1:7711 watch mail
  disque cluster check 10.0.0.1:7711
"""


def usage(verbs: str) -> str:
    """What ``--help`` prints; ``verbs``: a line each."""
    return _USAGE.replace("{verbs}", verbs)


class UsageError(DisqueError):
    """The command line is not valid; the text says which word is wrong."""


class ClientOptions:
    """The parsed command line. ``mode``: ``command``, or the option that replaces one. ``form``: a
    form of output, or ``None`` for the default of the output device. ``others``: addresses of nodes
    for verbs without addresses of their own, from a URL or the environment."""

    def __init__(self) -> None:
        self.host = "127.0.0.1"
        self.port = 7711
        self.unix: str | None = None
        self.others: tuple[str, ...] = ()
        self.password: bytes | None = None
        self.ask_password = False
        self.encrypted = False
        self.cacert: str | None = None
        self.cert: str | None = None
        self.key: str | None = None
        self.sni: str | None = None
        self.check_host = True
        self.verify = True
        self.repeat = 1
        self.interval_s: float | None = None
        self.append_input = False
        self.form: str | None = None
        self.delimiter = b"\n"
        self.mode = "command"
        self.pipe_timeout_s = 30.0
        self.intrinsic_s = 0.0
        self.queues_max: int | None = None
        self.all_nodes = False
        self.command: list[bytes] = []
        self.fail_on_error = False
        self.timeout_s: float | None = None

    @property
    def address(self) -> ServerAddress:
        """Where to connect. Raises ``UsageError`` for options of TLS that do not fit."""
        return ServerAddress(
            self.host, self.port, self.unix, self.encryption, self.sni, self.timeout_s
        )

    @property
    def encryption(self) -> TLS | None:
        """How connections are encrypted. Raises ``UsageError`` for options that do not fit."""
        if not self.encrypted:
            return None
        if self.unix is not None:
            raise UsageError("--tls is for a host and a port, not for a Unix socket")
        if (self.cert is None) != (self.key is None):
            raise UsageError("--cert and --key belong together: use both or neither")
        for option, path in (("cacert", self.cacert), ("cert", self.cert), ("key", self.key)):
            if path is not None and not os.path.isfile(path):
                raise UsageError(f"--{option}: there is no file '{path}'")
        from disque_tx.client.options import TLS

        return TLS(self.cacert, self.cert, self.key, self.verify, self.check_host)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The addresses, as ``host:port`` or ``unix:/path``, of nodes to begin with."""
        if self.unix is not None:
            return (f"unix:{os.path.abspath(self.unix)}",)
        return self.others or (str(ServerAddress(self.host, self.port)),)

    @property
    def secret(self) -> str | None:
        """The password as text."""
        return None if self.password is None else os.fsdecode(self.password)


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


def _count(text: str) -> int:
    count = int(text)
    if not 0 < count <= 100_000:
        raise ValueError(text)
    return count


_VALUED: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "-h": ("host", str),
    "-p": ("port", _port),
    "-s": ("unix", str),
    "-u": ("unix", str),
    "-a": ("password", os.fsencode),
    "-r": ("repeat", int),
    "-i": ("interval_s", _seconds),
    "--timeout": ("timeout_s", _seconds),
    "-n": ("queues_max", _count),
    "--cacert": ("cacert", str),
    "--cert": ("cert", str),
    "--key": ("key", str),
    "--sni": ("sni", str),
    "-d": ("delimiter", os.fsencode),
    "--pipe-timeout": ("pipe_timeout_s", _seconds),
    "--intrinsic-latency": ("intrinsic_s", _seconds),
}
_FLAGS: Final[dict[str, tuple[str, object]]] = {
    "--askpass": ("ask_password", True),
    "--tls": ("encrypted", True),
    "--insecure": ("verify", False),
    "--no-host-check": ("check_host", False),
    "--bigqueues": ("mode", "bigqueues"),
    "--all-nodes": ("all_nodes", True),
    "-x": ("append_input", True),
    "-e": ("fail_on_error", True),
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


#: Options that say where to connect, and so override the environment.
_PLACES: Final = frozenset(("-h", "-p", "-s", "-u"))
_URLS: Final = ("disque://", "disque+dns://", "disque+srv://")
_UNRECOGNIZED: Final = "Unrecognized option or bad number of args for"


def parse(argv: list[str], environ: Mapping[str, str]) -> ClientOptions:
    """The options before the first word without a dash, which starts the command.

    Raises ``UsageError``.
    """
    options = ClientOptions()
    if environ.get("DISQUE_PASSWORD"):
        options.password = os.fsencode(environ["DISQUE_PASSWORD"])
    if environ.get("DISQUE_ADDRESSES"):
        options.others = tuple(environ["DISQUE_ADDRESSES"].split(","))
    words = list(argv)
    while words and words[0].startswith("-"):
        _take(options, words)
    if options.mode != "bigqueues" and (options.queues_max is not None or options.all_nodes):
        word = "--all-nodes" if options.all_nodes else "-n"
        raise UsageError(f"{_UNRECOGNIZED}: '{word}'")
    options.command = [os.fsencode(word) for word in words]
    return options


def _take(options: ClientOptions, words: list[str]) -> None:
    word = words.pop(0)
    if word == "-h" and not words:
        word = "--help"
    flag = _FLAGS.get(word)
    if flag is not None:
        setattr(options, flag[0], flag[1])
        return
    valued = _VALUED.get(word)
    if valued is None or not words:
        raise UsageError(f"{_UNRECOGNIZED}: '{word}'")
    value = words.pop(0)
    if word in _PLACES:
        options.others = ()
    if word == "-u" and value.startswith(_URLS):
        _take_url(options, value)
        return
    try:
        setattr(options, valued[0], valued[1](value))
    except ValueError:
        raise UsageError(
            f"The value of {word} is out of range or not a number: '{value}'"
        ) from None
    if word == "--intrinsic-latency":
        options.mode = "intrinsic-latency"


def _take_url(options: ClientOptions, url: str) -> None:
    # Only this needs the module, and a one-shot command must start fast.
    from disque_tx.client.addresses import seeds
    from disque_tx.client.errors import BadAddress, NameNotFound
    from disque_tx.client.resolving import expanded

    try:
        given = seeds(url)
        first = expanded(given.addresses)[0]
    except (BadAddress, NameNotFound) as error:
        raise UsageError(f"-u: {error}") from None
    options.host, options.port = first.host, first.port
    options.unix = None
    options.others = tuple(map(str, given.addresses))
    if given.password is not None:
        options.password = os.fsencode(given.password)

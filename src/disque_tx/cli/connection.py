"""A blocking connection to a server, with TLS or without, and advice on errors."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from disque_tx.cli.replies import ErrorReply, Reply, read_reply
from disque_tx.errors import DisqueError, PeerError

if TYPE_CHECKING:
    import ssl

    from disque_tx.client.options import TLS


#: Part of an error's text → advice; the first match is used.
_HINTS: Final[tuple[tuple[str, str], ...]] = (
    ("WRONG_VERSION_NUMBER", "The server does not use TLS on this port; try without --tls."),
    ("UNEXPECTED_EOF", "The server may not use TLS on this port; try without --tls."),
    ("RECORD_LAYER_FAILURE", "The server does not use TLS on this port; try without --tls."),
    (
        "certificate has expired",
        "The server's certificate has expired: put a new one in its place, and send the server"
        " SIGHUP. Naming an authority with --cacert does not help.",
    ),
    (
        "certificate is not yet valid",
        "The server's certificate is not valid yet: check the clocks of both machines.",
    ),
    (
        "certificate verify failed: Hostname mismatch",
        "The certificate is for another host; name that with --sni, or use --no-host-check.",
    ),
    (
        "certificate verify failed: IP address mismatch",
        "The certificate is for another host; name that with --sni, or use --no-host-check.",
    ),
    ("doesn't match", "The certificate is for another host; see --sni and --no-host-check."),
    (
        "CERTIFICATE_VERIFY_FAILED",
        "No trusted authority has signed the certificate; name the authority with --cacert.",
    ),
    ("CERTIFICATE_REQUIRED", "The server requires a certificate; use --cert and --key."),
    ("b'\\x15\\x03", "The server uses TLS on this port; try with --tls."),
    ("Connection closed by server", "If the port is for TLS, try with --tls."),
    ("NOAUTH", "The node requires a password: DISQUE_PASSWORD, --askpass or -a."),
)
_NO_WORD: Final = "It did not answer at all; if its port is for TLS, try with --tls."


class ServerUnreachable(DisqueError):
    """No connection could be made; the text says where and why."""


class ServerConnectionLost(DisqueError):
    """The connection ended before the reply was complete; the text says why. ``hint``: advice, if
    there is any."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


class ServerAddress:
    """Where a server listens: ``host`` and ``port``, or the path ``unix``, which takes precedence.

    ``tls``: how the connection is encrypted, ``None`` for no TLS. ``sni``: the name that the
    certificate must have, instead of the host. ``timeout_s``: how long connecting, and each reply,
    may take; ``None`` or 0 forever.
    """

    def __init__(
        self,
        host: str,
        port: int,
        unix: str | None = None,
        tls: TLS | None = None,
        sni: str | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.unix = unix
        self.tls = tls
        self.sni = sni
        self.timeout_s = timeout_s or None

    def __str__(self) -> str:
        if self.unix is not None:
            return self.unix
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def prompt(self) -> str:
        """The address as the prompt shows it (client protocol, section 22.1)."""
        return f"disque {self}" if self.unix is not None else str(self)

    def moved(self, host: str, port: int) -> ServerAddress:
        """The address of another server, with the same TLS options and timeout."""
        return ServerAddress(host, port, tls=self.tls, sni=self.sni, timeout_s=self.timeout_s)

    def open(self) -> socket.socket:
        """A connected socket. Raises ``ServerUnreachable``."""
        try:
            if self.unix is not None:
                sock = socket.socket(socket.AF_UNIX)
                sock.settimeout(self.timeout_s)
                sock.connect(self.unix)
            else:
                sock = socket.create_connection((self.host, self.port), self.timeout_s)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock if self.tls is None else self._encrypted(sock, self.tls)
        except (OSError, OverflowError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            text = f"Could not connect to Disque at {self}: {why}"
            raise ServerUnreachable(explained(text)) from error

    def _encrypted(self, sock: socket.socket, tls: TLS) -> socket.socket:
        try:
            return _wrapped(sock, self.host, tls, self.sni)
        except OSError:
            sock.close()
            raise


def explained(text: str) -> str:
    """The text of an error, followed by advice if there is any."""
    for part, hint in _HINTS:
        if part in text:
            return f"{text.rstrip('.')}. {hint}"
    return text


def _wrapped(sock: socket.socket, host: str, tls: TLS, sni: str | None) -> ssl.SSLSocket:
    """Encrypt the connection. ``sni``: the name to ask for and to check, instead of the host.

    :raises OSError: when the server does not use TLS or is not trusted, and when files cannot be
        read. ``ssl.SSLError`` is one.
    """
    # Only this needs the module, and a one-shot command must start fast.
    from disque_tx.client.encryption import ssl_context

    return ssl_context(tls).wrap_socket(sock, server_hostname=sni or host)


def encode(args: list[bytes]) -> bytes:
    """A request as an array of strings (client protocol, section 3.1)."""
    parts = [b"*%d\r\n" % len(args)]
    parts += [b"$%d\r\n%b\r\n" % (len(arg), arg) for arg in args]
    return b"".join(parts)


class ServerConnection:
    """One open connection; requests and replies alternate.

    ``auth_error``: the server's reply if it refused the password, else ``None``.
    """

    def __init__(self, address: ServerAddress, password: bytes | None = None) -> None:
        """Connect and authenticate. Raises ``ServerUnreachable`` or ``ServerConnectionLost``."""
        self.socket = address.open()
        self._stream = self.socket.makefile("rb")
        self._silent = address.tls is None
        self.auth_error: ErrorReply | None = None
        if password is not None:
            answer = self.call([b"AUTH", password])
            if isinstance(answer, ErrorReply):
                self.auth_error = answer

    def call(self, args: list[bytes]) -> Reply:
        """Send a request and wait for its reply. Raises ``ServerConnectionLost``."""
        self.send(args)
        return self.read()

    def send(self, args: list[bytes]) -> None:
        """Send a request. Raises ``ServerConnectionLost``."""
        try:
            self.socket.sendall(encode(args))
        except OSError as error:
            raise ServerConnectionLost(error.strerror or str(error)) from error

    def read(self) -> Reply:
        """Wait for the next reply. Raises ``ServerConnectionLost``, also for bytes that are not a
        reply."""
        try:
            reply = read_reply(self._stream)
            self._silent = False
            return reply
        except EOFError:
            hint = _NO_WORD if self._silent else ""
            raise ServerConnectionLost("Server closed the connection", hint) from None
        except TimeoutError as error:
            raise ServerConnectionLost("no reply within --timeout") from error
        except (OSError, PeerError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ServerConnectionLost(explained(why)) from error

    def close(self) -> None:
        """Close it; may be called again."""
        self._stream.close()
        self.socket.close()

"""A connection to one node on which many requests are on their way at once.

The blocking client waits for each reply, which is right for programs that must know what became
of a job before they go on. Here thousands of jobs are handled alike.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar, cast

import hiredis

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.client.errors import (
    BrokenReply,
    ClientError,
    ConnectionLost,
    Refused,
    printable,
    refusal,
)
from disque_tx.client.options import TLS, ConnectionOptions
from disque_tx.client.replies import MalformedReply
from disque_tx.client.requests import Request

_T = TypeVar("_T")
_READ_BYTES: Final = 1 << 18
#: On their way at once: enough to keep the node busy, and little beside its buffers.
_REQUESTS_MAX: Final = 500
_REQUEST_BYTES_MAX: Final = 1 << 20
_NOTHING: Final = object()


class _ErrorReply(Exception):
    """A line that began with a dash."""


class Pipe:
    """An open connection to the node at ``address``.

    :raises ConnectionLost: when it cannot be opened.
    :raises AuthenticationRefused: when the node wants another password.
    """

    def __init__(self, address: Address, options: ConnectionOptions) -> None:
        self.address = address
        self._timeout_s = options.timeout_s
        self._reader = hiredis.Reader(replyError=_ErrorReply, notEnoughData=_NOTHING)
        try:
            self._socket = _connected(address, options)
        except (OSError, ValueError) as error:
            raise self._lost(error, sent=False) from error
        if options.password is not None:
            self._log_in(options.password)

    def _log_in(self, password: str) -> None:
        try:
            self.call(requests.auth(password))
        except ClientError:
            self.close()
            raise

    def call(self, request: Request[_T]) -> _T:
        """Send a request and read its reply.

        :raises Refused: the error reply.
        :raises ConnectionLost: no connection any more, or no reply in time.
        :raises BrokenReply: a reply that cannot be one.
        """
        for answer in self.calls([request]):
            if isinstance(answer, Refused):
                raise answer
            return answer
        raise AssertionError("a request without a reply")

    def calls(self, several: Sequence[Request[_T]]) -> Iterator[_T | Refused]:
        """The replies to many requests, in order; an error reply is handed out as what it is.

        :raises ConnectionLost, BrokenReply: as for one.
        """
        for portion in _portions(several):
            self._send(b"".join(words for _, words in portion))
            for request, _ in portion:
                answer: _T | Refused = self._answer(request)
                yield answer

    def close(self) -> None:
        """Hang up; may be called again."""
        self._socket.close()

    def _send(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(data)
        except OSError as error:
            self.close()
            raise self._lost(error, sent=True) from error

    def _answer(self, request: Request[_T]) -> _T | Refused:
        wait_s = None if request.wait_s is None else request.wait_s + self._timeout_s
        try:
            reply = self._reply(wait_s)
            if isinstance(reply, _ErrorReply):
                return refusal(request.name, str(self.address), str(reply))
            return request.parse(reply)
        except OSError as error:
            self.close()
            raise self._lost(error, sent=True) from error
        except (hiredis.HiredisError, MalformedReply) as error:
            self.close()
            raise BrokenReply(request.name, str(self.address), printable(str(error))) from error

    def _reply(self, wait_s: float | None) -> Any:
        reply = self._reader.gets()
        while reply is _NOTHING:
            self._socket.settimeout(wait_s)
            data = self._socket.recv(_READ_BYTES)
            if not data:
                raise ConnectionResetError("the node closed the connection")
            self._reader.feed(data)
            reply = self._reader.gets()
        return reply

    def _lost(self, error: Exception, sent: bool) -> ConnectionLost:
        reason = printable(str(error)).rstrip(".") or type(error).__name__
        return ConnectionLost(str(self.address), reason, sent)


def _portions(several: Sequence[Request[_T]]) -> Iterator[list[tuple[Request[_T], bytes]]]:
    """Requests with their bytes, as many as may be on their way at once."""
    portion: list[tuple[Request[_T], bytes]] = []
    size = 0
    for request in several:
        words: bytes = hiredis.pack_command(cast(Any, request.words))
        if portion and (len(portion) >= _REQUESTS_MAX or size + len(words) > _REQUEST_BYTES_MAX):
            yield portion
            portion, size = [], 0
        portion.append((request, words))
        size += len(words)
    if portion:
        yield portion


def _connected(address: Address, options: ConnectionOptions) -> socket.socket:
    sock = socket.create_connection((address.host, address.port), options.timeout_s)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return sock if options.tls is None else _encrypted(sock, address.host, options.tls)
    except BaseException:
        sock.close()
        raise


def _encrypted(sock: socket.socket, host: str, tls: TLS) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=tls.ca_file)
    context.check_hostname = tls.verify and tls.check_hostname
    if not tls.verify:
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate_file is not None:
        context.load_cert_chain(tls.certificate_file, tls.key_file)
    return context.wrap_socket(sock, server_hostname=host)

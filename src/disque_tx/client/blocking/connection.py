"""One connection to one node, built on a connection of redis-py.

redis-py frames requests, parses replies, speaks TLS and sets TCP keepalive. What it does for Redis
servers is turned off: error replies keep their codes, only our own requests are sent, and RESP2 is
the default, because the original daemon knows no other version.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.connection import (
    AbstractConnection,
    Connection,
    DefaultParser,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.retry import Retry

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.waiting import steps
from disque_tx.client.errors import (
    AuthenticationRefused,
    BrokenReply,
    ConnectionLost,
    printable,
    refusal,
)
from disque_tx.client.options import TLS, ConnectionOptions
from disque_tx.client.requests.encoding import Request
from disque_tx.client.requests.replies import MalformedReply

_T = TypeVar("_T")
#: A parser that maps no error code to an exception of its own, and so keeps the whole line.
_PARSER: Final = type("WholeLines", (DefaultParser,), {"EXCEPTION_CLASSES": {}})
#: Arguments that stop redis-py, whatever its version, from sending CLIENT SETINFO.
_NO_INTRODUCTION: Final[dict[str, Any]] = (
    {"driver_info": None}
    if "driver_info" in inspect.signature(AbstractConnection).parameters
    else {"lib_name": None, "lib_version": None}
)
#: Redis-py's own exceptions for a connection that is of no use any more.
_CONNECTION_LOST: Final = (redis.ConnectionError, redis.TimeoutError, OSError)


class NodeConnection:
    """An open connection to the node at ``address``; one request at a time.

    :raises ConnectionLost: when it cannot be opened.
    :raises AuthenticationRefused: when the node wants another password.
    """

    def __init__(self, address: Address, options: ConnectionOptions) -> None:
        self.address = address
        self.timeout_s = options.timeout_s
        self._connection = _new_connection(address, options)
        try:
            self._connection.connect()
        except redis.ResponseError as error:
            refused = refusal("AUTH", str(address), str(error))
            if isinstance(refused, AuthenticationRefused):
                raise refused from None
            raise self._lost(error, sent=False) from error
        except (redis.RedisError, OSError, UnicodeError) as error:
            # UnicodeError: a host name that cannot be encoded.
            raise self._lost(error, sent=False) from error

    def call(self, request: Request[_T]) -> _T:
        """Send a request and read its reply.

        :raises Refused: the reply was an error.
        :raises ConnectionLost: the connection ended, or no reply came in time.
        :raises BrokenReply: the reply was malformed; the connection is closed.
        """
        connection = self._connection
        try:
            connection.send_command(*request.words)
            if request.wait_s != 0.0:
                self._wait(None if request.wait_s is None else request.wait_s + self.timeout_s)
            return request.parse(connection.read_response())
        except redis.ResponseError as error:
            raise refusal(request.name, str(self.address), str(error)) from None
        except (redis.InvalidResponse, MalformedReply) as error:
            self.close()
            raise BrokenReply(request.name, str(self.address), printable(str(error))) from error
        except _CONNECTION_LOST as error:
            self.close()
            raise self._lost(error, sent=True) from error

    def call_all(self, requests: Sequence[Request[_T]]) -> list[_T]:
        """Send requests that do not wait, all at once, and read all replies.

        :raises Refused: the first error reply.
        :raises ConnectionLost, BrokenReply: see :meth:`call`.
        """
        connection = self._connection
        name = requests[0].name
        try:
            connection.send_packed_command(
                connection.pack_commands([request.words for request in requests])
            )
            replies = [_answer(connection) for _ in requests]
            for reply in replies:
                if isinstance(reply, redis.ResponseError):
                    raise refusal(name, str(self.address), str(reply))
            return [request.parse(reply) for request, reply in zip(requests, replies, strict=True)]
        except (redis.InvalidResponse, MalformedReply) as error:
            self.close()
            raise BrokenReply(name, str(self.address), printable(str(error))) from error
        except _CONNECTION_LOST as error:
            self.close()
            raise self._lost(error, sent=True) from error

    def _wait(self, timeout_s: float | None) -> None:
        try:
            arrived = any(map(self._connection.can_read, steps(timeout_s)))
        except BaseException:
            # Interrupted: a GETJOB that goes on waiting would get a job that nobody reads.
            self.close()
            raise
        if not arrived:
            raise redis.TimeoutError(f"no reply in {timeout_s:.1f} s")

    def _lost(self, error: Exception, sent: bool) -> ConnectionLost:
        reason = printable(str(error)).rstrip(".") or type(error).__name__
        return ConnectionLost(str(self.address), reason, sent)

    def is_reusable(self) -> bool:
        """Whether the node has neither closed the connection nor sent unexpected bytes on it."""
        try:
            return not self._connection.can_read(0)
        except _CONNECTION_LOST:
            return False

    def close(self) -> None:
        """Close the connection; may be called again."""
        self._connection.disconnect()


def _answer(connection: Any) -> Any:
    """The next reply. An error reply is returned, not raised, because others follow it."""
    try:
        return connection.read_response()
    except redis.ResponseError as error:
        return error


def _new_connection(address: Address, options: ConnectionOptions) -> Any:
    """redis-py's connection, not yet connected."""
    kind: Any = SSLConnection if options.tls is not None else Connection
    target: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "socket_connect_timeout": options.timeout_s,
        "socket_keepalive": True,
    }
    if address.path is not None:
        kind, target = UnixDomainSocketConnection, {"path": address.path}
    encryption = _encryption(options.tls) if options.tls is not None else {}
    return kind(
        password=options.password,
        protocol=options.protocol,
        socket_timeout=options.timeout_s,
        parser_class=_PARSER,
        retry=Retry(NoBackoff(), 0),
        **_NO_INTRODUCTION,
        **target,
        **encryption,
    )


def _encryption(tls: TLS) -> dict[str, Any]:
    """TLS options as arguments of redis-py's connection."""
    return {
        "ssl_ca_certs": tls.ca_file,
        "ssl_certfile": tls.certificate_file,
        "ssl_keyfile": tls.key_file,
        "ssl_cert_reqs": "required" if tls.verify else "none",
        "ssl_check_hostname": tls.verify and tls.check_hostname,
    }

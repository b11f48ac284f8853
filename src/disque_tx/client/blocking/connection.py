"""One connection to one node, on redis-py's.

redis-py frames requests, parses replies, speaks TLS and keeps sockets alive. What it knows about
Redis servers is left out: no error reply is renamed, nothing is sent but what is asked for, and
RESP2 is spoken unless chosen otherwise, because the original daemon knows nothing else.
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
from disque_tx.client.errors import (
    AuthenticationRefused,
    BrokenReply,
    ConnectionLost,
    refusal,
    shown,
)
from disque_tx.client.options import TLS, ConnectionOptions
from disque_tx.client.replies import Misshapen
from disque_tx.client.requests import Request

_T = TypeVar("_T")
#: Replies keep their codes: a parser that knows no code hands on the whole line.
_PARSER: Final = type("WholeLines", (DefaultParser,), {"EXCEPTION_CLASSES": {}})
#: How the versions of redis-py are told not to introduce themselves.
_SILENT: Final[dict[str, Any]] = (
    {"driver_info": None}
    if "driver_info" in inspect.signature(AbstractConnection).parameters
    else {"lib_name": None, "lib_version": None}
)
#: Redis-py's own exceptions for a connection that is of no use any more.
_LOST: Final = (redis.ConnectionError, redis.TimeoutError, OSError)


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
            said = refusal("AUTH", str(address), str(error))
            if isinstance(said, AuthenticationRefused):
                raise said from None
            raise self._lost(error, sent=False) from error
        except (redis.RedisError, OSError, UnicodeError) as error:
            # A name that cannot be encoded is no name.
            raise self._lost(error, sent=False) from error

    def call(self, request: Request[_T]) -> _T:
        """Send a request and read its reply.

        :raises Refused: the error reply.
        :raises ConnectionLost: no connection any more, or no reply in time.
        :raises BrokenReply: a reply that cannot be one; the connection is closed.
        """
        connection = self._connection
        try:
            connection.send_command(*request.words)
            if request.wait_s != 0.0:
                self._wait(None if request.wait_s is None else request.wait_s + self.timeout_s)
            return request.shape(connection.read_response())
        except redis.ResponseError as error:
            raise refusal(request.name, str(self.address), str(error)) from None
        except (redis.InvalidResponse, Misshapen) as error:
            self.close()
            raise BrokenReply(request.name, str(self.address), shown(str(error))) from error
        except _LOST as error:
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
            return [request.shape(reply) for request, reply in zip(requests, replies, strict=True)]
        except (redis.InvalidResponse, Misshapen) as error:
            self.close()
            raise BrokenReply(name, str(self.address), shown(str(error))) from error
        except _LOST as error:
            self.close()
            raise self._lost(error, sent=True) from error

    def _wait(self, timeout_s: float | None) -> None:
        if not self._connection.can_read(timeout_s):
            raise redis.TimeoutError(f"no reply in {timeout_s:.1f} s")

    def _lost(self, error: Exception, sent: bool) -> ConnectionLost:
        reason = shown(str(error)).rstrip(".") or type(error).__name__
        return ConnectionLost(str(self.address), reason, sent)

    def is_quiet(self) -> bool:
        """Whether it is as it was left: neither closed by the node nor with unasked bytes."""
        try:
            return not self._connection.can_read(0)
        except _LOST:
            return False

    def close(self) -> None:
        """Hang up; may be called again."""
        self._connection.disconnect()


def _answer(connection: Any) -> Any:
    """The next reply; an error too is one, and others follow it."""
    try:
        return connection.read_response()
    except redis.ResponseError as error:
        return error


def _new_connection(address: Address, options: ConnectionOptions) -> Any:
    """redis-py's connection, not yet connected."""
    kind: Any = SSLConnection if options.tls is not None else Connection
    place: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "socket_connect_timeout": options.timeout_s,
        "socket_keepalive": True,
    }
    if address.path is not None:
        kind, place = UnixDomainSocketConnection, {"path": address.path}
    encryption = _encryption(options.tls) if options.tls is not None else {}
    return kind(
        password=options.password,
        protocol=options.protocol,
        socket_timeout=options.timeout_s,
        parser_class=_PARSER,
        retry=Retry(NoBackoff(), 0),
        **_SILENT,
        **place,
        **encryption,
    )


def _encryption(tls: TLS) -> dict[str, Any]:
    """As arguments of redis-py's connection."""
    return {
        "ssl_ca_certs": tls.ca_file,
        "ssl_certfile": tls.certificate_file,
        "ssl_keyfile": tls.key_file,
        "ssl_cert_reqs": "required" if tls.verify else "none",
        "ssl_check_hostname": tls.verify and tls.check_hostname,
    }

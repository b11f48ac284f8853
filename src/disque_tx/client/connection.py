"""One connection to one node, on redis-py's.

redis-py frames requests, parses replies, speaks TLS and keeps sockets alive. What it knows about
Redis servers is left out: no error reply is renamed, nothing is sent but what is asked for, and
RESP2 is spoken unless chosen otherwise, because the original daemon knows nothing else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, TypeVar

import attrs
import redis
from redis.backoff import NoBackoff
from redis.connection import AbstractConnection, Connection, DefaultParser, SSLConnection
from redis.retry import Retry

from disque_tx.client.addresses import Address
from disque_tx.client.errors import (
    AuthenticationRefused,
    BrokenReply,
    ConnectionLost,
    refusal,
    shown,
)
from disque_tx.client.replies import Misshapen

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


@attrs.frozen
class TLS:
    """How connections are encrypted.

    ``ca_file``: PEM certificates that are trusted, by default those of the system.
    ``certificate_file``, ``key_file``: PEM, who the client is. ``verify``: whether the node must
    have a certificate that is trusted; ``check_hostname``: and that names its host.
    """

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    check_hostname: bool = True

    def words(self) -> dict[str, Any]:
        """As arguments of redis-py's connection."""
        return {
            "ssl_ca_certs": self.ca_file,
            "ssl_certfile": self.certificate_file,
            "ssl_keyfile": self.key_file,
            "ssl_cert_reqs": "required" if self.verify else "none",
            "ssl_check_hostname": self.verify and self.check_hostname,
        }


@attrs.frozen
class Options:
    """What all connections of a client have in common.

    ``timeout_s``: for connecting, and for a reply beyond what the request itself may wait.
    ``protocol``: of RESP, 2 or 3.
    """

    password: str | None = attrs.field(default=None, repr=False)
    tls: TLS | None = None
    timeout_s: float = 5.0
    protocol: int = 2


class NodeConnection:
    """An open connection to the node at ``address``; one request at a time.

    :raises ConnectionLost: when it cannot be opened.
    :raises AuthenticationRefused: when the node wants another password.
    """

    def __init__(self, address: Address, options: Options) -> None:
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

    def call(
        self, words: tuple[Any, ...], shape: Callable[[Any], _T], wait_s: float | None = 0.0
    ) -> _T:
        """Send a request and read its reply.

        ``words``: bytes, text and numbers. ``shape``: makes a value of the reply, or raises
        :class:`Misshapen`. ``wait_s``: how long the node may block, ``None`` for ever.

        :raises Refused: the error reply.
        :raises ConnectionLost: no connection any more, or no reply in time.
        :raises BrokenReply: a reply that cannot be one; the connection is closed.
        """
        connection = self._connection
        try:
            connection.send_command(*words)
            if wait_s != 0.0:
                self._wait(None if wait_s is None else wait_s + self.timeout_s)
            return shape(connection.read_response())
        except redis.ResponseError as error:
            raise refusal(str(words[0]), str(self.address), str(error)) from None
        except (redis.InvalidResponse, Misshapen) as error:
            self.close()
            raise BrokenReply(str(words[0]), str(self.address), shown(str(error))) from error
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


def _new_connection(address: Address, options: Options) -> Any:
    """redis-py's connection, not yet connected."""
    kind: Any = SSLConnection if options.tls is not None else Connection
    encryption = options.tls.words() if options.tls is not None else {}
    return kind(
        host=address.host,
        port=address.port,
        password=options.password,
        protocol=options.protocol,
        socket_timeout=options.timeout_s,
        socket_connect_timeout=options.timeout_s,
        socket_keepalive=True,
        parser_class=_PARSER,
        retry=Retry(NoBackoff(), 0),
        **_SILENT,
        **encryption,
    )

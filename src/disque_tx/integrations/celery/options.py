"""What a broker URL and ``broker_transport_options`` say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import attrs

from disque_tx.client.addresses import Seeds, seeds
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import BadAddress
from disque_tx.client.options import TLS
from disque_tx.integrations.adding import PRIORITY_MAX, whole_number
from disque_tx.messages.limits import REPLICATE_RANGE, SECONDS_MAX

_PLAIN: Final = "disque://"
_ENCRYPTED: Final = "disques://"
_LOOKUPS: Final = ("dns://", "srv://")
#: Options that kombu itself, or Celery, looks at.
_OTHERS: Final = frozenset(
    ("body_encoding", "deadletter_queue", "polling_interval", "max_retries", "errback")
    + ("interval_start", "interval_step", "interval_max", "connect_retries_timeout", "client_name")
    + ("confirm_publish", "callback", "global_keyprefix", "socket_timeout", "credential_provider")
)


class BadBrokerOption(ValueError):
    """An option of the transport cannot be used as it is."""


@attrs.frozen
class BrokerOptions:
    """``seeds``, ``tls``, ``timeout_s``: of the connections. ``retry_s``: how long a worker may be
    gone until its messages are delivered to others. ``ttl_s``: how long a message may wait and be
    worked on, beyond its delay. ``replicate``: how many nodes hold a copy; ``None``: the nodes'
    default. ``prefetch``: most messages fetched at a time where a consumer sets no limit.
    ``prefix``: of all names of queues. ``priorities``: for which priorities, 0 to 9, there is a
    queue of their own; others share that of the next lower one.
    """

    seeds: Seeds
    tls: TLS | None
    timeout_s: float
    retry_s: int
    ttl_s: int
    replicate: int | None
    prefetch: int
    prefix: str
    priorities: tuple[int, ...]

    def client(self) -> Disque:
        """A client of the cluster, not connected yet. The client looks for a node for as long as a
        connection may take; whether to try again later is for kombu to decide."""
        return Disque(
            [str(address) for address in self.seeds.addresses],
            self.seeds.password,
            tls=self.tls or False,
            timeout_s=self.timeout_s,
            patience_s=self.timeout_s,
        )


def broker_options(
    url: str, options: Mapping[str, Any], ssl: Any = None, timeout_s: float | None = None
) -> BrokerOptions:
    """Options of one connection; ``ssl``: kombu's ``ssl`` argument, Celery's ``broker_use_ssl``.

    :raises BadAddress: for a URL that names no nodes.
    :raises BadBrokerOption: for an option that is unknown, or out of its range.
    """
    known = ("retry", "ttl", "replicate", "prefetch", "queue_name_prefix", "priority_steps")
    for name in options:
        if name not in known and name not in _OTHERS:
            raise BadBrokerOption(
                f"The transport has no option {name!r}. It has {', '.join(known)}."
            )
    found, encrypted = _seeds(url)
    replicate = options.get("replicate")
    return BrokerOptions(
        seeds=found,
        tls=_tls(encrypted, ssl),
        timeout_s=5.0 if not timeout_s else float(timeout_s),
        retry_s=_number(options, "retry", 60, 1, SECONDS_MAX),
        ttl_s=_number(options, "ttl", 10 * 86_400, 1, SECONDS_MAX),
        replicate=None if replicate is None else _number(options, "replicate", 1, *REPLICATE_RANGE),
        prefetch=_number(options, "prefetch", 100, 1, 10_000),
        prefix=_prefix(options.get("queue_name_prefix", "")),
        priorities=_priorities(options.get("priority_steps", range(PRIORITY_MAX + 1))),
    )


def connection_url(connection: Any) -> str:
    """The URL that a connection of kombu uses now. The first of several URLs is passed to the
    transport as it is; after a failure, kombu takes the next one apart, and passes its parts.

    :raises BadAddress: for several URLs one of which names more than one node, or a socket file.
    """
    if len(connection.alt) > 1 and any("," in url or "unix:" in url for url in connection.alt):
        raise BadAddress(
            "Where a broker has several URLs, each names one host. The nodes of a cluster belong"
            " into one URL, separated by commas: disque://node1:7711,node2:7711."
        )
    host = connection.hostname or ""
    if not host or "://" in host:
        return host or _PLAIN
    scheme = _ENCRYPTED if _ENCRYPTED.startswith(f"{connection.transport_cls}:") else _PLAIN
    credentials = ""
    if connection.userid or connection.password:
        user, password = quote(connection.userid or ""), quote(connection.password or "", safe="")
        credentials = f"{user}:{password}@"
    port = f":{connection.port}" if connection.port else ""
    return f"{scheme}{credentials}{f'[{host}]' if ':' in host else host}{port}"


def without_password(url: str, mask: str = "**") -> str:
    """The URL as it may be shown."""
    scheme, _, rest = url.partition("://")
    credentials, at, hosts = rest.rpartition("@")
    return f"{scheme}://:{mask}@{hosts}" if at and credentials else url


def _seeds(url: str) -> tuple[Seeds, bool]:
    # kombu takes what stands before the plus sign for the transport.
    lookup = url.removeprefix("disque+")
    if lookup.startswith(_LOOKUPS):
        return seeds(f"disque+{lookup.rstrip('/')}"), False
    for scheme in (_PLAIN, _ENCRYPTED):
        if url.startswith(scheme):
            rest = url.removeprefix(scheme).rstrip("/") or "127.0.0.1"
            return seeds(_PLAIN + rest), scheme == _ENCRYPTED
    raise BadAddress(
        f"A broker URL begins with {_PLAIN} or {_ENCRYPTED}, such as {_PLAIN}127.0.0.1:7711."
    )


def _tls(encrypted: bool, ssl: Any) -> TLS | None:
    if not encrypted and not ssl:
        return None
    if not isinstance(ssl, Mapping):
        return TLS()
    verify = str(getattr(ssl.get("cert_reqs"), "name", ssl.get("cert_reqs"))).upper()
    return TLS(
        ca_file=ssl.get("ca_certs"),
        certificate_file=ssl.get("certfile"),
        key_file=ssl.get("keyfile"),
        verify=verify not in ("CERT_NONE", "NONE", "0") or ssl.get("cert_reqs") is None,
        check_hostname=bool(ssl.get("check_hostname", True)),
    )


def _number(options: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    what = f"The option {name!r} of the transport"
    try:
        return whole_number(what, options.get(name, default), least, most)
    except ValueError as error:
        raise BadBrokerOption(str(error)) from None


def _prefix(value: Any) -> str:
    if not isinstance(value, str):
        raise BadBrokerOption(
            f"The option 'queue_name_prefix' of the transport is text, not {value!r}."
        )
    return value


def _priorities(value: Any) -> tuple[int, ...]:
    try:
        steps = tuple(sorted({int(step) for step in value}))
    except (TypeError, ValueError):
        steps = ()
    if not steps or steps[0] != 0 or steps[-1] > PRIORITY_MAX:
        raise BadBrokerOption(
            "The option 'priority_steps' of the transport is a list of numbers from 0 to"
            f" {PRIORITY_MAX} that has 0, not {value!r}."
        )
    return steps

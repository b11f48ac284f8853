"""Celery's results on Disque: ``result_backend = "disque://node1:7711,node2:7711"``.

A result is a job that nobody fetches, so it can be read as often as one likes for
``result_expires``, by every process. Readers poll. See :mod:`disque_tx.integrations.results`.
"""

from __future__ import annotations

from typing import Any, Final

from celery.backends.base import KeyValueStoreBackend
from celery.exceptions import ImproperlyConfigured
from kombu.utils.encoding import bytes_to_str, ensure_bytes

from disque_tx.client.errors import BadAddress, CannotConnect, ConnectionLost, OutcomeUnknown
from disque_tx.integrations.celery.options import (
    BadBrokerOption,
    BrokerOptions,
    broker_options,
    without_password,
)
from disque_tx.integrations.results import Results

_OPTIONS: Final = ("replicate", "queue_name_prefix")
#: How long a result is kept that has no end: the TTL of a job ends before the year 2106.
_LONGEST_S: Final = 10 * 365 * 86_400
#: Options that Celery itself looks at.
_OTHERS: Final = ("global_keyprefix", "retry_policy")


class DisqueBackend(KeyValueStoreBackend):
    """See :class:`celery.backends.base.KeyValueStoreBackend`, whose names these are.

    ``result_backend_transport_options`` may have ``replicate``, how many nodes hold a copy, and
    ``queue_name_prefix``. TLS: ``disques://``.

    :raises ImproperlyConfigured: for a URL or an option that cannot be used.
    """

    supports_autoexpire = True
    persistent = True

    def __init__(
        self, app: Any = None, url: str | None = None, expires: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(app, url=url, expires_type=int, **kwargs)
        self.expires = self.prepare_expires(expires, type=int)
        options = _options(url or "disque://", self.app.conf)
        self._results = Results(options.client(), options.prefix, options.replicate)

    def __reduce__(self, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        return super().__reduce__(args, {**(kwargs or {}), "url": self.url})

    def as_uri(self, include_password: bool = False) -> str:
        url = self.url or "disque://"
        return url if include_password else without_password(url)

    def exception_safe_to_retry(self, exc: BaseException) -> bool:
        return isinstance(exc, CannotConnect | ConnectionLost | OutcomeUnknown)

    def get(self, key: str | bytes) -> bytes | None:
        return self._results.get(bytes_to_str(key))

    def mget(self, keys: Any) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def set(self, key: str | bytes, value: str | bytes) -> None:
        ttl_s = min(self.expires or _LONGEST_S, _LONGEST_S)
        self._results.put(bytes_to_str(key), ensure_bytes(value), ttl_s)

    def delete(self, key: str | bytes) -> None:
        self._results.delete(bytes_to_str(key))


def _options(url: str, conf: Any) -> BrokerOptions:
    given = dict(conf.get("result_backend_transport_options") or {})
    for name in given:
        if name not in _OPTIONS + _OTHERS:
            raise ImproperlyConfigured(
                f"The results have no transport option {name!r}. They have {', '.join(_OPTIONS)}."
            )
    used = {name: given[name] for name in _OPTIONS if name in given}
    try:
        return broker_options(url, used, conf.get("broker_use_ssl"))
    except (BadAddress, BadBrokerOption) as error:
        raise ImproperlyConfigured(f"result_backend: {error}") from error

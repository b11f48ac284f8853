"""``OPTIONS`` of a backend in the setting ``TASKS``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from disque_tx.client.addresses import seeds
from disque_tx.client.options import TLS
from disque_tx.integrations.adding import PRIORITY_MARK, JobTerms, whole_number
from disque_tx.messages.limits import TTL_RANGE

#: A priority of Django is from -100 to 100; so many of them share a queue.
_PRIORITIES_PER_STEP: Final = 20
_DEFAULT_STEP: Final = 4
_STEP_MAX: Final = 9
_RETRIES_MAX: Final = 10_000


@attrs.frozen
class BackendOptions:
    """``nodes``, ``password``, ``tls``: of the cluster. ``terms``: how jobs are added.
    ``result_ttl_s``: how long results are kept. ``retries``: how often a task that fails is tried
    again. ``prefix``: of the queues. ``on_commit``: tasks are sent when the transaction ends."""

    nodes: tuple[str, ...]
    password: str | None
    tls: bool | TLS
    terms: JobTerms
    result_ttl_s: int
    retries: int
    prefix: str
    on_commit: bool

    def queue(self, name: str, priority: int) -> str:
        """The queue of Disque for a task."""
        # 1 to 20 are one step above the default, -1 to -20 one below.
        steps = -(-abs(priority) // _PRIORITIES_PER_STEP)
        step = _DEFAULT_STEP + (steps if priority > 0 else -steps)
        return self._named(name, max(0, min(_STEP_MAX, step)))

    def queues(self, name: str) -> list[str]:
        """The queues of Disque for a queue of Django, the most urgent first."""
        return [self._named(name, step) for step in range(_STEP_MAX, -1, -1)]

    def _named(self, name: str, step: int) -> str:
        plain = self.prefix + name
        return plain if step == _DEFAULT_STEP else f"{plain}{PRIORITY_MARK}{step}"


def backend_options(options: Mapping[str, Any]) -> BackendOptions:
    """Check and convert the options.

    :raises ValueError: for one that is unknown or cannot be used, with its name.
    """
    known = {
        *("nodes", "password", "tls", "retry_s", "ttl_s", "replicate"),
        *("result_ttl_s", "retries", "prefix", "enqueue_on_commit"),
    }
    for name in options:
        if name not in known:
            raise ValueError(f"There is no option {name!r}; there are {', '.join(sorted(known))}.")
    nodes = options.get("nodes", ["127.0.0.1:7711"])
    addresses = (nodes,) if isinstance(nodes, str) else tuple(nodes)
    seeds(nodes)
    tls = options.get("tls", False)
    if not isinstance(tls, bool | TLS):
        raise ValueError(f"tls is True, False or a disque_tx.client.TLS, not {tls!r}.")
    result_ttl_s = whole_number("result_ttl_s", options.get("result_ttl_s", 86_400), *TTL_RANGE)
    return BackendOptions(
        nodes=addresses,
        password=options.get("password"),
        tls=tls,
        terms=JobTerms(
            options.get("retry_s", 60), options.get("ttl_s", 10 * 86_400), options.get("replicate")
        ),
        result_ttl_s=result_ttl_s,
        retries=whole_number("retries", options.get("retries", 0), 0, _RETRIES_MAX),
        prefix=str(options.get("prefix", "django:")),
        on_commit=bool(options.get("enqueue_on_commit", False)),
    )

"""Messages of kombu as jobs: names of queues, bodies, and the options of ADDJOB."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kombu.utils.json import dumps, loads

from disque_tx.client.options import AddOptions
from disque_tx.integrations.adding import PRIORITY_MARK, PRIORITY_MAX, priority_name
from disque_tx.integrations.celery.options import BrokerOptions
from disque_tx.messages.limits import SECONDS_MAX


class DamagedMessage(ValueError):
    """The body of a job is not a message of kombu."""


def queue_names(queue: str, options: BrokerOptions) -> list[str]:
    """The queues of Disque in which the messages of a queue are, the most urgent first."""
    return [priority_name(options.prefix + queue, step) for step in reversed(options.priorities)]


def home(queue: str, message: Mapping[str, Any], options: BrokerOptions) -> str:
    """The queue of Disque for this message, by its priority: 9 is the most urgent."""
    try:
        priority = min(max(int(message["properties"]["priority"]), 0), PRIORITY_MAX)
    except (KeyError, TypeError, ValueError):
        priority = 0
    step = max(step for step in options.priorities if step <= priority)
    return priority_name(options.prefix + queue, step)


def original(name: str, options: BrokerOptions) -> str:
    """The queue of kombu whose messages are in this queue of Disque."""
    return name.removeprefix(options.prefix).partition(PRIORITY_MARK)[0]


def encoded(message: Mapping[str, Any]) -> bytes:
    """The body of the job."""
    text: str = dumps(message)
    return text.encode()


def decoded(body: bytes) -> dict[str, Any]:
    """The message in this body.

    :raises DamagedMessage: there is none.
    """
    try:
        message = loads(body.decode())
        properties = message["properties"]
        if not isinstance(message["body"], str) or not isinstance(message["headers"], dict):
            raise TypeError("its body or headers have another type")
        properties["delivery_info"]["exchange"], properties["delivery_tag"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedMessage(f"This is no message of kombu: {error!r}.") from None
    found: dict[str, Any] = message
    return found


def add_options(
    message: Mapping[str, Any],
    options: BrokerOptions,
    message_ttl_s: int | None = None,
    now: datetime | None = None,
) -> AddOptions:
    """How the job is added. A task with an ETA or a countdown waits in the nodes, as a delay. A
    task that expires is kept by them: a worker that finds it too old gives it the state REVOKED, so
    that nobody waits for its result forever.

    ``message_ttl_s``: of its queue.
    """
    headers = message.get("headers") or {}
    delay_s = _delay_s(headers, now or datetime.now(UTC))
    lives_s = [options.ttl_s]
    if message_ttl_s is not None:
        lives_s.append(message_ttl_s)
    expiration = (message.get("properties") or {}).get("expiration")
    if expiration is not None and not headers.get("expires"):
        lives_s.append(max(1, -(-int(float(expiration)) // 1000)))
    ttl_s = min(SECONDS_MAX, delay_s + max(1, min(lives_s)))
    return AddOptions(
        replicate=options.replicate,
        delay_s=min(delay_s, ttl_s - 1) or None,
        retry_s=options.retry_s,
        ttl_s=ttl_s,
    )


def _delay_s(headers: Mapping[str, Any], now: datetime) -> int:
    """Whole seconds until the task's ETA, rounded down: a worker waits for the rest."""
    eta = headers.get("eta")
    if not isinstance(eta, str):
        return 0
    try:
        at = datetime.fromisoformat(eta)
    except ValueError:
        return 0  # what is not understood here is left to the worker
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0, int((at - now).total_seconds()))

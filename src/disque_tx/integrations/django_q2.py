"""Django-Q2 on Disque: the broker that Django-Q had, and its settings.

    Q_CLUSTER = {
        "broker_class": "disque_tx.integrations.django_q2.DisqueBroker",
        "disque_nodes": ["node1:7711", "node2:7711"],
        "retry": 300,
    }

``disque_auth``: the password. ``disque_fastack``: acknowledge with FASTACK. ``disque_replicate``:
how many nodes hold a copy. ``retry``, as with all brokers of Django-Q2: seconds until a task that
was not acknowledged is delivered again; longer than any task takes. See
docs/how-to/use-dramatiq-taskiq-django-q2.md.
"""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured
from django_q.brokers import Broker
from django_q.conf import Conf

from disque_tx.client import BadAddress
from disque_tx.client.blocking import Disque
from disque_tx.client.requests import encoding as requests
from disque_tx.integrations.adding import JobTerms
from disque_tx.integrations.cluster import ask_all

_WAIT_S: Final = 1.0
_FLUSHED_AT_ONCE: Final = 500
_TTL_S: Final = 10 * 86_400


class DisqueBroker(Broker):
    """See Django-Q2's ``Broker``, whose names these are."""

    connection: Disque

    def enqueue(self, task: Any) -> str:
        return self.connection.add_job_with(self.list_key, task, _terms().options())

    def dequeue(self) -> list[tuple[str, str]] | None:
        jobs = self.connection.take(self.list_key, count=Conf.BULK, timeout_s=_WAIT_S)
        return [(job.id, job.data.decode("utf-8", "replace")) for job in jobs] or None

    def queue_size(self) -> int:
        return sum(ask_all(self.connection, requests.queue_length(self.list_key)))

    def lock_size(self) -> int:
        """How many tasks were delivered and are not acknowledged, at the current node."""
        jobs = self.connection.job_scan(self.list_key, ("active",))
        return sum(1 for _ in jobs)

    def delete_queue(self) -> int:
        return self.purge_queue()

    def purge_queue(self) -> int:
        count = 0
        while jobs := self.connection.take(self.list_key, count=_FLUSHED_AT_ONCE, no_hang=True):
            count += self.connection.ack_jobs(*[job.id for job in jobs])
        return count

    def delete(self, task_id: str) -> bool:
        return self.connection.fast_ack(task_id) > 0

    def acknowledge(self, task_id: str) -> bool:
        if _setting("disque_fastack", False):
            return self.connection.fast_ack(task_id) > 0
        return self.connection.ack_jobs(task_id) > 0

    def fail(self, task_id: str) -> bool:
        """A task that is damaged, or signed with another key: another delivery would not help."""
        return self.delete(task_id)

    def ping(self) -> bool:
        return self.connection.ping() == "PONG"

    def info(self) -> str:
        return f"Disque {self.connection.info('server').get('disque_version', '')}"

    @staticmethod
    def get_connection(list_key: str | None = None) -> Disque:
        nodes = _setting("disque_nodes", ["127.0.0.1:7711"])
        _terms()
        try:
            return Disque(nodes, _setting("disque_auth", None))
        except BadAddress as error:
            raise ImproperlyConfigured(f"Q_CLUSTER['disque_nodes']: {error}") from error


def _setting(name: str, default: Any) -> Any:
    value = Conf.conf.get(name)
    return default if value is None else value


def _terms() -> JobTerms:
    try:
        return JobTerms(int(Conf.RETRY), _TTL_S, _setting("disque_replicate", None))
    except ValueError as error:
        raise ImproperlyConfigured(f"Q_CLUSTER: {error}") from error

"""What the backend for Django's tasks asks of a node, and in which order."""

from __future__ import annotations

from typing import Any

from django.conf import settings

if not settings.configured:
    settings.configure(USE_TZ=True)

from disque_tx.integrations.django.backend import DisqueBackend
from disque_tx.integrations.django.compat import Task
from tests.integrations.nodes import FrameworkCase


def send(text: str) -> str:
    """A task."""
    return text


class BackendTests(FrameworkCase):
    """Tasks that are sent."""

    def test_order(self) -> None:
        """The result of a task is kept before a worker can have the task: it would be lost if the
        worker was faster."""
        options: dict[str, Any] = {"nodes": self.scripted.address}
        backend = DisqueBackend("default", {"OPTIONS": options, "QUEUES": ["default"]})
        self.addCleanup(backend.client.close)
        task = Task(priority=0, func=send, backend="default", queue_name="default", run_after=None)
        result = backend.enqueue(task, ["x"], {})
        queues = [words[1] for words in self.asked()]
        self.assertEqual([f"django:result:{result.id}", "django:default"], queues)

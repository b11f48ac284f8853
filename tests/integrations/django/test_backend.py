"""What the backend for Django's tasks asks of a node, and in which order."""

from __future__ import annotations

from typing import Any

from django.conf import settings

if not settings.configured:
    settings.configure(USE_TZ=True)

from disque_tx.integrations.django.backend import DisqueBackend
from disque_tx.integrations.django.compat import SUCCESSFUL, Task
from disque_tx.integrations.django.records import change, decoded, encoded
from tests.integrations.nodes import FrameworkCase


def send(text: str) -> str:
    """A task."""
    return text


sending = Task(priority=0, func=send, backend="default", queue_name="default", run_after=None)


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
        self.assertEqual(32, len(result.id))

    def test_can(self) -> None:
        """Django refuses tasks with a delay or a priority, coroutines, and the question for a
        result, unless the backend says that it can do them."""
        backend = DisqueBackend("default", {"OPTIONS": {}, "QUEUES": ["default"]})
        names = ("defer", "async_task", "get_result", "priority")
        self.assertEqual([True] * 4, [getattr(backend, f"supports_{name}") for name in names])

    def test_kept(self) -> None:
        """The result of a task is kept at least as long as the task itself may wait, with its
        delay, and for its own time when it is done."""
        for ttl_s, result_ttl_s, waiting in ((1_000, 50, 1_000), (1_000, 2_000, 2_000)):
            options: dict[str, Any] = {"nodes": self.scripted.address}
            options |= {"ttl_s": ttl_s, "result_ttl_s": result_ttl_s}
            backend = DisqueBackend("default", {"OPTIONS": options, "QUEUES": ["default"]})
            self.addCleanup(backend.client.close)
            self.scripted.requests.clear()
            result = backend.enqueue(sending, ["x"], {})
            backend.save(result, 70.5)
            change(result, status=SUCCESSFUL)
            backend.save(result)
            about = [words for words in self.asked() if words[1].startswith("django:result:")]
            kept = [int(words[words.index("TTL") + 1]) for words in about]
            self.assertEqual([waiting, waiting + 70, result_ttl_s], kept)

    def test_record(self) -> None:
        """A result is read as it was written, with all that has changed since."""
        options: dict[str, Any] = {"nodes": self.scripted.address}
        backend = DisqueBackend("default", {"OPTIONS": options, "QUEUES": ["default"]})
        self.addCleanup(backend.client.close)
        result = backend.enqueue(sending, ["x"], {"b": [1]})
        done = SUCCESSFUL
        change(result, status=done, worker_ids=["w"], _return_value={"sent": 5})
        path = f"{__name__}.sending"
        body = encoded(result).replace(sending.module_path.encode(), path.encode())
        found = decoded(body)
        self.assertEqual((result.id, done, ["w"]), (found.id, found.status, found.worker_ids))
        self.assertEqual((["x"], {"b": [1]}), (found.args, found.kwargs))
        self.assertEqual({"sent": 5}, found.return_value)
        self.assertEqual(result.enqueued_at, found.enqueued_at)
        change(found, _return_value=None)
        self.assertIsNone(found.return_value)

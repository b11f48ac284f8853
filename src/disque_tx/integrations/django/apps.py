"""The application, which brings the command ``disque_worker``, and checks the settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.apps import AppConfig, apps
from django.core import checks


class DisqueConfig(AppConfig):
    """See Django's ``AppConfig``."""

    name = "disque_tx.integrations.django"
    label = "disque_tx"
    verbose_name = "Disque"

    def ready(self) -> None:
        """Django 6 checks backends itself, and so does the application ``django_tasks``; without
        either this one does."""
        try:
            import django.tasks.checks  # noqa: F401
        except ImportError:
            if not apps.is_installed("django_tasks"):
                checks.register(check_backends)


def check_backends(app_configs: Any, **kwargs: Any) -> Iterable[checks.CheckMessage]:
    """What is wrong in the setting ``TASKS``."""
    # Not before Django is set up.
    from disque_tx.integrations.django.compat import task_backends

    for backend in task_backends.all():
        yield from backend.check()

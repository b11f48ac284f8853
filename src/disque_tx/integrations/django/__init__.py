"""Django's tasks on Disque.

    TASKS = {
        "default": {
            "BACKEND": "disque_tx.integrations.django.backend.DisqueBackend",
            "OPTIONS": {"nodes": ["node1:7711", "node2:7711"]},
        }
    }
    INSTALLED_APPS = [..., "disque_tx.integrations.django"]

``manage.py disque_worker`` does the tasks. With Django 6 and newer, or with the package
``django-tasks`` on older ones. See docs/how-to/use-django-tasks.md.
"""

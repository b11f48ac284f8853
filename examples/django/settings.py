"""Settings of the example: only what tasks need."""

import os

SECRET_KEY = "for this example only"
USE_TZ = True
INSTALLED_APPS = ["disque_tx.integrations.django", "shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
TASKS = {
    "default": {
        "BACKEND": "disque_tx.integrations.django.backend.DisqueBackend",
        "OPTIONS": {
            "nodes": os.environ.get("DISQUE_NODES", "127.0.0.1:7711").split(","),
            # A killed worker's tasks are with another one after ten seconds.
            "retry_s": 10,
        },
    }
}

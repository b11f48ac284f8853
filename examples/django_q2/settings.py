"""Settings of the example: only what tasks need."""

import os
from pathlib import Path

SECRET_KEY = "for this example only"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.contenttypes", "django_q", "shop"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        # Django-Q2 keeps the results of tasks there.
        "NAME": Path(os.environ.get("EXAMPLE_FOLDER", ".")) / "shop.sqlite3",
    }
}
Q_CLUSTER = {
    "name": "shop",
    "broker_class": "disque_tx.integrations.django_q2.DisqueBroker",
    "disque_nodes": os.environ.get("DISQUE_NODES", "127.0.0.1:7711").split(","),
    "workers": 2,
    "timeout": 10,
    # A killed worker's tasks are with another one after so many seconds.
    "retry": 20,
}

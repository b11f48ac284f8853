"""Django-Q2 on a real node, with a real cluster of it."""

from __future__ import annotations

from tests.acceptance.integrations.frameworks import FrameworkTestCase, stop

_SETTINGS = """
SECRET_KEY = "x"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.contenttypes", "django_q"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["DATABASE"]}}
Q_CLUSTER = {
    "name": "shop",
    "broker_class": "disque_tx.integrations.django_q2.DisqueBroker",
    "disque_nodes": [os.environ["NODE"]],
    "workers": 1,
    "timeout": 20,
    "retry": int(os.environ.get("RETRY", "30")),
    "poll": 0.1,
    "ack_failures": True,
}
"""
_SETUP = "import django; django.setup()\nfrom django_q.brokers import get_broker\n"


class ClusterTests(FrameworkTestCase):
    """One node."""

    def setUp(self) -> None:
        super().setUp()
        daemon = self.running()
        self.variables |= {
            "NODE": f"127.0.0.1:{daemon.port}",
            "DATABASE": str(self.place / "db"),
            "DJANGO_SETTINGS_MODULE": "settings",
        }
        self.write("settings", _SETTINGS)
        self.write("tasks", "def note(text):\n    report(text)\n")

    def test_life(self) -> None:
        """Tasks are done once by a cluster of Django-Q2, and then acknowledged."""
        self.run_program(
            _SETUP + "from django.core.management import call_command; call_command('migrate')"
        )
        cluster = self.spawn("-m", "django", "qcluster")
        sending = "from django_q.tasks import async_task\n"
        for number in range(10):
            sending += f"async_task('tasks.note', '{number}')\n"
        self.run_program(_SETUP + sending)
        self.wait_reported(*map(str, range(10)))
        self.assertEqual({1}, set(self.reported().values()))
        stop(cluster)

    def test_interface(self) -> None:
        """Every operation of a broker answers as Django-Q2 expects."""
        printed = self.run_program(
            _SETUP + "broker = get_broker()\n"
            "print(broker.ping(), broker.info().startswith('Disque '))\n"
            "first, second, third = [broker.enqueue(f't{n}') for n in range(3)]\n"
            "print(broker.queue_size(), broker.lock_size())\n"
            "(task,) = broker.dequeue()\n"
            "print(task == (first, 't0'), broker.lock_size())\n"
            "print(broker.acknowledge(first), broker.lock_size())\n"
            "(task,) = broker.dequeue(); print(broker.fail(second))\n"
            "print(broker.purge_queue(), broker.queue_size(), broker.dequeue())\n"
            "import pickle; print(pickle.loads(pickle.dumps(broker)).ping())\n"
        )
        lines = ["True True", "3 0", "True 1", "True 0", "True", "1 0 None", "True"]
        self.assertEqual(lines, printed.splitlines())

    def test_settings(self) -> None:
        """A setting that cannot be used is named at the start."""
        self.variables["RETRY"] = "0"
        printed = self.run_program(
            _SETUP + "from django.core.exceptions import ImproperlyConfigured\n"
            "try:\n    get_broker()\n"
            "except ImproperlyConfigured as error:\n    print(error)\n"
        )
        self.assertIn("Q_CLUSTER", printed)

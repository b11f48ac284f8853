"""A worker whose tasks recur, with a real daemon."""

from __future__ import annotations

from tests.acceptance.daemon import wait_for
from tests.acceptance.resp import Connection
from tests.acceptance.test_worker import WorkTestCase

_MODULE = """\
import os
from disque_tx.worker import Queue

queue = Queue("recurring", retry_s=30)

{decorator}
def tick():
    with open(os.environ["DONE"], "a") as file:
        file.write("tick\\n")
"""


class RecurringWorkerTests(WorkTestCase):
    """One daemon, and a program that is changed."""

    def test_in_step(self) -> None:
        """The task is called every second; when it recurs no more, its schedule goes, and that of
        an operator stays."""
        node = self.running()
        connection = node.client()
        connection.call("SCHEDULE", "SET", "by hand", "@yearly", "QUEUE", "q", "body")
        address = f"127.0.0.1:{node.port}"
        module = self.work_folder / "recurs.py"
        module.write_text(_MODULE.format(decorator="@queue.every(1)"))
        worker = self.work(address, "recurs:queue", cwd=self.work_folder)
        wait_for(lambda: len(self.done()) >= 3, "three calls")
        self.assertEqual([b"by hand", b"task:recurring:tick"], self.names(connection))
        self.assertEqual(0, self.drain(worker))
        module.write_text(_MODULE.format(decorator="@queue.job"))
        self.work(address, "recurs:queue", cwd=self.work_folder)
        wait_for(lambda: self.names(connection) == [b"by hand"], "the schedule is deleted")

    @staticmethod
    def names(connection: Connection) -> list[bytes]:
        """The names of all schedules."""
        return [row[1] for row in connection.call("SCHEDULE", "LIST")]

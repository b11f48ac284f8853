"""What workers say about themselves fits what nodes take."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.requests.announcements import TEXT_BYTES_MAX, announcement, short


class AnnouncementTests(SynchronousTestCase):
    """``announcement``."""

    def made(self, **values: Any) -> Any:
        """The object that a node gets."""
        lists = [name for name, value in values.items() if isinstance(value, list)]
        text = announcement(values, lists)
        self.assertLessEqual(len(text), TEXT_BYTES_MAX)
        return json.loads(text)

    def test_whole(self) -> None:
        """As long as it fits, everything is said, and nothing of a cut."""
        names = ["x" * 100] * 38
        fitting = {"worker": "wörker", "queues": names, "tasks": []}
        room = TEXT_BYTES_MAX - len(announcement(dict(fitting), []))
        fitting["tasks"] = ["y" * (room - 2)]
        self.assertEqual(fitting, self.made(**fitting))
        fitting["tasks"] = ["y" * (room - 1)]
        found = self.made(**fitting)
        self.assertEqual((True, 19), (found["cut"], len(found["queues"])))
        self.assertEqual(fitting["tasks"], found["tasks"])

    def test_longest(self) -> None:
        """The longest list is cut, by halves, and from its end: the first of each stay."""
        found = self.made(queues=[f"q{number:099}" for number in range(100)], tasks=["a", "b"])
        self.assertEqual(
            (True, ["a", "b"], 25), (found["cut"], found["tasks"], len(found["queues"]))
        )
        self.assertEqual(f"q{24:099}", found["queues"][-1])

    def test_short(self) -> None:
        """Of a long name the beginning is said, by which people know it."""
        self.assertEqual("a" + "b" * 99, short("a" + "b" * 200))
        self.assertEqual("b" * 100, short("b" * 100))

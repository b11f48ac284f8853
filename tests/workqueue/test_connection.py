"""Addresses of Redis servers."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.workqueue import BadRedisUrl
from disque_tx.workqueue.connection import RedisAddress, parse


class AddressTests(SynchronousTestCase):
    """URLs of Redis servers."""

    def test_forms(self) -> None:
        """Every part except the host may be omitted."""
        for url, address in (
            ("redis://h", RedisAddress("h")),
            ("redis://h:7/", RedisAddress("h", 7)),
            ("redis://h/3", RedisAddress("h", 6379, 3)),
            ("redis://:p%3A%40@h", RedisAddress("h", password="p:@")),
            ("redis://u:p@[::1]:7/0", RedisAddress("::1", 7, 0, "u", "p")),
        ):
            self.assertEqual(address, parse(url))
        self.assertEqual("[::1]:7", str(parse("redis://[::1]:7")))

    def test_other_password(self) -> None:
        """The password argument is used when the URL has none."""
        self.assertEqual("env", parse("redis://h", "env").password)
        self.assertEqual("url", parse("redis://:url@h", "env").password)

    def test_refused(self) -> None:
        """An invalid URL is refused, without showing any part of it."""
        for url in (
            "", "h:1", "http://h", "redis://", "redis://h:0", "redis://h:x", "redis://h/x",
            "redis://h/1?a=secret", "redis://secret@h", "redis://h/123456", "redis://[::1",
        ):  # fmt: skip
            error = self.assertRaises(BadRedisUrl, parse, url)
            self.assertNotIn("secret", str(error))

    def test_hidden_password(self) -> None:
        """A password is not shown in logs."""
        self.assertNotIn("secret", repr(parse("redis://:secret@h")))

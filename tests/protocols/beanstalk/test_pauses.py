"""Tubes that are paused for a while."""

from __future__ import annotations

from tests.protocols.beanstalk.bench import BeanstalkCase


class PauseTests(BeanstalkCase):
    """The request ``pause-tube``."""

    def test_pause(self) -> None:
        """A paused tube delivers nothing for a while, neither to clients that wait, nor by RESP."""
        client = self.client()
        self.assertEqual(b"PAUSED\r\n", client.send(b"pause-tube default 5\r\n"))
        client.put(b"x")
        self.assertEqual(b"", client.send(b"reserve\r\n"))
        self.assertEqual(b"*-1\r\n", self.turn(b"GETJOB NOHANG FROM default"))
        self.assertEqual(b"5", self.stat(b"pause", b"stats-tube default"))
        self.pass_s(4.5)
        self.assertEqual(b"", client.received())
        self.pass_s(1)
        self.assertEqual(b"RESERVED 1 1\r\nx\r\n", client.received())
        self.assertEqual(b"0", self.stat(b"pause", b"stats-tube default"))

    def test_paused_again(self) -> None:
        """Another pause takes the place of the one in force, be it longer or shorter, and a later
        one does not end with it."""
        client = self.client()
        client.put(b"x")
        for seconds in (2, 10):
            client.send(b"pause-tube default %d\r\n" % seconds)
        self.assertEqual(b"10", self.stat(b"pause", b"stats-tube default"))
        self.pass_s(5)
        self.assertEqual(b"TIMED_OUT\r\n", client.send(b"reserve-with-timeout 0\r\n"))
        self.assertEqual(b"5", self.stat(b"pause-time-left", b"stats-tube default"))
        client.send(b"pause-tube default 1\r\n")
        self.pass_s(1.2)
        self.assertEqual(b"0", self.stat(b"pause-time-left", b"stats-tube default"))
        client.send(b"pause-tube default 8\r\n")
        self.pass_s(5)
        self.assertEqual(b"TIMED_OUT\r\n", client.send(b"reserve-with-timeout 0\r\n"))
        self.pass_s(4)
        self.assertIn(b"RESERVED 1 1", client.send(b"reserve-with-timeout 0\r\n"))

    def test_paused_and_forgotten(self) -> None:
        """A tube that nobody uses any more is remembered until its pause is over, and no longer."""
        client = self.client()
        for seconds in (b"5", b"0"):
            client.send(b"use a\r\npause-tube a %s\r\nuse default\r\n" % seconds)
            self.pass_s(4.5)
            self.assertEqual(seconds == b"5", b"a" in self.tubes.by_name)
            self.pass_s(1)
            self.assertNotIn(b"a", self.tubes.by_name)

    def test_pause_shown(self) -> None:
        """MONITOR shows a pause, and its end, as the command that would do the same."""
        monitor, seen = self.connect()
        monitor.dataReceived(b"MONITOR\r\n")
        client = self.client()
        client.put(b"x")
        client.send(b"pause-tube default 50\r\npause-tube default 0\r\n")
        words = [line.split(b"] ")[1] for line in seen.value().split(b"\r\n") if b"PAUSE" in line]
        self.assertEqual([b'"PAUSE" "default" "out"', b'"PAUSE" "default" "none"'], words)

    def test_pause_ended(self) -> None:
        """A pause of no time ends the one in force."""
        client = self.client()
        client.put(b"x")
        client.send(b"pause-tube default 50\r\npause-tube default 60\r\n")
        self.assertEqual(b"60", self.stat(b"pause-time-left", b"stats-tube default"))
        client.send(b"pause-tube default 2000\r\n")
        self.assertEqual(b"2000", self.stat(b"pause-time-left", b"stats-tube default"))
        self.assertEqual(b"PAUSED\r\n", client.send(b"pause-tube default 0\r\n")[-8:])
        self.assertEqual(b"0", self.stat(b"pause-time-left", b"stats-tube default"))
        self.assertEqual(b"RESERVED 1 1\r\nx\r\n", client.send(b"reserve\r\n"))
        self.assertEqual(b"NOT_FOUND\r\n", client.send(b"pause-tube none 1\r\n"))
        self.assertEqual(b"BAD_FORMAT\r\n", client.send(b"pause-tube default\r\n"))

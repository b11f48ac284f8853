"""The options of the client."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.options import UsageError, parse
from disque_tx.client.options import TLS


class ParseTests(SynchronousTestCase):
    """``parse``."""

    def test_defaults(self) -> None:
        """Without options, the client connects to the local server on the default port."""
        options = parse(["PING"], {})
        self.assertEqual("127.0.0.1:7711", str(options.address))
        self.assertEqual([b"PING"], options.command)
        self.assertIsNone(options.password)

    def test_stops_at_the_command(self) -> None:
        """Options after the command belong to the command."""
        options = parse(["-p", "7712", "ADDJOB", "-p", "--raw", "0"], {})
        self.assertEqual(7712, options.port)
        self.assertEqual([b"ADDJOB", b"-p", b"--raw", b"0"], options.command)
        self.assertIsNone(options.form)

    def test_socket_wins(self) -> None:
        """Both ``-s``, as in the original, and ``-u`` accept a Unix socket."""
        for word in ("-s", "-u"):
            self.assertEqual("/tmp/d", str(parse([word, "/tmp/d", "-p", "1"], {}).address))

    def test_password_from_environment(self) -> None:
        """A password in the environment does not appear in process lists; ``-a`` has precedence."""
        environ = {"DISQUE_PASSWORD": "secret"}
        self.assertEqual(b"secret", parse([], environ).password)
        self.assertEqual(b"other", parse(["-a", "other"], environ).password)

    def test_h_alone_is_help(self) -> None:
        """``-h`` expects a host, but as the last argument it shows the help."""
        self.assertEqual("help", parse(["-h"], {}).mode)
        self.assertEqual("::1", parse(["-h", "::1"], {}).host)

    def test_bytes_of_arguments_are_kept(self) -> None:
        """An argument that is not UTF-8 is sent as the shell passed it."""
        self.assertEqual([b"\xff"], parse(["\udcff"], {}).command)

    def test_bad_options(self) -> None:
        """An unknown option, a missing value, and an option that only Redis has are refused."""
        for argv in (["--foo"], ["-p"], ["-n", "1"], ["--bigkeys"], ["-"]):
            error = self.assertRaises(UsageError, parse, argv, {})
            self.assertEqual(
                f"Unrecognized option or bad number of args for: '{argv[0]}'", str(error)
            )

    def test_url(self) -> None:
        """A URL contains password and addresses; verbs use all its hosts."""
        options = parse(["-u", "disque://:s%40cret@[::1]:7712,b:7713"], {"DISQUE_ADDRESSES": "c"})
        self.assertEqual("[::1]:7712", str(options.address))
        self.assertEqual(("[::1]:7712", "b:7713"), options.nodes)
        self.assertEqual("s@cret", options.secret)

    def test_bad_url_shows_no_password(self) -> None:
        """An error about a URL does not show its password, because it may be logged."""
        options = parse(["-u", "disque+dns://:pw@localhost:7712"], {})
        self.assertEqual(("dns:localhost:7712",), options.nodes)
        self.assertIn((options.host, options.port), [("127.0.0.1", 7712), ("::1", 7712)])
        self.assertEqual("pw", options.secret)
        error = self.assertRaises(UsageError, parse, ["-u", "disque+dns://name.invalid"], {})
        self.assertIn("-u: dns:name.invalid:7711 gives no address of a node", str(error))
        error = self.assertRaises(UsageError, parse, ["-u", "disque://me:secret@a:1"], {})
        self.assertNotIn("secret", str(error))

    def test_addresses_of_the_environment(self) -> None:
        """Verbs use the addresses from the environment, unless the command line gives a host."""
        environ = {"DISQUE_ADDRESSES": "a:1,b:2"}
        self.assertEqual(("a:1", "b:2"), parse([], environ).nodes)
        self.assertEqual("127.0.0.1:7711", str(parse([], environ).address))
        self.assertEqual(("c:7711",), parse(["-h", "c"], environ).nodes)

    def test_tls(self) -> None:
        """Certificates are verified unless an option disables it."""
        self.assertIsNone(parse([], {}).encryption)
        tls = parse(["--tls", "--no-host-check"], {}).encryption
        assert tls is not None
        self.assertEqual((True, False), (tls.verify, tls.check_hostname))
        insecure = parse(["--tls", "--insecure"], {}).encryption
        assert insecure is not None
        self.assertFalse(insecure.verify)

    def test_impossible_tls_options(self) -> None:
        """TLS options that cannot work are refused, so that nobody wrongly assumes protection."""
        for argv in (["-s", "/tmp/d"], ["--cert", __file__], ["--cacert", "/no/such/file"]):
            options = parse(["--tls", *argv], {})
            self.assertRaises(UsageError, lambda options=options: options.encryption)

    def test_nodes_at_a_unix_socket(self) -> None:
        """Verbs also use the Unix socket, independent of their working directory."""
        self.assertEqual(("unix:/tmp/d",), parse(["-s", "/tmp/d"], {}).nodes)
        self.assertEqual(
            (f"unix:{os.path.abspath('d')}",), parse(["-u", "d"], {"DISQUE_ADDRESSES": "a:1"}).nodes
        )

    def test_bad_values(self) -> None:
        """A value that is not a number, or out of range, is named in the error."""
        for argv in (
            ["-p", "x"],
            ["-p", "70000"],
            ["-r", "1.5"],
            ["-i", "-1"],
            ["-i", "nan"],
            ["--bigqueues", "-n", "0"],
        ):
            error = self.assertRaises(UsageError, parse, argv, {})
            self.assertIn(f"{argv[-2]} is out of range or not a number: '{argv[-1]}'", str(error))

    def test_intrinsic_latency_is_a_mode(self) -> None:
        """This mode has a value of its own."""
        options = parse(["--intrinsic-latency", "2"], {})
        self.assertEqual(("intrinsic-latency", 2.0), (options.mode, options.intrinsic_s))


class EncryptionTests(SynchronousTestCase):
    """Options of TLS."""

    def test_words(self) -> None:
        """Each file and each check arrives where it belongs; without --tls there is no
        encryption."""
        paths = {}
        for name in ("cacert", "cert", "key"):
            paths[name] = self.mktemp()
            with open(paths[name], "w"):
                pass
        words = [word for name, path in paths.items() for word in (f"--{name}", path)]
        whole = TLS(paths["cacert"], paths["cert"], paths["key"], True, True)
        self.assertEqual(whole, parse(["--tls", *words], {}).encryption)
        self.assertIsNone(parse(words, {}).encryption)
        for option, verify, check_host in (
            ("--insecure", False, True), ("--no-host-check", True, False),
        ):  # fmt: skip
            found = parse(["--tls", option], {}).encryption
            self.assertEqual(TLS(None, None, None, verify, check_host), found)
        self.assertEqual("a.example", parse(["--tls", "--sni", "a.example"], {}).address.sni)

    def test_refused(self) -> None:
        """What does not fit together is said before anything is connected to."""
        path = self.mktemp()
        with open(path, "w"):
            pass
        both = "--cert and --key belong together: use both or neither"
        for words, said in (
            (["--cert", path], both),
            (["--key", path], both),
            (["--cacert", "/none"], "--cacert: there is no file '/none'"),
            (["--cert", "/none", "--key", path], "--cert: there is no file '/none'"),
            (["--cert", path, "--key", "/none"], "--key: there is no file '/none'"),
            (["-s", "/s"], "--tls is for a host and a port, not for a Unix socket"),
        ):
            options = parse(["--tls", *words], {})
            with self.assertRaises(UsageError) as refused:
                options.encryption  # noqa: B018
            self.assertEqual(said, str(refused.exception))

    def test_ranges(self) -> None:
        """Numbers at their limits are taken, and beyond them refused with the option."""
        for option, value, taken in (
            ("-p", "1", True), ("-p", "65535", True), ("-p", "0", False), ("-p", "65536", False),
            ("-i", "0", True), ("-i", "999999999", True), ("-i", "-1", False), ("-i", "1e9", False),
        ):  # fmt: skip
            if taken:
                parse([option, value], {})
                continue
            error = self.assertRaises(UsageError, parse, [option, value], {})
            said = f"The value of {option} is out of range or not a number: '{value}'"
            self.assertEqual(said, str(error))
        for value, taken in (("1", True), ("100000", True), ("0", False), ("100001", False)):
            words = ["--bigqueues", "-n", value]
            if taken:
                self.assertEqual(int(value), parse(words, {}).queues_max)
            else:
                self.assertRaises(UsageError, parse, words, {})

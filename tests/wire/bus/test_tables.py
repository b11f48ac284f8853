"""The messages about tables, and the policies file, as bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import LocalError, PeerError
from disque_tx.messages.bus import Message
from disque_tx.messages.bustypes import CAN_BULK, CAN_TABLES, TABLE_CHANGE, TABLE_DIGEST, TABLE_PULL
from disque_tx.messages.tables import (
    CHANGES_MAX,
    NAME_BYTES_MAX,
    PATTERN_BYTES_MAX,
    SCHEDULES,
    VALUE_BYTES_MAX,
    Register,
    TableChange,
    TableDigest,
    TablePull,
)
from disque_tx.wire.bus.parser import PEER_BYTES_MAX, BusParser, encode
from disque_tx.wire.files.tables import POLICIES, parse, render
from tests import profiles  # noqa: F401
from tests.fuzz.checks import message_fields

ME = b"a" * 40
NUMBERS = st.integers(0, 1 << 59)


@st.composite
def registers(draw: st.DrawFn) -> Register:
    """Any register that fits."""
    deleted_s = draw(st.sampled_from((0, 1, (1 << 40) - 1)))
    return Register(
        draw(st.binary(max_size=20)),
        draw(st.binary(max_size=20)),
        b"" if deleted_s else draw(st.binary(max_size=20)),
        draw(st.integers(0, 10**18 - 1)),
        draw(st.binary(min_size=40, max_size=40).map(lambda data: data.hex().encode()[:40])),
        deleted_s,
        generation=draw(st.sampled_from((0, 1, 1_795_176_084))),
    )


def messages() -> st.SearchStrategy[Message]:
    """Any message about a table."""
    changes = st.builds(
        TableChange, st.lists(registers(), max_size=5), st.booleans(), st.booleans()
    )
    digests = st.builds(TableDigest, st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 32) - 1))
    pulls = st.builds(TablePull, st.binary(max_size=30), st.binary(max_size=30))
    return st.one_of(changes, digests, pulls)


def read(data: bytes, tables: bool = True) -> Message | None:
    """The message in these bytes, if it can be used."""
    parser = BusParser(PEER_BYTES_MAX)
    if not tables:
        parser.features &= ~CAN_TABLES
    parser.feed(data)
    return parser.next()


def signed(message: Message) -> Message:
    """With a sender."""
    message.sender = ME
    return message


class MessageTests(SynchronousTestCase):
    """TABLE CHANGE, DIGEST and PULL."""

    @given(messages())
    def test_round_trip(self, message: Message) -> None:
        """A message is read as it was written."""
        found = read(encode(signed(message)))
        assert found is not None
        self.assertEqual(message_fields(message), message_fields(found))

    @given(messages(), st.data())
    def test_cut(self, message: Message, data: st.DataObject) -> None:
        """A message whose body is too short or too long for what it announces is ignored."""
        whole = encode(signed(message))
        size = data.draw(st.integers(144, len(whole) + 20).filter(lambda n: n != len(whole)))
        cut = (whole + bytes(20))[:size]
        self.assertIsNone(read(cut[:4] + size.to_bytes(4, "big") + cut[8:]))

    def test_unknown_here(self) -> None:
        """A node without tables ignores these messages, as the original does."""
        self.assertIsNone(read(encode(signed(TableDigest(1, 1))), tables=False))

    def test_longest(self) -> None:
        """The longest register can be sent, and nothing longer is taken."""
        sizes = (PATTERN_BYTES_MAX, NAME_BYTES_MAX, VALUE_BYTES_MAX)
        for place in (-1, 0, 1, 2):
            words = [bytes(size + (number == place)) for number, size in enumerate(sizes)]
            register = Register(words[0], words[1], words[2], 1, ME)
            found = read(encode(signed(TableChange([register]))))
            self.assertEqual(place == -1, found is not None)

    def test_longest_schedule(self) -> None:
        """A schedule may be as long as the protocol says, and no longer: nodes of all versions take
        it, or none."""
        for size in (24_576, 24_577):
            register = Register(b"nightly", b"definition", bytes(size), 1, ME)
            found = read(encode(signed(TableChange([register], table=SCHEDULES))))
            self.assertEqual(size == 24_576, found is not None)

    def test_too_many(self) -> None:
        """One message never holds more registers than one turn should take."""
        one = Register(b"q", b"ttl", b"1", 1, ME)
        self.assertRaises(LocalError, encode, signed(TableChange([one] * (CHANGES_MAX + 1))))
        whole = encode(signed(TableChange([one] * CHANGES_MAX)))
        self.assertIsNotNone(read(whole))
        more = CHANGES_MAX + 1
        self.assertIsNone(read(whole[:14] + more.to_bytes(2, "big") + whole[16:]))

    def test_layout(self) -> None:
        """The bytes are those of the protocol, so that nodes of all versions understand them."""
        register = Register(b"q*", b"ttl", b"60", 258, ME)
        body = encode(signed(TableChange([register], True, True)))[144:]
        fields = "000000010000000300000000000001020000000000000000"
        sizes = "0002000300000002"
        self.assertEqual(bytes.fromhex(fields) + ME + bytes.fromhex(sizes) + b"q*ttl60", body)
        self.assertEqual(
            bytes.fromhex("000000010000000200000000000000ff"),
            encode(signed(TableDigest(255, 2)))[144:],
        )
        pull = encode(signed(TablePull(b"q", b"ttl")))[144:]
        self.assertEqual(bytes.fromhex("0000000100010003") + b"qttl", pull)
        repaired = Register(b"q*", b"ttl", b"60", 258, ME, generation=3)
        body = encode(signed(TableChange([repaired], True, True)))[144:]
        fields = "000000010000000700000000000001020000000000000000"
        register_body = ME + bytes.fromhex(sizes) + b"q*ttl60" + bytes.fromhex("0000000000000003")
        self.assertEqual(bytes.fromhex(fields) + register_body, body)
        self.assertEqual((32, 33, 34, 2), (TABLE_CHANGE, TABLE_DIGEST, TABLE_PULL, CAN_BULK))


class FileTests(SynchronousTestCase):
    """The policies file."""

    @given(st.lists(registers(), max_size=5), NUMBERS, st.sampled_from((0, 1, 1_795_176_084)))
    def test_round_trip(self, there: list[Register], greatest: int, generation: int) -> None:
        """A restart finds what was saved."""
        found, number, counter = parse(render(there, greatest, POLICIES, generation))
        self.assertEqual([one.fields() for one in there], [one.fields() for one in found])
        self.assertEqual((generation, greatest), (number, counter))

    def test_repaired(self) -> None:
        """A version that knows no repairs does not read the file of a repaired table as another
        one; every version reads that of a table which was never repaired."""
        one = Register(b"q", b"ttl", b"5", 1, ME, generation=3)
        self.assertIn(b"\nversion 2\ncounter 7 3\nset 1 ", render([one], 7, POLICIES, 3))
        self.assertIn(b"\nversion 1\ncounter 7\n", render([], 7))

    @given(st.lists(registers(), min_size=1, max_size=3), st.data())
    def test_torn(self, there: list[Register], data: st.DataObject) -> None:
        """A file that was not written to its end, or was changed, is never taken for another
        table."""
        whole = render(there, 7)
        at = data.draw(st.integers(0, len(whole) - 1))
        self.assertRaises(PeerError, parse, whole[:at])
        flipped = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        self.assertRaises(PeerError, parse, flipped)

    @given(st.binary(max_size=300))
    def test_foreign(self, data: bytes) -> None:
        """Any other file is refused."""
        self.assertRaises(PeerError, parse, data)

    def test_reasons(self) -> None:
        """The error says what is wrong."""
        whole = render([], 7)
        for text, reason in (
            (b"port 7711\n", "no file of policies"),
            (whole.replace(b"version 1", b"version 3"), "a later version"),
            (whole[:-5], "checksum is wrong or missing"),
        ):
            self.assertIn(reason, str(self.assertRaises(PeerError, parse, text)))

    def test_readable(self) -> None:
        """People can read the file."""
        there = [
            Register(b"mail:*", b"ttl", b"60", 2, ME),
            Register(b"a b", b"pause", b"", 3, ME, 1_700_000_000),
        ]
        lines = render(there, 3).decode().splitlines()
        node = ME.decode()
        self.assertEqual(
            [
                "version 1",
                "counter 3",
                f'set 2 {node} "mail:*" "ttl" "60"',
                f'del 3 {node} "a b" "pause" 1700000000',
            ],
            lines[1:-1],
        )

"""What the help of the prompt says about requests is what a node understands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Final

import disque_tx.commands
from disque_tx.cli.syntax import ENTRIES, Topic
from disque_tx.commands.base.values import Error
from tests.commands.desk import DeskCase

_COMMANDS: Final = Path(disque_tx.commands.__file__).parent
#: What stands for the words in a syntax that are not meant literally.
_VALUES: Final = {
    **{"queue": b"q", "name": b"n", "body": b"b", "from": b"q", "to": b"r", "key": b"k"},
    **{"ms-timeout": b"0", "milliseconds": b"1", "seconds": b"1", "n": b"1", "count": b"1"},
    **{"unix-ms": b"1", "ip": b"127.0.0.1", "port": b"7711", "bus-port": b"17711"},
    **{"ip:port": b"127.0.0.1:5001", "node-id": b"b" * 40, "cursor": b"0", "pattern": b"*"},
    **{"job-id": b"D-aaaaaaaa-000000000000000000000001-05a1", "glob": b"*", "message": b"m"},
    **{"section": b"jobs", "password": b"p", "value": b"5", "setting": b"ttl", "event": b"e"},
    **{"text": b"t", "blob": b"x", "question": b"CLIENTS", "word": b"0", "cron": b"@daily"},
    **{"fraction": b"0.5", "zone": b"UTC", "user": b"u", "ADDJOB": b"DELAY", "options": b"1"},
}
#: Errors about the form of a request; others are about what it asks for.
_FORM: Final = re.compile(
    rb"syntax|subcommand|option name|number of (words|arguments)|one of|must be|Wrong|version|"
    rb"BADID|No such client",
    re.I,
)
#: What an option may take, beyond what the help shows behind options of the same name.
_BEHIND: Final[tuple[list[bytes], ...]] = (
    [],
    [b"1"],
    [b"x"],
    [b"all"],
    [b"name"],
    [b"yes"],
    [b"UTC"],
)
#: Needs one of its options: queues to fetch from. It is asked with this one.
_GETJOB: Final = "[MATCH glob ...]"
#: Ignores words that are too many, as the original does.
_IGNORES: Final = "DEBUG"


def spellings(param: str) -> list[list[bytes]]:
    """The words of a parameter: one list for each alternative, and for each option inside."""
    if param.startswith("("):
        return [words for way in param.strip("()").split(" | ") for words in spellings(way)]
    text = param.removeprefix("[").removesuffix("]") if param.startswith("[") else param
    inner = re.findall(r"\[[^\[\]]*\]", text)
    outer = re.sub(r"\[[^\[\]]*\]", "", text).replace("...", "")
    found = [list(words) for words in product(*map(_choices, outer.split()))]
    return found + [[*found[0], *words] for option in inner for words in spellings(option)]


def _choices(word: str) -> list[bytes]:
    """A word, or what stands for it; of several, only an ID is not meant literally."""
    several = word.split("|")
    literal = len(several) > 1
    return [
        w.encode() if literal and w != "node-id" else _VALUES.get(w, w.encode()) for w in several
    ]


def request(entry: Topic, chosen: str = "", words: Sequence[bytes] = ()) -> list[bytes]:
    """A request with what may not be left out, and with these words for the chosen parameter."""
    found = entry.name.encode().split()
    for param in entry.params:
        if param == chosen:
            found += words
        elif not param.startswith("[") or (entry.name == "GETJOB" and param == _GETJOB):
            found += spellings(param)[0]
    return found


def literals() -> set[bytes]:
    """The words in the source of the commands, those that handlers know among them; a number."""
    trees = [ast.parse(path.read_text()) for path in _COMMANDS.rglob("*.py")]
    nodes = (node for tree in trees for node in ast.walk(tree))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant))
    words = (text.upper() for text in texts if isinstance(text, bytes))
    return {word for word in words if re.fullmatch(rb"[A-Z][A-Z-]+", word)} | {b"1", b"2"}


def samples() -> dict[bytes, list[bytes]]:
    """Option → the values behind it that the help of some command shows."""
    found: dict[bytes, list[bytes]] = {}
    for entry in ENTRIES:
        for param in entry.params:
            for words in spellings(param):
                found.setdefault(words[0], words[1:])
    return found


class SyntaxTests(DeskCase):
    """Requests to a node, made of the syntax in the help."""

    def errors(self, argv: list[bytes]) -> list[bytes]:
        """The errors that are replied to a new client."""
        command = self.server.registry.by_name[argv[0].lower()]
        if not command.accepts(argv):
            return [b"ERR wrong number of words"]
        self.client = self.connect(b"127.0.0.1:5002")
        replies = self.answers(command.handler, *argv)
        return [reply.line for reply in replies if isinstance(reply, Error)]

    def entries(self) -> Iterator[Topic]:
        """All that a node has in its table of commands, each with a new node."""
        for entry in ENTRIES:
            if entry.name != "QUIT":
                self.setUp()
                yield entry

    def test_understood(self) -> None:
        """Who types what the help says, with each of the options, is not told that the form of the
        request is wrong."""
        for entry in self.entries():
            requests = [
                request(entry, param, words) for param in entry.params for words in spellings(param)
            ]
            if entry.name != "CLIENT KILL":  # which needs one of its options
                requests.append(request(entry))
            for argv in requests:
                wrong = [line for line in self.errors(argv) if _FORM.search(line)]
                self.assertEqual([], wrong, argv)

    def test_needed(self) -> None:
        """What may be left out stands in brackets."""
        for entry in self.entries():
            needed = [param for param in entry.params if not param.startswith("[")]
            for param in needed:
                argv = request(entry, param)
                self.assertNotEqual([], self.errors(argv), argv)

    def test_complete(self) -> None:
        """There are no options that the help does not name: words that it has for other commands,
        and that stand in the source of any command, are refused."""
        values, names = samples(), {entry.name for entry in ENTRIES}
        words = sorted(literals())
        for entry in self.entries():
            lists = [param for param in entry.params if re.fullmatch(r"\[[a-z ]+ \.\.\.\]", param)]
            if lists or entry.name.startswith(_IGNORES):
                continue  # any words, as many as the client likes
            named = set(re.split(r"[^A-Z0-9-]+", entry.syntax.upper()))
            optional = [param for param in entry.params if param.startswith("[")]
            # CLIENT KILL takes an address or options.
            free = [_VALUES[p[1:-1]] for p in optional[:1] if p[1:-1] in _VALUES and ":" not in p]
            for word in words:
                if word.decode() in named or f"{entry.name} {word.decode()}" in names:
                    continue
                for behind in (*_BEHIND, values.get(word, [])):
                    argv = request(entry, (*optional, "")[0], [*free, word, *behind])
                    argv += [] if optional else [word, *behind]
                    wrong = [line for line in self.errors(argv) if _FORM.search(line)]
                    self.assertNotEqual([], wrong, argv)

"""Reading the configuration at start: a file or standard input, then the command line.

Client protocol, sections 21.1 to 21.3. Later lines override earlier ones. ``include`` and ``dir``
take effect immediately; all other relative paths are resolved once at the end, in the ``dir`` that
applies then. CONFIG REWRITE is :mod:`disque_tx.config.parameters`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import Final

import attrs

from disque_tx.config.directives import DIRECTIVES
from disque_tx.config.kinds import WRONG_WORDS, Path, decode, only
from disque_tx.config.paths import Files, os_error_text, resolve
from disque_tx.config.settings import Settings
from disque_tx.errors import ConfigError
from disque_tx.text.quoting import quote, split

# Enough for any sensible layout, and it stops a file that includes itself.
_INCLUDES_MAX: Final = 16
_COMMAND_LINE: Final = "the command line"
_BLANKS: Final = b" \t\r\n"

#: Takes a pattern and its settings with their values, and returns these in their normal form.
#: Raises ``ValueError`` for what no policy can have.
PolicyCheck = Callable[[bytes, list[tuple[bytes, bytes]]], list[tuple[bytes, bytes]]]


@attrs.frozen
class SourceLine:
    """A line of the configuration: its number from 1, its trimmed text, and its file."""

    number: int
    line: bytes
    source: str


class ConfigLineError(ConfigError):
    """A line is not valid; the text is for standard error (section 21.2)."""

    def __init__(self, place: SourceLine, message: str) -> None:
        super().__init__(
            f"\n*** FATAL CONFIG FILE ERROR ***\n{_location(place)}\n"
            f">>> '{decode(place.line)}'\n"
            f"{message}\n"
            f"(in {place.source})"
        )


def _location(place: SourceLine) -> str:
    if place.source != _COMMAND_LINE:
        return f"Reading the configuration file, at line {place.number}"
    first = (split(place.line) or [place.line.split()[0]])[0]
    if place.line.startswith(b'"'):
        return f"Reading the command line, at the word '{decode(first)}', which follows no option"
    return f"Reading the command line, at the option '--{decode(first)}'"


class ConfigAccessError(ConfigError):
    """A file or folder of the configuration cannot be used; the text is for the log."""


def command_line_text(words: list[str]) -> bytes:
    """The words of the command line as configuration text (section 21.1).

    A word with two dashes begins a line; those after it become its quoted arguments.
    """
    text = bytearray()
    for word in map(os.fsencode, words):
        if word.startswith(b"--"):
            text += (b"\n" if text else b"") + word[2:] + b" "
        else:
            text += quote(word) + b" "
    return bytes(text)


def load(
    argv: list[str],
    stdin: Callable[[], bytes],
    files: Files | None = None,
    commands: Collection[bytes] | None = None,
    policy: PolicyCheck | None = None,
) -> Settings:
    """The settings by the arguments of the program (section 21.1).

    ``stdin`` is called when the file is ``-``. ``commands``: lower-case names that
    ``rename-command`` may refer to; ``None`` skips this check. ``policy``: checks a ``policy``
    directive; ``None`` leaves its values as they are. Raises ``ConfigLineError`` for a
    line that is not valid, ``ConfigAccessError`` for a file or folder that cannot be used.
    """
    reader = _Reader(files or Files(), commands, policy)
    if argv and not argv[0].startswith("--"):
        text, source = reader.open_main(argv[0], stdin)
        reader.read(text, source)
        argv = argv[1:]
    reader.read(command_line_text(argv), _COMMAND_LINE)
    reader.resolve_paths()
    return reader.settings


class _Reader:
    """Applies configuration text to ``settings``, line by line.

    ``path_lines``: the last line of each path directive. ``commands``: names that can still be
    renamed.
    """

    def __init__(
        self, files: Files, commands: Collection[bytes] | None, policy: PolicyCheck | None
    ) -> None:
        self.files = files
        self.settings = Settings(dir=files.cwd)
        self.commands = None if commands is None else set(commands)
        self.policy = policy
        self.path_lines: dict[str, SourceLine] = {}
        self.depth = 0
        self.instructions: dict[str, Callable[[list[bytes]], None]] = {
            "dir": self._dir,
            "include": self._include,
            "listen": self._listen,
            "policy": self._policy,
            "rename-command": self._rename,
        }

    def open_main(self, path: str, stdin: Callable[[], bytes]) -> tuple[bytes, str]:
        """Content and name of the file on the command line; ``-`` is standard input."""
        if path == "-":
            return stdin(), "standard input"
        self.settings.config_file = os.path.normpath(resolve(self.files.cwd, path))
        return self._content(self.settings.config_file, path), self.settings.config_file

    def _content(self, path: str, written: str) -> bytes:
        try:
            return self.files.read(path)
        except (OSError, ValueError) as error:
            raise ConfigAccessError(f"Fatal error, can't open config file '{written}'") from error

    def read(self, text: bytes, source: str) -> None:
        """Apply every line of ``text``; errors count lines from 1."""
        for number, line in enumerate(text.split(b"\n"), 1):
            place = SourceLine(number, line.strip(_BLANKS), source)
            if place.line and not place.line.startswith(b"#"):
                try:
                    self._apply(place)
                except ValueError as error:
                    raise ConfigLineError(place, str(error)) from error

    def _apply(self, place: SourceLine) -> None:
        words = split(place.line)
        if words is None:
            raise ValueError("Unbalanced quotes in configuration line")
        if not words:
            return
        name = decode(words[0].lower())
        instruction = self.instructions.get(name)
        if instruction is not None:
            instruction(words[1:])
        else:
            self._assign(name, words[1:], place)

    def _assign(self, name: str, words: list[bytes], place: SourceLine) -> None:
        directive = DIRECTIVES.get(name)
        if directive is None or not directive.in_file:
            raise ValueError(WRONG_WORDS)
        value = directive.kind.parse(words)
        directive.assign(self.settings, value)
        if isinstance(directive.kind, Path):
            self.settings.written_paths[name] = value
            self.path_lines[name] = place

    def _dir(self, words: list[bytes]) -> None:
        written = decode(only(words))
        try:
            self.settings.dir = self.files.enter(resolve(self.settings.dir, written))
        except OSError as error:
            text = f"Can't chdir to '{written}': {os_error_text(error)}"
            raise ConfigAccessError(text) from error

    def _include(self, words: list[bytes]) -> None:
        written = decode(only(words))
        path = resolve(self.settings.dir, written)
        if self.depth == _INCLUDES_MAX:
            raise ValueError("Too many nested includes; does a file include itself?")
        text = self._content(path, written)
        self.depth += 1
        self.read(text, path)
        self.depth -= 1

    def _listen(self, words: list[bytes]) -> None:
        if len(words) != 2:
            raise ValueError(WRONG_WORDS)
        if not all(words):
            raise ValueError("listen needs the name of a protocol and an endpoint")
        self.settings.listen.append((decode(words[0]), decode(words[1])))

    def _policy(self, words: list[bytes]) -> None:
        pairs = list(zip(words[1::2], words[2::2], strict=False))
        if not pairs or len(words) % 2 == 0:
            raise ValueError(WRONG_WORDS)
        if self.policy is not None:
            pairs = self.policy(words[0], pairs)
        self.settings.policies += [(words[0], name, value) for name, value in pairs]

    def _rename(self, words: list[bytes]) -> None:
        if len(words) != 2:
            raise ValueError(WRONG_WORDS)
        old, new = words[0].lower(), words[1].lower()
        if self.commands is not None:
            if old not in self.commands:
                raise ValueError("No such command in rename-command")
            if new in self.commands:
                raise ValueError("Target command name already exists")
            self.commands.remove(old)
            self.commands.update([new] if new else [])
        self.settings.renames.append((words[0], words[1]))

    def resolve_paths(self) -> None:
        """Make the paths absolute, in the current ``dir``, and check that the log file can be
        written."""
        for directive in DIRECTIVES.values():
            if isinstance(directive.kind, Path):
                path = resolve(self.settings.dir, directive.value(self.settings))
                directive.assign(self.settings, path)
        if self.settings.logfile:
            try:
                self.files.try_append(self.settings.logfile)
            except OSError as error:
                text = f"Can't open the log file: {os_error_text(error)}"
                raise ConfigLineError(self.path_lines["logfile"], text) from error

"""``disque completion``: completion scripts for shells.

They contain all words and need no server; names of queues and IDs are not completed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Final

import click

from disque_tx.cli.syntax import ENTRIES
from disque_tx.cli.verbs.base.registry import USAGE, VERBS

_OPTION: Final = re.compile(
    r"^  (-[-\w]+)(?: <\w+>)?(?:, (-[-\w]+)(?: <\w+>)?)?  +(.*)$", re.MULTILINE
)


def options() -> dict[str, str]:
    """The options before a command: option → what it is for."""
    found: dict[str, str] = {}
    for first, second, what in _OPTION.findall(USAGE):
        found |= {option: what for option in (first, second) if option}
    return found


def below(word: str) -> dict[str, list[str]]:
    """The words that may follow a verb: its subcommands, if there are any, with their options; the
    verb's own options are under the empty word."""
    return dict(_below(import_module(VERBS[word].module).command))


def _below(command: click.Command) -> Iterator[tuple[str, list[str]]]:
    yield "", _opts(command)
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            yield name, _opts(one)


def _opts(command: click.Command) -> list[str]:
    found = [option for each in command.params for option in each.opts if option.startswith("-")]
    return [*found, "--help"]


def _commands() -> list[str]:
    return sorted({entry.name.split()[0] for entry in ENTRIES})


def bash() -> str:
    """For bash, and for zsh with ``bashcompinit``."""
    first = " ".join((*options(), *VERBS, *_commands()))
    cases = "\n".join(map(_case, VERBS))
    return f"""\
_disque() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} verb= below= words= word
    COMPREPLY=()
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        if [ -n "$verb" ]; then
            case $word in -*) ;; *) below=${{below:-$word}} ;; esac
        else
            case $word in {"|".join(VERBS)}) verb=$word ;; esac
        fi
    done
    case $verb in
{cases}
        *) words='{first}' ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
}}
complete -F _disque disque
"""


def _case(verb: str) -> str:
    words = below(verb)
    own = words.pop("")
    lines = [f"                {name}) words='{' '.join(opts)}' ;;" for name, opts in words.items()]
    lines.append(f"                *) words='{' '.join((*words, *own))}' ;;")
    inner = "\n".join(lines)
    return f"        {verb})\n            case $below in\n{inner}\n            esac ;;"


def zsh() -> str:
    """For zsh."""
    return f"autoload -U +X bashcompinit && bashcompinit\n{bash()}"


def fish() -> str:
    """For fish."""
    first = f"not __fish_seen_subcommand_from {' '.join(VERBS)}"
    lines = []
    for option, what in options().items():
        kind = "-l" if option.startswith("--") else "-s" if len(option) == 2 else "-o"
        lines.append(
            f"complete -c disque -n '{first}' {kind} {option.lstrip('-')} -d '{_safe(what)}'"
        )
    for word, verb in VERBS.items():
        lines.append(f"complete -c disque -n '{first}' -a {word} -d '{_safe(verb.summary)}'")
        lines += _fish_below(word)
    lines += [f"complete -c disque -n '{first}' -a {name}" for name in _commands()]
    return "\n".join(lines) + "\n"


def _fish_below(verb: str) -> Iterator[str]:
    seen = f"__fish_seen_subcommand_from {verb}"
    for name, opts in below(verb).items():
        when = f"{seen}; and __fish_seen_subcommand_from {name}" if name else seen
        if name:
            yield f"complete -c disque -n '{seen}' -a {name}"
        for option in opts:
            kind = "-l" if option.startswith("--") else "-s"
            yield f"complete -c disque -n '{when}' {kind} {option.lstrip('-')}"


def _safe(text: str) -> str:
    return text.replace("'", "\\'")


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a script that makes SHELL complete the words of disque.

    For bash: put  source <(disque completion bash)  into ~/.bashrc. For zsh: the same with zsh, in
    ~/.zshrc. For fish: disque completion fish > ~/.config/fish/completions/disque.fish
    """
    click.echo({"bash": bash, "zsh": zsh, "fish": fish}[shell](), nl=False)

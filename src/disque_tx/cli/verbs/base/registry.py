"""The verbs of ``disque``, and how they are distinguished from commands of the server.

1. Verbs are in lower case; words in any other case go to the server.
2. ``cluster create``, ``check``, ``downgrade`` and ``evacuate`` are verbs: the server has no such
   commands.
   ``cluster info``, ``meet`` and ``forget`` are verbs if the next word is an address with a port
   after a colon, or an option: the server's own commands have neither there. ``cluster`` before an
   option is a verb, too.
3. Everything else goes to the server unchanged, known or not.

The module of a verb is imported when the verb is run: a one-shot command must start fast.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from disque_tx.cli.connection import explained
from disque_tx.cli.options import ClientOptions, usage
from disque_tx.errors import DisqueError

if TYPE_CHECKING:
    import click

#: Words after ``cluster``: those that only ``disque`` has, and those that the server has, too.
_OURS: Final = (b"create", b"check", b"downgrade", b"evacuate")
_SHARED: Final = (b"info", b"meet", b"forget")
_HAS_PORT: Final = re.compile(rb"(\[[0-9A-Fa-f:.%]+\]|[^:\[\]]+):[0-9]+")
#: Forms of output → the parameters of verbs that select them.
_FORMS: Final = {"json": "as_json", "csv": "as_csv", "raw": "raw"}


class Verb:
    """A verb. ``module``: below ``disque_tx.cli``; its ``command`` is a command of click.
    ``summary``: one line for the help text."""

    def __init__(self, module: str, summary: str) -> None:
        self.module = f"disque_tx.cli.{module}"
        self.summary = summary


VERBS: Final[dict[str, Verb]] = {
    "watch": Verb("verbs.queues.watch", "show the figures of queues as they change"),
    "tail": Verb("verbs.jobs.tail", "show the jobs of a queue, and leave them there"),
    "drain": Verb("verbs.jobs.drain", "take the jobs of a queue into a file or a pipe"),
    "fill": Verb("verbs.jobs.fill", "add jobs that drain has written, as they were"),
    "move": Verb(
        "verbs.jobs.move",
        "move the jobs of a queue to another, or to another cluster",
    ),
    "flush": Verb("verbs.queues.flush", "end the jobs of a queue, here or on all nodes"),
    "wait": Verb("verbs.queues.wait", "wait until a job has ended, and print how"),
    "import": Verb("verbs.imports.command", "move the jobs of RQ or beanstalkd to Disque"),
    "work": Verb("verbs.workers.work", "do jobs with the handlers of a Python module"),
    "workers": Verb("verbs.workers.workers", "list the workers that are connected"),
    "dead": Verb("verbs.queues.dead", "list, show, requeue or drop dead letters"),
    "policy": Verb("verbs.queues.policy", "list, show, set or delete policies of queues"),
    "schedule": Verb("verbs.queues.schedule", "list, set, pause, run or delete recurring jobs"),
    "doctor": Verb("verbs.server.doctor", "print what is wrong with a cluster and its queues"),
    "health": Verb("verbs.server.health", "check whether a node serves, for probes"),
    "workqueue": Verb(
        "verbs.workers.workqueue", "clean or count a Redis work queue, or move it to Disque"
    ),
    "cluster": Verb("cluster.command", "create, check, info, meet or forget; with addresses"),
    "completion": Verb("verbs.server.completion", "print a completion script for a shell"),
    "help": Verb("verbs.server.topics", "show this text, or help on a verb or a command"),
}
#: ``--bigqueues`` is written as an option, but it is run like a verb.
BIGQUEUES: Final = Verb("modes.bigqueues", "the longest queues")


def listing() -> str:
    """The verbs with their summaries, a line each."""
    return "\n".join(f"  {word:<24}{verb.summary}" for word, verb in VERBS.items())


#: What ``disque --help`` prints.
USAGE: Final = usage(listing())


def recognised(command: list[bytes]) -> Verb | None:
    """The verb that the words begin with; ``None`` if they are for the server."""
    word = os.fsdecode(command[0])
    verb = VERBS.get(word)
    if word == "cluster" and not _is_ours(command[1:]):
        return None
    return verb


def _is_ours(words: list[bytes]) -> bool:
    if not words:
        return False
    if words[0] in _OURS or words[0].startswith(b"-"):
        return True
    if words[0] not in _SHARED:
        return False
    return any(word.startswith(b"-") or _HAS_PORT.fullmatch(word) for word in words[1:2])


def run(verb: Verb, name: str, words: list[bytes], options: ClientOptions) -> int:
    """Run a verb; ``name``: as the user wrote it, ``words``: those after it. Returns the exit
    status: 2 for words that are not valid, 1 when it failed."""
    import click

    try:
        command = import_module(verb.module).command
        _check(options, name, _named(command, words))
        return _status(_call(command, name, list(map(os.fsdecode, words)), options))
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as error:
        why = error.__cause__ or error.__context__
        if isinstance(why, KeyboardInterrupt):
            raise why from None
        return 1
    except DisqueError as error:
        return _fail(name, explained(str(error)))
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _fail(name, f"{place}{error.strerror or error}")


def _fail(name: str, text: str) -> int:
    print(f"disque {name}: {text}", file=sys.stderr)
    return 1


def _check(options: ClientOptions, name: str, commands: list[click.Command]) -> None:
    """Refuse options that would have no effect: a user might believe to be protected, or a program
    might read output for people."""
    import click

    form = _FORMS.get(options.form or "")
    known = {parameter.name for command in commands for parameter in command.params}
    has_forms = options.mode == "bigqueues" or form in known
    if options.form in ("json", "csv") and not has_forms:
        raise click.UsageError(f"{name} has no output as --{options.form}.")
    if options.fail_on_error:
        raise click.UsageError("-e is for commands of the server; verbs always report failures.")

    if options.sni is not None:
        raise click.UsageError("--sni is for commands of the server; verbs have --no-host-check.")
    if options.append_input or options.repeat != 1:
        raise click.UsageError("-x and -r are for commands of the server.")


def _named(command: click.Command, words: list[bytes]) -> list[click.Command]:
    """The command, and its subcommand if the words name one."""
    below: dict[str, click.Command] = getattr(command, "commands", {})
    return [command, *[below[word] for word in map(os.fsdecode, words) if word in below][:1]]


def _call(command: click.Command, name: str, words: list[str], options: ClientOptions) -> Any:
    defaults = _defaults(options)
    below: dict[str, Any] = dict.fromkeys(getattr(command, "commands", ()), defaults)
    if any(parameter.name == "addresses" for parameter in command.params):
        below["addresses"] = ",".join(options.nodes)
    return command.main(
        words, f"disque {name}", standalone_mode=False, obj=options, default_map=defaults | below
    )


def _defaults(options: ClientOptions) -> dict[str, Any]:
    """Options before the verb that the verb has as well: parameter → value."""
    given: dict[str, Any] = {}
    if options.interval_s is not None:
        given["interval_s"] = options.interval_s
    if options.form in _FORMS:
        given[_FORMS[options.form]] = True
    return given


def _status(returned: Any) -> int:
    """The exit status that a command returned, 0 if none."""
    return returned if isinstance(returned, int) else 0

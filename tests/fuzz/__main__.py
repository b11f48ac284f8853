"""Run a fuzzer, or replay what one found:
``python -m tests.fuzz bus|job|nodesfile|policiesfile|http|beanstalk [FILE...]``.

Without files, it needs atheris (``pip install 'disque-tx[fuzz]'``) and the uncompiled package. It
runs until it finds something, or for ``-max_total_time=<seconds>``; other options of libFuzzer are
accepted, too. Failing inputs, and the corpus for the next run, are kept in ``build/fuzz``. Named
files are checked once each, without atheris.
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path("build", "fuzz")
NAMES = ("bus", "job", "nodesfile", "policiesfile", "http", "beanstalk")


def main(words: list[str]) -> None:
    """Fuzz the target named on the command line, or check the named files."""
    if not words or words[0] not in NAMES:
        sys.exit(f"usage: python -m tests.fuzz {'|'.join(NAMES)} [FILE...] [options of libFuzzer]")
    files = [Path(word) for word in words[1:] if not word.startswith("-")]
    if files:
        replay(words[0], files)
    else:
        fuzz(words[0], words[1:])


def replay(name: str, files: list[Path]) -> None:
    """Check each file once; a failing one raises the same exception as in the fuzzer."""
    from tests.fuzz.checks import TARGETS

    check, _ = TARGETS[name]
    for file in files:
        print(f"{file}: {file.stat().st_size} bytes", flush=True)
        check(file.read_bytes())
    print("No check failed.")


def fuzz(name: str, options: list[str]) -> None:
    """Run the fuzzer, starting from the corpus of earlier runs and from the original's data."""
    import atheris

    with atheris.instrument_imports(include=["disque_tx"]):
        from tests.fuzz.checks import TARGETS

    check, seeds = TARGETS[name]
    corpus = FOLDER / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={FOLDER}/{name}-", str(corpus)], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])

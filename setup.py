"""What cannot be said in setup.cfg: the packages of two folders, and the optional extensions.

mypyc compiles the hot packages where a C compiler is at hand. ``DISQUE_TX_COMPILE=0`` leaves that
out, ``=1`` insists on it, anything else tries. Without it the same files run as they are, slower.
"""

import os
import shutil
import sysconfig
from glob import glob
from multiprocessing.pool import ThreadPool
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_ext import build_ext

COMPILED = [
    "errors.py",
    "messages/*.py",
    "text/*.py",
    "wire/**/*.py",
    "core/**/*.py",
    "commands/**/*.py",
    "engine/buslinks.py",
    "engine/buspump.py",
    "engine/hotsocket.py",
    "engine/linkend.py",
    "engine/turns.py",
    "protocols/beanstalk/client.py",
    "protocols/beanstalk/connection.py",
    "protocols/beanstalk/intake.py",
    "protocols/beanstalk/jobs.py",
    "protocols/beanstalk/others.py",
    "protocols/beanstalk/requests.py",
    "protocols/beanstalk/tubes.py",
    "services/events/durations.py",
    "services/events/sinks.py",
    "services/events/watching.py",
    "services/turns/clock.py",
    "services/turns/pump.py",
    "services/turns/rounds.py",
]


def sources():
    """The files to compile; packages' ``__init__`` stay plain."""
    for pattern in COMPILED:
        for name in sorted(glob(f"src/disque_tx/{pattern}", recursive=True)):
            if not name.endswith("__init__.py"):
                yield name


def can_compile():
    """Whether there is a compiler, Python's headers and mypyc."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    headers = Path(sysconfig.get_path("include"), "Python.h")
    try:
        import mypyc.build  # noqa: F401
    except ImportError:
        return False
    return bool(shutil.which(compiler) or shutil.which("cc")) and headers.exists()


def extensions():
    """The extension modules, or none."""
    wish = os.environ.get("DISQUE_TX_COMPILE", "")
    if wish == "0" or (wish != "1" and not can_compile()):
        return []
    from mypyc.build import mypycify

    # The type checker must find the package, and must not look for the plugins in setup.cfg. What
    # is not compiled may need libraries that are installed later, so it is not checked here.
    os.environ.setdefault("MYPYPATH", "src")
    options = ["--config-file=", "--strict", "--follow-imports=silent"]
    found = mypycify(
        [*options, *sources()],
        opt_level="2",
        debug_level="0",
        strip_asserts=False,
        multi_file=True,
    )
    for extension in found:
        # Files of one extension call each other directly then, and small functions are inlined.
        extension.extra_compile_args.append("-fvisibility=hidden")
    return found


class ParallelBuild(build_ext):
    """Compiles as many files at the same time as there are processors; setuptools by itself takes
    those of one extension one after the other, and nearly all of the code is in one."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self):
        compile_one = self.compiler.compile

        def compile_all(sources, **options):
            with ThreadPool(os.cpu_count()) as pool:
                found = pool.map(lambda source: compile_one([source], **options), sources)
            return [name for names in found for name in names]

        self.compiler.compile = compile_all
        super().build_extensions()


# Twisted looks for plugins in a folder of its own, which is no package that could be found.
setup(
    packages=[*find_packages("src"), "twisted.plugins"],
    ext_modules=extensions(),
    cmdclass={"build_ext": ParallelBuild},
)

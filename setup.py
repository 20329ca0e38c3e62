"""Loops compiled ahead: every `.pyx` below `src/` is made a module by Cython and a C compiler.

The settings of all of them are here and in no file of theirs. ``TREEWRIGHT_DEBUG_BUILD=1`` builds with bounds checked.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import zlib
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

DEBUG = os.environ.get("TREEWRIGHT_DEBUG_BUILD", "") not in ("", "0")
# One build for Python 3.11 and all later ones; those without a global lock have no such thing.
STABLE = sys.implementation.name == "cpython" and "t" not in getattr(sys, "abiflags", "")
DIRECTIVES = {
    "language_level": "3",
    "boundscheck": DEBUG,
    "wraparound": False,  # an index is never negative: checked where bounds are
    "initializedcheck": DEBUG,
    "nonecheck": DEBUG,
    "cdivision": not DEBUG,  # integers divide towards zero, and nothing looks whether by zero
    "show_performance_hints": not DEBUG,
}
# Results are the same on every machine: nothing reorders sums or contracts products, nothing asks for one processor.
UNIX = [*(["-O1", "-g"] if DEBUG else ["-O3", "-g0"]), "-ffp-contract=off", "-fno-fast-math", "-Wno-unused-function"]
FLAGS = {"msvc": ["/Od" if DEBUG else "/O2", "/fp:precise"]}

# What was built in another way is built again.
MODE = Path("build") / "mode"
WAY = f"{sys.implementation.cache_tag} {DEBUG} {zlib.crc32(Path('setup.py').read_bytes())}"
OTHERWISE = not MODE.exists() or MODE.read_text() != WAY
MODE.parent.mkdir(exist_ok=True)

NO_COMPILER = """
treewright has loops in C, and there is no C compiler: {compiler} was not found. Either install one, such as
    apt-get install gcc  |  dnf install gcc  |  xcode-select --install  |  Build Tools for Visual Studio
or take the one that is a Python package:
    pip install ziglang
    export CC="$(python -c 'import ziglang; print(*ziglang.__path__)')/zig cc -mcpu=baseline"
"""


def extensions() -> list[Extension]:
    """A module for each `.pyx`."""
    macros = [("Py_LIMITED_API", "0x030B0000")] if STABLE else []
    return [
        Extension(
            ".".join(path.relative_to("src").with_suffix("").parts),
            [path.as_posix()],
            define_macros=macros,
            py_limited_api=STABLE,
        )
        for path in sorted(Path("src").rglob("*.pyx"))
    ]


class Build(build_ext):
    """Flags by compiler, and a message where there is none."""

    def build_extensions(self) -> None:
        """Compile all modules, in parallel."""
        compiler = getattr(self.compiler, "compiler_so", None)  # what is no Unix says itself what it lacks
        if compiler and shutil.which(compiler[0]) is None:
            raise SystemExit(NO_COMPILER.format(compiler=shlex.quote(compiler[0])))
        for extension in self.extensions:
            extension.extra_compile_args = FLAGS.get(self.compiler.compiler_type, UNIX)
        self.force = self.force or OTHERWISE
        self.parallel = self.parallel or os.cpu_count()
        super().build_extensions()
        MODE.write_text(WAY)

    def copy_extensions_to_source(self) -> None:
        """Without the modules whose source is gone: they would be imported in place of a `.py` of that name."""
        super().copy_extensions_to_source()
        for path in Path("src").rglob("*.so"):
            if not path.with_name(path.name.partition(".")[0] + ".pyx").exists():
                path.unlink()


class Wheel(bdist_wheel):
    """One wheel for all versions of Python."""

    def finalize_options(self) -> None:
        """Name the versions it is for."""
        self.py_limited_api = "cp311" if STABLE else False
        super().finalize_options()

    def run(self) -> None:
        """Build it from nothing that is left of an earlier one."""
        shutil.rmtree(self.get_finalized_command("build").build_lib, ignore_errors=True)
        super().run()


setup(
    ext_modules=cythonize(
        extensions(),
        include_path=["src"],
        build_dir="build/cython",
        force=OTHERWISE,
        compiler_directives=DIRECTIVES,
        quiet=True,
    ),
    cmdclass={"build_ext": Build, "bdist_wheel": Wheel},
)

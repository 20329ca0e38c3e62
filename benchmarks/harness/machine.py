"""Where and with what a row was made."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import treewright

__all__ = ["machine", "peak_memory", "source_commit", "versions"]

_PACKAGES = ("treewright", "numpy", "scipy", "scikit-learn", "highspy")


@lru_cache
def machine() -> dict[str, Any]:
    """Return processor, cores that may be used, memory in GiB and system."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None


@lru_cache
def versions() -> dict[str, str]:
    """Return versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@lru_cache
def source_commit() -> str:
    """Return the commit of the checkout that the package is imported from, with "+" if files differ; "" without one."""
    source = treewright.__file__
    here = Path(source).parent
    try:
        known = subprocess.run(
            ["git", "-C", str(here), "ls-files", "--error-unmatch", source], capture_output=True, timeout=20
        )
        if known.returncode:  # installed below some other checkout
            return ""
        git = ["git", "-C", str(here)]
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, timeout=20)
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return commit.stdout.strip() + ("+" if changed.stdout.strip() else "")


def peak_memory() -> float | None:
    """Return the largest memory of this process so far, in GiB; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)

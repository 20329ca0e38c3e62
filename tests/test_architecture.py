"""What the architecture promises about the code itself."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import treewright

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "treewright"
# Top to bottom, in the order the data flows: a module imports only from its own line or from lines above.
FLOW = [
    ["arrays", "exceptions", "budget", "compiled", "files", "names", "progress", "threads", "_version"],
    ["tree"],
    ["data"],
    ["graph"],
    ["program"],
    ["solvers"],
    ["splits"],
    ["formulations"],
    ["search"],
    ["training"],
    ["estimators"],
    ["report"],
    ["bench"],
    ["cli", "__init__", "__main__"],
]
LINE_OF = {folder: number for number, line in enumerate(FLOW) for folder in line}
SOLVER_PACKAGES = {"highspy", "pyscipopt", "gurobipy", "clarabel"}
MODULES = sorted(SOURCE.rglob("*.py"))


@cache
def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return names


def folder_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_follow_the_flow_of_the_data(path):
    here = LINE_OF[folder_of(path)]
    for name in imports_of(path):
        parts = name.split(".")
        if parts[0] != "treewright" or len(parts) < 2:
            continue
        if folder_of(path) == "__main__" or parts[1] not in LINE_OF:
            continue
        assert LINE_OF[parts[1]] <= here, f"{path.name} imports {name} against the flow"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_solver_packages_are_named_in_solvers_alone(path):
    if folder_of(path) != "solvers":
        assert not {name.split(".")[0] for name in imports_of(path)} & SOLVER_PACKAGES


def test_importing_treewright_imports_no_extra():
    code = "import sys, treewright; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & (SOLVER_PACKAGES | {"matplotlib", "faiss", "numba", "polars"})


def test_help_imports_no_estimator():
    tried = "try: main(['fit', '--help'])\nexcept SystemExit: print(*sys.modules)"
    code = f"import sys\nfrom treewright.cli import main\n{tried}"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"sklearn", "scipy", "numba", "polars", "pandas"} & set(loaded.splitlines()[-1].split())


def test_nothing_but_a_benchmark_imports_bench():
    code = "import sys, treewright.estimators, treewright.report; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in loaded if name.startswith("treewright.bench")]


def test_every_public_name_is_documented():
    page = (ROOT / "docs" / "api.md").read_text()
    for name in treewright.__all__:
        assert f"`{name}`" in page, f"{name} is missing from docs/api.md"
        if not name.startswith("__"):
            assert ">>>" in (getattr(treewright, name).__doc__ or ""), f"{name} has no runnable example"


def test_every_dependency_has_a_reason():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "dependencies.md").read_text()
    wanted = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        wanted += [d for d in extra if not d.startswith("treewright")]
    for requirement in wanted:
        name = requirement.split(">")[0].split("[")[0]
        assert f"`{name}`" in page, f"{name} is missing from docs/dependencies.md"


def test_the_version_is_in_the_changelog():
    assert treewright.__version__ in (ROOT / "CHANGELOG.md").read_text()

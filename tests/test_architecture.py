"""What the architecture promises about the code itself."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import treewright

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "treewright"
# Top to bottom, in the order the data flows: a module imports only from its own line or from lines above.
FLOW = [
    ["core", "exceptions", "_version"],
    ["tree"],
    ["data"],
    ["graph"],
    ["solvers"],
    ["splits"],
    ["totals"],
    ["engine"],
    ["optimize"],
    ["teachers"],
    ["exports"],
    ["estimators"],
    ["models"],
    ["estimation"],
    ["report"],
    ["app"],
    ["cli", "__init__", "__main__"],
]
LINE_OF = {folder: number for number, line in enumerate(FLOW) for folder in line}
# Models that import from others: the former are built on the latter. What else two models share is in a room above.
BUILT_ON = {("fair", "binoct"), ("laptao", "tao"), ("s2oct", "oct"), ("svm1odt", "tao")}
SHARED_MODELS = {"registry", "labeller_files"}
SOLVER_PACKAGES = {"highspy", "pyscipopt", "gurobipy", "clarabel"}


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
    return names


IMPORTS = {path.relative_to(SOURCE): imports_of(path) for path in sorted(SOURCE.rglob("*.py"))}


def folder_of(path: Path) -> str:
    return path.parts[0].removesuffix(".py")


def test_imports_follow_the_flow_of_the_data():
    against = [
        f"{path} imports {name}"
        for path, names in IMPORTS.items()
        for name in names
        if name.startswith("treewright.") and folder_of(path) not in ("__init__", "__main__")
        if LINE_OF.get(name.split(".")[1], -1) > LINE_OF[folder_of(path)]
    ]
    assert not against


def test_every_folder_is_in_the_flow():
    assert {folder_of(path) for path in IMPORTS} == set(LINE_OF)


def test_models_import_from_models_they_are_built_on_alone():
    pairs = {
        (path.parts[1].removesuffix(".py"), name.split(".")[2])
        for path, names in IMPORTS.items()
        for name in names
        if folder_of(path) == "models" and name.startswith("treewright.models.")
    }
    across = {(here, there) for here, there in pairs if here != there and here not in SHARED_MODELS}
    assert across == BUILT_ON


def test_solver_packages_are_named_in_solvers_alone():
    packages = {path: {name.split(".")[0] for name in names} & SOLVER_PACKAGES for path, names in IMPORTS.items()}
    assert {folder_of(path) for path, named in packages.items() if named} <= {"solvers"}


def loaded_by(code: str) -> set[str]:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


def test_importing_treewright_imports_no_extra():
    loaded = loaded_by("import sys, treewright; print(*sorted({m.split('.')[0] for m in sys.modules}))")
    assert not loaded & (SOLVER_PACKAGES | {"matplotlib", "faiss", "polars", "sklearn", "onnx", "duckdb"})


def test_help_imports_no_estimator():
    tried = "try: main(['fit', '--help'])\nexcept SystemExit: print(*sys.modules)"
    loaded = loaded_by(f"import sys\nfrom treewright.cli import main\n{tried}")
    assert not {"sklearn", "scipy", "polars", "pandas"} & loaded


def test_every_public_name_is_documented():
    page = (ROOT / "docs" / "api.md").read_text()
    for name in treewright.__all__:
        assert f"`{name}`" in page, f"{name} is missing from docs/api.md"
        if not name.startswith("__"):
            assert ">>>" in (getattr(treewright, name).__doc__ or ""), f"{name} has no runnable example"


def test_every_dependency_has_a_reason():
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

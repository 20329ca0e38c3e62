"""What is installed and licensed, and what is said when it is not."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from treewright.exceptions import InvalidInputError, MissingLicenseError, SolverNotInstalledError
from treewright.solvers import SOLVER_NAMES, Capability, Solver, Status, describe, get_solver, registry, solvers_with
from treewright.solvers.program import Program
from treewright.solvers.program_builder import ProgramBuilder


def wide(n: int, cone: bool = False) -> Program:
    builder = ProgramBuilder()
    x = builder.add_variables("x", n, upper=1, integer=not cone, cost=-1.0)
    builder.add_rows("r", [(x[None, :], np.ones((1, n)))], upper=3.0)
    if cone:
        builder.add_cone(int(x[0]), x[1:])
    return builder.build()


def test_names() -> None:
    assert SOLVER_NAMES == ("highs", "scip", "gurobi")
    for name in SOLVER_NAMES:
        solver = get_solver(name)
        assert isinstance(solver, Solver)
        assert solver.name == name
        assert solver.capabilities == registry.CAPABILITIES[name]


def test_unknown_name() -> None:
    with pytest.raises(InvalidInputError, match="'cplex' is unknown.*'highs', 'scip', 'gurobi'"):
        get_solver("cplex")


def test_capabilities() -> None:
    assert solvers_with(Capability.MIP) == ["highs", "scip", "gurobi"]
    assert solvers_with(Capability.MIP | Capability.CONE) == ["highs", "scip", "gurobi"]
    assert solvers_with(Capability.PRIORITY) == ["scip", "gurobi"]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("scip", r"treewright\[scip\]"), ("gurobi", r"treewright\[gurobi\]"), ("highs", "highspy")],
)
def test_missing_package(name: str, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    solver = get_solver(name)
    package = registry.INSTALL_HINTS[name][0]
    monkeypatch.setitem(sys.modules, package, None)  # makes the import fail
    with pytest.raises(SolverNotInstalledError, match=remedy):
        solver.solve(wide(3))
    monkeypatch.setattr(registry.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SolverNotInstalledError, match=f"'{package}'.*{remedy}"):
        get_solver(name)
    info = {info.name: info for info in describe()}[name]
    assert not info.installed
    assert info.problem and info.remedy


def test_describe() -> None:
    infos = {info.name: info for info in describe()}
    assert list(infos) == list(SOLVER_NAMES)
    for name in ("highs", "scip"):
        assert infos[name].installed
        assert infos[name].version
        assert infos[name].licence == "open source"
        assert not infos[name].problem
    assert "priority" not in infos["highs"].capabilities
    assert all("cone" in info.capabilities for info in infos.values())


def test_importing_imports_no_solver() -> None:
    packages = [package for package, _ in registry.INSTALL_HINTS.values()]
    code = f"import sys, treewright.solvers; print([m for m in {packages} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


class TestGurobiLicence:
    @pytest.fixture
    def gurobi(self, monkeypatch: pytest.MonkeyPatch):
        gurobi = pytest.importorskip("gurobipy")
        monkeypatch.setattr("treewright.solvers.gurobi._POOL", [])
        return gurobi

    @pytest.fixture
    def limited(self, gurobi, monkeypatch: pytest.MonkeyPatch) -> None:
        """The same tests must pass on a machine with a full licence."""
        monkeypatch.setattr("treewright.solvers.gurobi._is_size_limited", lambda *_: True)

    @pytest.mark.parametrize(
        ("program", "text"),
        [
            (wide(3000), '3000 variables and 1 constraints.*allows 2000 and 2000.*solver="highs"'),
            (wide(300, cone=True), '300 variables and 2 constraints.*allows 200 and 2000.*solver="highs"'),
        ],
    )
    def test_too_large(self, limited: None, program: Program, text: str) -> None:
        with pytest.raises(MissingLicenseError, match=text):
            get_solver("gurobi").solve(program)

    def test_too_large_by_gurobis_own_word(self, gurobi, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("treewright.solvers.gurobi._exceeds", lambda _: False)

        def optimize(*_: object) -> None:
            raise gurobi.GurobiError(10010, "Model too large for size-limited license")

        monkeypatch.setattr(gurobi.Model, "optimize", optimize)
        with pytest.raises(MissingLicenseError, match="3000 variables"):
            get_solver("gurobi").solve(wide(3000))

    def test_missing(self, gurobi, monkeypatch: pytest.MonkeyPatch) -> None:
        class Env:
            def __init__(self, empty: bool) -> None: ...
            def setParam(self, *_: object) -> None: ...
            def start(self) -> None:
                raise gurobi.GurobiError(10009, "No Gurobi license found")

        monkeypatch.setattr(gurobi, "Env", Env)
        with pytest.raises(MissingLicenseError, match='No Gurobi license found.*solver="highs"'):
            get_solver("gurobi").solve(wide(3))
        info = describe()[-1]
        assert info.installed
        assert info.licence.startswith("missing: ")
        assert info.problem and info.remedy

    @pytest.mark.parametrize(
        ("answer", "licence"), [(True, "size-limited (2000 variables, 2000 rows)"), (False, "full")]
    )
    def test_described(self, gurobi, monkeypatch: pytest.MonkeyPatch, answer: bool, licence: str) -> None:
        monkeypatch.setattr("treewright.solvers.gurobi._is_size_limited", lambda *_: answer)
        assert describe()[-1].licence == licence

    def test_small_programs_are_solved(self, gurobi) -> None:
        assert get_solver("gurobi").solve(wide(50)).status is Status.OPTIMAL

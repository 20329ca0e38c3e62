"""Snippets of README and docs are Python that knows every name it uses."""

import ast
import builtins
import re
from pathlib import Path

from tests.examples import looped

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
OF_READERS = {"docs/api.md": {"frame", "totals"}, "docs/benchmarks.md": set()}
"""Names that stand for what a reader has."""


def names(node):
    """Names that a snippet makes, and those that it uses and imports nowhere."""
    made, used = set(), set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            (used if isinstance(part.ctx, ast.Load) else made).add(part.id)
        elif isinstance(part, ast.Import | ast.ImportFrom):
            made |= {(alias.asname or alias.name).partition(".")[0] for alias in part.names}
        elif isinstance(part, ast.FunctionDef | ast.ClassDef):
            made.add(part.name)
        elif isinstance(part, ast.arg):
            made.add(part.arg)
    return made, used


@looped("page", PAGES)
def test_snippets_define_what_they_use(page):
    known = set(dir(builtins)) | OF_READERS.get(page, set())
    for section in re.split(r"(?m)^## ", (ROOT / page).read_text(encoding="utf-8")):
        there = set(known)
        for snippet in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
            made, used = names(ast.parse(snippet))
            assert used <= there | made, f"{page}: {sorted(used - there - made)} in\n{snippet}"
            there |= made


@looped("page", PAGES)
def test_names_of_treewright_in_snippets_can_be_imported(page):
    for snippet in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL):
        imports = [node for node in ast.parse(snippet).body if isinstance(node, ast.Import | ast.ImportFrom)]
        ours = [node for node in imports if (getattr(node, "module", None) or "").startswith("treewright")]
        exec(compile(ast.Module(ours, []), page, "exec"), {})


@looped("page", PAGES)
def test_links_lead_somewhere(page):
    here = ROOT / page
    for target in re.findall(r"\]\(([^)#\s]*)(?:#[^)]*)?\)", here.read_text(encoding="utf-8")):
        if target and "://" not in target:
            assert (here.parent / target).exists(), f"{page}: {target}"


def anchors(path):
    """Anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.*)$", path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@looped("page", PAGES)
def test_links_to_headings_lead_to_one(page):
    here = ROOT / page
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]*)\)", here.read_text(encoding="utf-8")):
        if "://" not in target:
            assert anchor in anchors(here.parent / target if target else here), f"{page}: {target}#{anchor}"

"""Arrows point one way: cli -> agent -> {indexes, prompts} -> schemas."""

import ast

import pytest

from tests.conftest import ROOT

MAY_IMPORT = {
    "schemas": set(),
    "prompts": {"schemas"},
    "indexes": {"schemas"},
    "agent": {"schemas", "prompts", "indexes"},
    "cli": {"schemas", "prompts", "indexes", "agent"},
}
MODULES = sorted(path for home in MAY_IMPORT for path in [*ROOT.glob(f"{home}/**/*.py"), *ROOT.glob(f"{home}.py")])


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path) -> None:  # type: ignore[no-untyped-def]
    home = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            target = name.split(".")[0]
            assert target not in MAY_IMPORT or target == home or target in MAY_IMPORT[home], f"{path} imports {name}"


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text()))]
    assert silent == []

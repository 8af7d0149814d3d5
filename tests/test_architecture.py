"""The rules of the house hold, and would notice where they did not."""

import ast
from pathlib import Path

import pytest

from tests.architecture import RULES, Module, bag_takers, cycles, read_modules, wrong_arrows

MODULES = read_modules()


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_holds(rule: str) -> None:
    assert list(RULES[rule](MODULES)) == []


def test_ray_is_imported_in_one_place_alone() -> None:
    def imports_ray(module: Module) -> bool:
        imports = [node for node in ast.walk(module.tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        names = [node.module or "" for node in imports if isinstance(node, ast.ImportFrom)]
        names += [alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names]
        return any(name.partition(".")[0] == "ray" for name in names)

    assert [name for name, module in MODULES.items() if imports_ray(module)] == ["agent.runs.ray_cluster"]


def made_up(**sources: str) -> dict[str, Module]:
    names = {name.replace("__", "."): source for name, source in sources.items()}
    return {name: Module(name, Path(f"{name}.py"), ast.parse(source), 1) for name, source in names.items()}


def test_a_cycle_through_a_function_or_type_checking_is_noticed() -> None:
    one = "def f() -> None:\n    from agent.b import g\n"
    other = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from agent.a import f\n"
    assert list(cycles(made_up(agent__a=one, agent__b=other))) == ["agent.a <-> agent.b"]


def test_a_wrong_arrow_is_noticed() -> None:
    found = wrong_arrows(made_up(indexes__a="from agent.b import g", agent__b="import schemas"))
    assert list(found) == ["indexes.a imports agent.b"]


def test_whoever_takes_the_whole_bag_is_noticed() -> None:
    assert list(bag_takers(made_up(agent__a="def f(tools: 'Tools') -> None: ..."))) == ["agent.a.f"]

"""The shape of the house, printed and checked: `python -m tests.architecture`, and as part of `make test`.

Arrows point one way, there is no import cycle of any kind, nothing stands loose in `agent/`, only `agent/flow.py` takes
the whole bag of tools, functions are short of arguments and files short of lines, and every module says what it is for.
"""

import ast
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAY_IMPORT: dict[str, set[str]] = {
    "schemas": set(),
    "prompts": {"schemas"},
    "indexes": {"schemas"},
    "agent": {"schemas", "prompts", "indexes"},
    "cli": {"schemas", "prompts", "indexes", "agent"},
}
LOOSE = {"__init__.py", "flow.py"}  # what may stand directly in agent/
MAX_ARGUMENTS, MAX_LINES, MAX_MODULES = 7, 400, 14
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the product."""

    name: str  # dotted
    path: Path
    tree: ast.Module
    lines: int

    @property
    def home(self) -> str:
        """Its top-level package."""
        return self.name.split(".")[0]

    def functions(self) -> Iterator[Function]:
        """All functions and methods."""
        yield from (node for node in ast.walk(self.tree) if isinstance(node, Function))


def read_modules() -> dict[str, Module]:
    """Every module of the product, by its dotted name."""
    paths = sorted(path for home in MAY_IMPORT for path in [*ROOT.glob(f"{home}/**/*.py"), *ROOT.glob(f"{home}.py")])
    modules = {}
    for path in paths:
        text = path.read_text(encoding="utf-8")
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        modules[name] = Module(name, path, ast.parse(text), len(text.splitlines()))
    return modules


def imports_of(module: Module, known: Mapping[str, Module]) -> set[str]:
    """The product's modules that it imports: at the top, inside functions and under TYPE_CHECKING alike."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & known.keys()
            found |= inner | ({node.module} if len(inner) < len(node.names) else set())
    return (found & known.keys()) - {module.name}


def wrong_arrows(modules: Mapping[str, Module]) -> Iterator[str]:
    """Imports against the direction cli -> agent -> {indexes, prompts} -> schemas."""
    for module in modules.values():
        for target in sorted(imports_of(module, modules)):
            other = target.split(".")[0]
            if other != module.home and other not in MAY_IMPORT[module.home]:
                yield f"{module.name} imports {target}"


def cycles(modules: Mapping[str, Module]) -> Iterator[str]:
    """Groups of modules that import each other, directly or round about."""
    graph = {name: imports_of(module, modules) for name, module in modules.items()}
    reachable = {name: _reach(name, graph) for name in graph}
    seen: set[str] = set()
    for name in sorted(graph):
        group = {other for other in reachable[name] if name in reachable[other]}
        if group and name not in seen:
            seen |= group
            yield " <-> ".join(sorted(group))


def _reach(start: str, graph: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += graph[name]
    return reached


def rooms_two_way(modules: Mapping[str, Module]) -> Iterator[str]:
    """Pairs of folders, neither within the other, that import each other."""
    pairs = set()
    for module in modules.values():
        for target in imports_of(module, modules):
            one, other = module.path.parent, modules[target].path.parent
            if not (one.is_relative_to(other) or other.is_relative_to(one)):
                pairs.add((one, other))
    for one, other in sorted(pairs):
        if one < other and (other, one) in pairs:
            yield f"{one.relative_to(ROOT)} <-> {other.relative_to(ROOT)}"


def turns_that_know_tracks(modules: Mapping[str, Module]) -> Iterator[str]:
    """Modules of `agent/turn` that import a track's formats or rules: a turn is the same in all of them."""
    for module in modules.values():
        if module.name.startswith("agent.turn"):
            found = imports_of(module, modules)
            yield from (f"{module.name} imports {target}" for target in sorted(found) if "agent.tracks" in target)


def crowded_folders(modules: Mapping[str, Module]) -> Iterator[str]:
    """Folders of more than `MAX_MODULES`."""
    counts = Counter(module.path.parent for module in modules.values() if module.path.name != "__init__.py")
    yield from (f"{folder.relative_to(ROOT)} has {n}" for folder, n in counts.items() if n > MAX_MODULES)


def loose_modules(modules: Mapping[str, Module]) -> Iterator[str]:
    """Modules that stand in `agent/` itself, beside the page that one starts with."""
    for module in modules.values():
        if module.path.parent == ROOT / "agent" and module.path.name not in LOOSE:
            yield module.name


def bag_takers(modules: Mapping[str, Module]) -> Iterator[str]:
    """Functions outside `agent/flow.py` that take `Tools` whole."""
    for module in modules.values():
        if module.name != "agent.flow":
            for function in module.functions():
                annotations = [argument.annotation for argument in arguments_of(function) if argument.annotation]
                if any("Tools" in ast.unparse(annotation).strip("'\"").split(" | ") for annotation in annotations):
                    yield f"{module.name}.{function.name}"


def arguments_of(function: Function) -> list[ast.arg]:
    """Those that a caller gives: without `self` and `cls`."""
    named = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [argument for argument in named if argument.arg not in ("self", "cls")]


def too_many_arguments(modules: Mapping[str, Module]) -> Iterator[str]:
    """Functions of more than `MAX_ARGUMENTS`."""
    for module in modules.values():
        for function in module.functions():
            if (count := len(arguments_of(function))) > MAX_ARGUMENTS:
                yield f"{module.name}.{function.name} takes {count}"


def long_files(modules: Mapping[str, Module]) -> Iterator[str]:
    """Files of more than `MAX_LINES`; the command line lists every flag of every command."""
    for module in modules.values():
        if module.name != "cli" and module.lines > MAX_LINES:
            yield f"{module.name} has {module.lines} lines"


def silent_modules(modules: Mapping[str, Module]) -> Iterator[str]:
    """Modules whose first line does not say what they are for."""
    yield from (module.name for module in modules.values() if not ast.get_docstring(module.tree))


RULES = {
    "arrows that point the wrong way": wrong_arrows,
    "import cycles": cycles,
    "folders that import each other": rooms_two_way,
    "modules of a turn that know a track": turns_that_know_tracks,
    f"folders of more than {MAX_MODULES} modules": crowded_folders,
    "modules loose in agent/": loose_modules,
    "functions outside flow.py that take the whole bag": bag_takers,
    f"functions of more than {MAX_ARGUMENTS} arguments": too_many_arguments,
    f"files of more than {MAX_LINES} lines": long_files,
    "modules without a docstring": silent_modules,
}


def main() -> int:
    modules = read_modules()
    lengths = sorted((node.end_lineno or 0) - node.lineno + 1 for m in modules.values() for node in m.functions())
    median, p95 = statistics.median(lengths), lengths[int(0.95 * len(lengths))]
    print(f"{len(modules)} modules, {len(lengths)} functions; lines a function: median {median:.0f}, 95 % below {p95}")
    failed = False
    for rule, check in RULES.items():
        found = list(check(modules))
        failed = failed or bool(found)
        print(f"{rule}: {len(found)}", *found, sep="\n  ")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

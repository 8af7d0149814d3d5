"""The options of a command as dataclasses, where a command has more of them than a function should take."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

T = TypeVar("T")


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let typer see the fields of the dataclasses that a command takes as options of its own, in their places.

    The default of a field is what `typer.Option` or `typer.Argument` returns.
    """
    parameters: list[Parameter] = []
    groups: dict[str, Any] = {}
    for each in signature(command).parameters.values():
        if is_dataclass(each.annotation):
            groups[each.name] = each.annotation
            parameters += [
                Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
                for field in fields(each.annotation)
            ]
        else:
            parameters.append(each.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**values: Any) -> None:
        grouped = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**values, **grouped)

    run.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def fill(kind: Callable[..., T], options: Any, **values: Any) -> T:
    """A dataclass from these values, and from the options that are called as its other fields are."""
    shared = signature(kind).parameters.keys() & {field.name for field in fields(options)}
    return kind(**{name: getattr(options, name) for name in shared} | values)

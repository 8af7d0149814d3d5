"""Commands as dataclasses, where a command has more options than a function should take."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import Parameter, signature
from typing import Any, TypeVar, dataclass_transform

import typer

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def command(app: typer.Typer, name: str, **how: Any) -> Callable[[type[T]], type[T]]:
    """Make a command of a class: its fields are the options, its docstring is the help, and calling it does the work.

    The default of a field is what `typer.Option` or `typer.Argument` returns; `how` is as for `typer.Typer.command`.
    """

    def register(kind: type[T]) -> type[T]:
        made: Any = dataclass(frozen=True)(kind)

        def run(**values: Any) -> None:
            made(**values)()

        run.__doc__ = kind.__doc__
        parameters = [
            Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
            for field in fields(made)
        ]
        run.__signature__ = signature(run).replace(parameters=parameters)  # type: ignore[attr-defined]
        app.command(name, **how)(run)
        return kind

    return register


def fill(kind: Callable[..., T], options: Any, **values: Any) -> T:
    """A dataclass from these values, and from the options that are called as its other fields are."""
    shared = signature(kind).parameters.keys() & {field.name for field in fields(options)}
    return kind(**{name: getattr(options, name) for name in shared} | values)

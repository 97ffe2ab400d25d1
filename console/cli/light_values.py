"""Taking flags, words and paths from the command line as they are, without the validation library behind Typer.

Typer imports pydantic for the first value that it coerces, given or not: 45 ms, a fifth of what somebody waits
who opens the console. They need no coercion beyond their own type.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer._coercion import RuntimeParam

if TYPE_CHECKING:
    from typer._click import Context, Parameter
    from typer.core import _TyperParameter


class _AsItIs(RuntimeParam):
    """A value that its own type makes of what was typed."""

    def _coerce_value(self, value: Any, param: _TyperParameter, ctx: Context) -> Any:  # noqa: ARG002  # Typer's
        assert isinstance(self.annotation, type)  # `take_as_they_are` chose it by that
        return self.annotation(value)


def take_as_they_are(parameters: Iterable[Parameter]) -> None:
    """Let flags, words and paths be made by their own types."""
    for parameter in parameters:
        described = getattr(parameter, "type_descriptor", None)
        if described is not None and described.annotation in (bool, str, Path):
            made = _AsItIs(parameter_info=described.parameter_info, annotation=described.annotation)
            parameter._runtime_param = made  # type: ignore[attr-defined]  # what Typer would build lazily

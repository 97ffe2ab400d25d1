"""The `--edition` flag, one for all commands that prepare, launch or grade."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from competitions.model import Edition


class EditionName(StrEnum):
    """What `--edition` takes."""

    V1 = "v1"
    CORRECTED = "corrected"

    @property
    def edition(self) -> Edition:
        """The same, as the benchmark's own type."""
        return "v1" if self is EditionName.V1 else "corrected"


EditionFlag = Annotated[
    EditionName, typer.Option("--edition", help="v1 is MLE-bench bit for bit; corrected mends its defects.")
]

"""Which datasets a command is about: named ones, a split's, or all."""

from __future__ import annotations

from typing import Annotated

import typer

from foundation.problems import UsageProblem

Ids = Annotated[
    list[str] | None,
    typer.Option("--competition-id", "-c", metavar="ID", help="A competition; repeatable."),
]


def chosen_ids(named: list[str] | None, split: str) -> tuple[str, ...]:
    """Find the competitions that are meant.

    Raises:
        UsageProblem: both are given, or there is no such competition or split.
    """
    from competitions import registry

    if named and split:
        raise UsageProblem("which competitions is not clear", "", "Give one of -c ID, --split.")
    if named:
        return tuple(registry.get(name).id for name in dict.fromkeys(named))
    return registry.read_split(split) if split else registry.all_ids()

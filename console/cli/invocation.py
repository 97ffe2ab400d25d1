"""What the flags before the command said; commands get their places and their state from here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from engine.places import Places
    from state.database import Database

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", help="Where datasets lie.")]


@dataclass(frozen=True)
class Appearance:
    """How the console is to be opened."""

    screen: str | None = None
    readonly: bool = False
    ascii_only: bool = False
    theme: str | None = None


@dataclass(frozen=True)
class Invocation:
    """The flags that hold for every command."""

    state_dir: Path | None = None
    data_dir: Path | None = None
    config: Path | None = None
    demo: bool = False
    appearance: Appearance = Appearance()

    # A frozen dataclass still has a dictionary, which is where a cached property lives.
    @cached_property
    def own_places(self) -> Places:
        """Where the user's own configuration, data and state are."""
        from engine.places import find_places

        return find_places(state_dir=self.state_dir, data_dir=self.data_dir, config_file=self.config)

    @cached_property
    def places(self) -> Places:
        """The places to work with: the user's own, or the demo's beside them."""
        if not self.demo:
            return self.own_places
        from engine.demo import demo_places

        return demo_places(self.own_places)


def places_of(context: typer.Context) -> Places:
    """Where things are, as the flags before the command say."""
    return invocation_of(context).places


def data_dir_of(context: typer.Context, given: Path | None) -> Path:
    """Where datasets lie; a flag after the command, as MLE-bench has it, wins."""
    return places_of(context).data_dir if given is None else given.expanduser().absolute()


def invocation_of(context: typer.Context) -> Invocation:
    """The flags before the command."""
    invocation = context.find_object(Invocation)
    return Invocation() if invocation is None else invocation


@contextmanager
def reading_state(context: typer.Context) -> Iterator[Database]:
    """Open the state for looking, and close it again."""
    from state.database import open_for_reading

    database = open_for_reading(places_of(context).state_dir)
    try:
        yield database
    finally:
        database.close()

"""Columns of tables as data, shared by commands that print them and screens that draw them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True)
class TextColumn(Generic[Row]):
    """One column of a table: its title, the text of a row, and whether it is aligned to the right."""

    title: str
    text: Callable[[Row], str]
    right: bool = False

"""Dividing rows into train and test; what must stay on one side is found by `duplicates`."""

from competitions.kit.splits.positions import (
    Positions,
    Split,
    by_group,
    by_listed_group,
    by_row,
    held_out,
    listed_groups,
    shuffled,
    shuffled_groups,
    shuffled_per_class,
)

__all__ = [
    "Positions",
    "Split",
    "by_group",
    "by_listed_group",
    "by_row",
    "held_out",
    "listed_groups",
    "shuffled",
    "shuffled_groups",
    "shuffled_per_class",
]

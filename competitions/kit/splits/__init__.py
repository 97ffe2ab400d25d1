"""Dividing rows into train and test; what must stay on one side is found by `duplicates`."""

from competitions.kit.splits.by_position import (
    Positions,
    Split,
    held_out,
    listed_groups,
    shuffled,
    shuffled_groups,
    shuffled_per_class,
)

__all__ = [
    "Positions",
    "Split",
    "held_out",
    "listed_groups",
    "shuffled",
    "shuffled_groups",
    "shuffled_per_class",
]

"""By what a list is sorted, and whether the other way round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

By = TypeVar("By", bound=str)


@dataclass(frozen=True)
class Sorting(Generic[By]):
    """What comes first; `turned` means last."""

    by: By
    turned: bool = False

    def chosen(self, by: By) -> Sorting[By]:
        """By something else, or by the same thing turned round."""
        return self.round() if by == self.by else Sorting(by)

    def round(self) -> Sorting[By]:
        """The other way round."""
        return replace(self, turned=not self.turned)

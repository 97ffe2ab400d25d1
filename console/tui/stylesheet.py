"""A stylesheet that parses each source once per theme.

Textual parses all sources anew for each screen that is opened first, which is most of what opening a small one costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.css.stylesheet import Stylesheet

if TYPE_CHECKING:
    from textual.css.model import RuleSet
    from textual.css.types import CSSLocation

# By the source and the variables it was parsed with; a process has a few themes and a few dozen sources.
_parsed: dict[tuple[object, ...], list[RuleSet]] = {}


class CachedStylesheet(Stylesheet):
    """A stylesheet that takes the rules of a source from a cache of the process once they are parsed."""

    def reparse(self) -> None:
        """Take in new sources and variables; if a source is wrong, the rules stay as they are."""
        self.parse()

    def _parse_rules(
        self,
        css: str,
        read_from: CSSLocation,
        is_default_rules: bool = False,
        tie_breaker: int = 0,
        scope: str = "",
    ) -> list[RuleSet]:
        source = (css, read_from, is_default_rules, tie_breaker, scope)
        key = (*source, *sorted(self._variables.items()))
        if key not in _parsed:
            _parsed[key] = super()._parse_rules(*source)
        return _parsed[key]

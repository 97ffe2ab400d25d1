"""A regular expression that somebody searches logs for, compiled by RE2: linear in the text, whatever was typed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from foundation.problems import UsageProblem


@dataclass(frozen=True)
class Pattern:
    """A regular expression that matches within a line, never beyond it.

    Attributes:
        expression: in the syntax of RE2, which is Python's without look-around and back-references.
        any_case: small and capital letters match each other.
    """

    expression: str
    any_case: bool = False

    @classmethod
    def typed(cls, expression: str) -> Pattern:
        """Make what a person means: without a capital letter in it, capitals match too.

        Raises:
            UsageProblem: it is not a regular expression, or one that can't be searched for.
        """
        pattern = cls(expression, any_case=not any(letter.isupper() for letter in expression))
        import re2

        try:
            _ = pattern._compiled
        except re2.error as error:
            reason = error.args[0].decode("utf-8", "replace")
            if reason.startswith(("invalid perl operator", "invalid escape sequence: \\")):
                advice = "Look-around, atomic groups and back-references are not supported."
                raise UsageProblem(f"can't search for '{expression}'", reason, advice) from error
            raise UsageProblem(f"'{expression}' is not a regular expression", reason) from error
        return pattern

    def first(self, block: bytes) -> int | None:
        """Return where the first match in a block of lines begins."""
        found = self._compiled.search(block)
        return None if found is None else int(found.start())

    def last(self, block: bytes) -> int | None:
        """Return where the first match in the last line with one begins."""
        return max(self._lines_with_a_match(block), default=None)

    def count(self, block: bytes) -> int:
        """Count the lines with a match."""
        return sum(1 for _place in self._lines_with_a_match(block))

    def spans(self, line: bytes) -> list[tuple[int, int]]:
        """Return where each match in a line begins and ends, empty matches left out."""
        return [(*found.span(),) for found in self._compiled.finditer(line) if found.end() > found.start()]

    def _lines_with_a_match(self, block: bytes) -> Iterator[int]:
        search, start = self._compiled.search, 0
        while (found := search(block, start)) is not None:
            yield found.start()
            start = block.find(b"\n", found.end()) + 1
            if not start:
                return

    # A frozen dataclass still has a dictionary, which is where a cached property lives.
    @cached_property
    def _compiled(self) -> Any:
        import re2

        options = re2.Options()
        options.case_sensitive = not self.any_case
        options.never_nl = True
        options.log_errors = False
        return re2.compile(b"(?m)" + self.expression.encode("utf-8", "replace"), options)


# What marks a line as an error.
ERRORS = Pattern(
    r"\w(?:Error|Exception)\b"
    r"|(?i:\b(?:error|exception|traceback|fatal|failed|out of memory|oom|killed|segmentation fault)\b)"
)

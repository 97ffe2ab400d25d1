"""Regular expressions for searching logs, compiled by RE2: linear time for any expression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mlebench_console.foundation.problems import UsageProblem


@dataclass(frozen=True)
class Pattern:
    """A regular expression that matches within single lines.

    Attributes:
        expression: in RE2's syntax, which is Python's without look-around and back-references.
        any_case: ignores case.
    """

    expression: str
    any_case: bool = False

    @classmethod
    def typed(cls, expression: str) -> Pattern:
        """Return the pattern for a typed expression; it ignores case unless it contains a capital letter.

        Raises:
            UsageProblem: it is not a valid regular expression for RE2.
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
        """Return the start of the first match in a block of lines; None without a match."""
        found = self._compiled.search(block)
        return None if found is None else int(found.start())

    def last(self, block: bytes) -> int | None:
        """Return the start of the first match in the last line with one; None without a match."""
        return max(self._lines_with_a_match(block), default=None)

    def count(self, block: bytes) -> int:
        """Count the lines with a match."""
        return sum(1 for _place in self._lines_with_a_match(block))

    def spans(self, line: bytes) -> list[tuple[int, int]]:
        """Return the start and end of each non-empty match in a line."""
        return [(*found.span(),) for found in self._compiled.finditer(line) if found.end() > found.start()]

    def _lines_with_a_match(self, block: bytes) -> Iterator[int]:
        search, start = self._compiled.search, 0
        while (found := search(block, start)) is not None:
            yield found.start()
            start = block.find(b"\n", found.end()) + 1
            if not start:
                return

    # Works in a frozen dataclass, since cached_property writes to the instance's dictionary directly.
    @cached_property
    def _compiled(self) -> Any:
        import re2

        options = re2.Options()
        options.case_sensitive = not self.any_case
        options.never_nl = True
        options.log_errors = False
        return re2.compile(b"(?m)" + self.expression.encode("utf-8", "replace"), options)


# Matches lines that look like errors.
ERRORS = Pattern(
    r"\w(?:Error|Exception)\b"
    r"|(?i:\b(?:error|exception|traceback|fatal|failed|out of memory|oom|killed|segmentation fault)\b)"
)

"""The engine's own log, which is its standard error: what it did and every traceback, without agents' secrets."""

from __future__ import annotations

import traceback

from engine.runs.redaction import Redaction
from foundation.daemon_log import write_log
from foundation.problems import Problem


class EngineLog:
    """Writes a line, or a line with what went wrong."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction

    def __call__(self, text: str, error: BaseException | None = None) -> None:
        """Write to the log."""
        told = f"{text}: {_describe(error).rstrip()}" if error else text
        write_log(self._redaction.clean(told))


def _describe(error: BaseException) -> str:
    """A problem in its own words, anything else with its traceback."""
    return str(error) if isinstance(error, Problem) else "".join(traceback.format_exception(error))

"""Handing text to the clipboard of whoever sits at the terminal, over SSH too, by its own escape (OSC 52)."""

from __future__ import annotations

import base64
from pathlib import Path

from foundation.problems import EnvironmentProblem, UsageProblem

# Terminals take no more; what is longer they drop without a word.
_MOST_BYTES = 74_994
_TERMINAL = Path("/dev/tty")


def copy(text: str) -> None:
    """Copy text; whether the terminal obeys it never tells.

    Raises:
        UsageProblem: it is too long.
        EnvironmentProblem: there is no terminal.
    """
    content = base64.b64encode(text.encode())
    if len(content) > _MOST_BYTES:
        raise UsageProblem("that is too long for a clipboard", "", "Write it to a file with --output.")
    try:
        with _TERMINAL.open("wb") as terminal:
            terminal.write(b"\x1b]52;c;" + content + b"\x07")
    except OSError as error:
        raise EnvironmentProblem(
            "there is no terminal whose clipboard could take it", error.strerror or "", "Use --output FILE."
        ) from error

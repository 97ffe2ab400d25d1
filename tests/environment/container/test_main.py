"""What the container's main process leaves to Docker: the code by which a shell would report how the agent ended."""

from __future__ import annotations

import pytest

from environment.container.main import shell_code
from environment.container.output import Ending


@pytest.mark.parametrize(
    ("reason", "exit_code", "signal", "code"),
    [
        ("exited", 0, None, 0),
        ("exited", 255, None, 255),
        ("exited", None, 9, 137),
        ("deadline", 7, None, 124),
        ("stopped", None, 9, 143),
    ],
)
def test_an_ending_has_the_exit_code_of_a_shell(
    reason: str, exit_code: int | None, signal: int | None, code: int
) -> None:
    assert shell_code(Ending(reason, exit_code, signal, 1.0, 2.0)) == code

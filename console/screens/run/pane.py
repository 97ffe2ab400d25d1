"""A pane of the run screen: one part of what is known of a run, as a list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mlebench_console.console.roles import Drawing
from mlebench_console.console.tui.keys import Context
from mlebench_console.console.tui.widgets.blocks import Block
from mlebench_console.console.views.run import RunFacts

if TYPE_CHECKING:
    from mlebench_console.console.tui.base_app import BaseApp
    from mlebench_console.console.views.code import Wanted
    from mlebench_console.engine.control import EngineStatus
    from mlebench_console.state.records import Submission


@dataclass(frozen=True)
class PaneView:
    """What a pane shows: the run as the state has it, in so many lines."""

    facts: RunFacts
    engine: EngineStatus | None
    height: int
    drawing: Drawing


class Pane:
    """One pane; it keeps what it has read from files of the latest attempt.

    Attributes:
        name: in the line of names, and among the parts of the summary.
        keys: the contexts of its keys, beside those of the run.
        is_growing: whether its files are read again while the run is live.
        has_log_below: whether the last lines of the log fill the room that it leaves.
        data: what it has read; None before.
    """

    name: ClassVar[str]
    keys: ClassVar[tuple[Context, ...]] = ("list",)
    is_growing: ClassVar[bool] = False
    has_log_below: ClassVar[bool] = True

    def __init__(self) -> None:
        self.data: Any = None

    def read(self, facts: RunFacts) -> Any:  # noqa: ARG002 panes that show what the state knows read nothing
        """Read its data from files; waits for the disk, and runs in a thread."""
        return None

    def content(self, view: PaneView) -> Iterable[Block]:
        """Return what it shows."""
        raise NotImplementedError

    def opens(self, facts: RunFacts) -> bool:  # noqa: ARG002
        """Return whether something in it can be opened."""
        return False

    def open(self, app: BaseApp, facts: RunFacts, key: object) -> None:
        """Open what is under the cursor."""

    def submission(self, facts: RunFacts, key: object) -> Submission | None:  # noqa: ARG002
        """Return the submission under the cursor; None where it lists none."""
        return None

    def can_compare(self, facts: RunFacts) -> bool:
        """Return whether there are two versions of the code to compare."""
        return len(facts.submissions) > 1

    def versions(self, facts: RunFacts, key: object) -> tuple[Wanted, Wanted] | str:
        """Return the two versions to compare, the earlier one first, or why they can't be compared."""
        return compared_submissions(facts, [], self.submission(facts, key))


def compared_submissions(
    facts: RunFacts, marked: list[Submission], current: Submission | None
) -> tuple[Wanted, Wanted] | str:
    """Return two submissions: the marked ones, else the current (or best) one, and the one before it."""
    from mlebench_console.console.views.code import Wanted

    if facts.attempt is None:
        return "the run was never launched"
    chosen = {each.id: each for each in marked}
    current = current or facts.best or next(reversed(facts.submissions), None)
    if current is not None and len(chosen) < 2:
        chosen[current.id] = current
    if current is not None and len(chosen) < 2:
        before = [each for each in facts.submissions if each.sequence < current.sequence]
        chosen |= {each.id: each for each in before[-1:]}
    if len(chosen) != 2:
        return (
            "there are no two submissions to compare" if len(chosen) < 2 else "mark two submissions, not more"
        )
    ordered = sorted(chosen.values(), key=lambda each: each.sequence)
    left, right = (Wanted(facts.run.id, facts.attempt.number, str(each.sequence)) for each in ordered)
    return left, right

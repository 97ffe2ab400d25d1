"""The submissions of a run: its score over time, and every snapshot with its grade."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from mlebench_console.console import wording
from mlebench_console.console.fields import NounField
from mlebench_console.console.lists import Marks
from mlebench_console.console.nouns.submission import SUBMISSION, SubmissionRow, submission_rows
from mlebench_console.console.roles import Drawing, Piece, Pieces, better_arrow
from mlebench_console.console.screens.logs import FileScreen
from mlebench_console.console.screens.run.pane import Pane, PaneView, compared_submissions
from mlebench_console.console.tui.widgets.blocks import Block, in_one_line, laid_out, listing
from mlebench_console.console.tui.widgets.chart import Level, Series, plotted
from mlebench_console.console.tui.widgets.ruler import distances, margined_ruler, medal_role
from mlebench_console.console.views.run import RunFacts, Validations, read_validations
from mlebench_console.foundation.text import plural

if TYPE_CHECKING:
    from mlebench_console.console.tui.base_app import BaseApp
    from mlebench_console.console.views.code import Wanted
    from mlebench_console.state.records import Run, Submission


# The most rows of the chart of scores.
MOST_CHART_ROWS = 14


def _listed(facts: RunFacts, checks: Validations, marks: Marks[int], drawing: Drawing) -> Iterator[Block]:
    """Yield how far the score is from the cut-offs, if no chart above shows it, and all snapshots, newest first."""
    has_chart = len(scores_of(facts)) > 1
    if facts.competition is not None and not has_chart:
        yield ()
        yield margined_ruler(facts.competition.thresholds, facts.run.score)
        yield ()
    known: list[Pieces] = []
    if facts.competition is not None and has_chart and facts.run.score is not None:
        cuts, score = facts.competition.thresholds, facts.run.score
        number: Piece = (wording.score(score, 9), medal_role(cuts, score))
        known.append((number, (f": {distances(cuts, score)}", "text")))
    if facts.percentile is not None:
        known.append(((wording.rank(facts.percentile), "text"),))
    if checks.count:
        text = f"{plural(checks.count, 'validation')} by the agent"
        if checks.last_at is not None:
            quiet = wording.age(drawing.now - checks.last_at)
            text += f", the last {'now' if quiet == 'now' else f'{quiet} ago'}"
        known.append(((text, "dim"),))
    if known:
        yield in_one_line(known, ("  ", "text"))
        yield ()
    if not facts.submissions:
        yield (("  no submission" + (" yet" if facts.run.is_live else ""), "dim"),)
        return
    yield listing(
        submission_columns("into number which sign standing score size", facts, drawing),
        rows_of(facts)[::-1],
        SUBMISSION.key,
        mark=lambda row: SUBMISSION.key(row) in marks,
    )


def rows_of(facts: RunFacts) -> list[SubmissionRow]:
    """Return the submissions of the latest attempt, oldest first."""
    return submission_rows(facts.run, facts.attempts[-1:], facts.submissions, facts.competition)


def submission_columns(names: str, facts: RunFacts, drawing: Drawing) -> tuple[NounField[SubmissionRow], ...]:
    """Return fields of submissions; the title of the score says which direction is better."""
    return SUBMISSION.columns(
        names, number={"title": "#"}, which={"title": ""}, score={"title": _score_title(facts, drawing)}
    )


def _score_title(facts: RunFacts, drawing: Drawing) -> str:
    if facts.competition is None:
        return "score"
    return f"score {better_arrow(facts.competition.thresholds, drawing.signs)}"


def score_chart(facts: RunFacts, rows: int, drawing: Drawing) -> Iterator[Block]:
    """Yield the score of every graded snapshot over the run's time, the better end on top; not of a single one."""
    points = scores_of(facts)
    if facts.competition is None or len(points) < 2:
        return
    cuts = facts.competition.thresholds
    end = facts.took_seconds(drawing.now)
    series = Series(
        # The last score is drawn until the end.
        points=[*points, (max(end, points[-1][0]), points[-1][1])],
        span=(0.0, max(end, 1.0)),
        role=medal_role(cuts, points[-1][1]),
        number=lambda value: wording.score(value, 9),
        levels=(
            Level(cuts.gold, "gold", "gold"),
            Level(cuts.silver, "silver", "silver"),
            Level(cuts.bronze, "bronze", "bronze"),
            Level(cuts.median, "median", "dim"),
        ),
        steps=True,
        upside_down=cuts.is_lower_better,
    )
    yield plotted(series, rows)


def scores_of(facts: RunFacts) -> list[tuple[float, float]]:
    """Return the time into the run and the score of every graded snapshot."""
    return [
        (each.elapsed_seconds, each.score)
        for each in facts.submissions
        if each.score is not None and math.isfinite(each.score)
    ]


class SubmissionsPane(Pane):
    """The score over time and every snapshot, some of them marked."""

    name = "submissions"
    keys = ("submissions", "list")
    is_growing = True

    def __init__(self) -> None:
        super().__init__()
        self.data = Validations()
        self.marks: Marks[int] = Marks()

    def read(self, facts: RunFacts) -> Validations:
        """Count the validations that the agent requested."""
        return read_validations(facts.directory) if facts.directory else Validations()

    def content(self, view: PaneView) -> Iterable[Block]:
        """Return the chart of scores above the list."""
        return (partial(self._with_chart, view),)

    def _with_chart(self, view: PaneView, drawing: Drawing) -> Iterable[Block]:
        """Draw the chart in the room that the list leaves, but for its time axis."""
        listed = laid_out(_listed(view.facts, self.data, self.marks, drawing), drawing)
        rows = max(5, view.height // 2 - 3, view.height - len(listed) - 1)
        return [*score_chart(view.facts, min(MOST_CHART_ROWS, rows), drawing), *listed]

    def opens(self, facts: RunFacts) -> bool:
        """Return whether there is a snapshot."""
        return bool(facts.submissions)

    def open(self, app: BaseApp, facts: RunFacts, key: object) -> None:
        """Open the snapshot under the cursor."""
        each = self.submission(facts, key)
        if each is None:
            return
        snapshot = facts.state_dir / each.path
        if not snapshot.exists():
            app.say("the file is gone: older snapshots are thinned out when they take much room")
            return
        app.push_screen(FileScreen(snapshot, about=title_of(each, facts.run)))

    def submission(self, facts: RunFacts, key: object) -> Submission | None:
        """Return the submission under the cursor."""
        return next((each for each in facts.submissions if each.id == key), None)

    def versions(self, facts: RunFacts, key: object) -> tuple[Wanted, Wanted] | str:
        """Return the marked submissions, or those at the cursor and before it."""
        marked = [each for each in facts.submissions if each.id in self.marks]
        return compared_submissions(facts, marked, self.submission(facts, key))


def title_of(each: Submission, run: Run) -> str:
    """Name a submission with its score, for the title of its file."""
    words = [f"run {run.id}", f"submission {each.sequence}"]
    words += [wording.score(each.score, 9)] if each.score is not None else []
    words += [wording.OUTCOME_WORDS[each.standing]] if each.standing is not None else []
    return ", ".join(words)

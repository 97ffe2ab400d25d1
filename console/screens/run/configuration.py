"""The configuration of a run: what puts its result in doubt, what differs from the defaults, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mlebench_console.competitions.model import edition_named
from mlebench_console.console import wording
from mlebench_console.console.roles import Drawing, better_arrow
from mlebench_console.console.screens.run.pane import Pane, PaneView
from mlebench_console.console.tui.widgets.blocks import Block, section, wrapped
from mlebench_console.console.views.run import RunFacts, RunSetting, configuration, read_order
from mlebench_console.environment.runner.protocol import Order

_NAME_WIDTH = 16
# More lines than a text has; all of it is shown.
_MOST_LINES = 1000


def configuration_blocks(
    facts: RunFacts,
    order: Order | None,
    drawing: Drawing,
    *,
    doubts_first: bool = True,
    without: Sequence[str] = (),
) -> Iterator[Block]:
    """Yield what puts the result in doubt, what differs from the defaults, and the rest of the configuration."""
    settings = [each for each in _settings(facts, order, drawing) if each.text and each.name not in without]
    doubts = [each for each in settings if each.is_warning]
    unusual = [each for each in settings if each.usual is False and not each.is_warning]
    rest = [each for each in settings if each.usual is not False and not each.is_warning]
    groups = [("differs from the defaults", unusual), ("configuration", rest)]
    groups.insert(0 if doubts_first else 2, ("to know before the score is used", doubts))
    for number, (title, group) in enumerate((title, group) for title, group in groups if group):
        if number:
            yield ()
        yield section(title)
        for place, each in enumerate(group):
            # Long texts are wrapped rather than cut, since they are shown nowhere else.
            yield wrapped(
                each.text,
                "warn" if each.is_warning else "text",
                (f"  {each.name:<{_NAME_WIDTH}}  ", "dim"),
                most=_MOST_LINES,
                key=(title, each.name, place),
            )


def _settings(facts: RunFacts, order: Order | None, drawing: Drawing) -> Iterator[RunSetting]:
    """Yield the known defects of the competition, the configuration, its paths, and the metric."""
    edition = edition_named(facts.sweep.conditions.edition)
    if facts.competition is not None:
        for text in facts.competition.defects_in(edition):
            yield RunSetting("known defect", text, is_warning=True)
    yield from configuration(facts.run, facts.sweep, facts.attempt, order)
    yield RunSetting("directory", str(facts.directory or ""))
    if facts.competition is not None:
        metric = facts.competition.metric.name
        arrow = better_arrow(facts.competition.thresholds, drawing.signs)
        yield RunSetting("metric", f"{metric}, {wording.better(facts.competition.thresholds)} {arrow}")


class ConfigurationPane(Pane):
    """The whole configuration."""

    name = "config"

    def read(self, facts: RunFacts) -> Order | None:
        """Read the order that the runner got."""
        return read_order(facts)

    def content(self, view: PaneView) -> Iterable[Block]:
        """Return the configuration."""
        return configuration_blocks(view.facts, self.data, view.drawing, without=("competition", "seed"))

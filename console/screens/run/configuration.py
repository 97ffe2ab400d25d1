"""The configuration of a run: what puts its result in doubt, what differs from the defaults, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlebench_console.competitions.model import edition_named
from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, NounField
from mlebench_console.console.pieces import Line, cells_of, heading
from mlebench_console.console.roles import Drawing, Role, better_arrow
from mlebench_console.console.sanitize import plain
from mlebench_console.console.screens.run.pane import Pane, PaneView
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.run import RunFacts, order_facts, read_order
from mlebench_console.engine.options.sweep import USUAL_VALUES
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation.fields import flat
from mlebench_console.foundation.text import names_of_limits

if TYPE_CHECKING:
    pass


_CONFIG_NAME, _CONFIG_AROUND = 16, 4


@dataclass(frozen=True)
class _Setting:
    """One line of the configuration.

    Attributes:
        usual: whether it is the default; None if it has none.
        is_warning: whether it puts the result in doubt.
    """

    name: str
    text: str
    usual: bool | None = None
    is_warning: bool = False


def configuration_lines(
    facts: RunFacts,
    order: Order | None,
    width: int,
    drawing: Drawing,
    *,
    doubts_first: bool = True,
    without: Sequence[str] = (),
) -> list[Line]:
    """List what puts the result in doubt, what differs from the defaults, and the rest of the configuration."""
    settings = [each for each in _settings(facts, order, drawing) if each.name not in without]
    doubts = [each for each in settings if each.is_warning]
    unusual = [each for each in settings if each.usual is False and not each.is_warning]
    rest = [each for each in settings if each.usual is not False and not each.is_warning]
    groups = [("differs from the defaults", unusual), ("configuration", rest)]
    groups.insert(0 if doubts_first else 2, ("to know before the score is used", doubts))
    table = Table(_CONFIG, (), width, drawing)
    lines: list[Line] = []
    for title, group in groups:
        if group:
            lines += [*[Line()] * bool(lines), Line(heading(title, width, drawing.signs))]
        for place, each in enumerate(group):
            # Long texts are wrapped rather than cut, since they are shown nowhere else.
            first, *more = cells_of(plain(each.text), max(20, width - _CONFIG_NAME - _CONFIG_AROUND)) or [""]
            role: Role = "warn" if each.is_warning else "text"
            key = (title, each.name, place)
            lines.append(table.line((each.name, ((first, role),)), key=key))
            lines += [table.line(("", ((part, role),)), key=(*key, part)) for part in more]
    return lines


def _settings(facts: RunFacts, order: Order | None, drawing: Drawing) -> Iterable[_Setting]:
    """Yield the requested configuration, that of the latest attempt, and its paths."""
    spec, attempt, usual = facts.sweep.spec, facts.attempt, USUAL_VALUES
    conditions, resources = spec.conditions, spec.conditions.resources
    kept = flat(spec)

    def option(name: str, field: str, text: str) -> _Setting:
        return _Setting(name, text, usual=kept[field] == usual[field])

    if facts.competition is not None:
        edition = edition_named(conditions.edition)
        for text in facts.competition.defects_in(edition):
            yield _Setting("known defect", text, is_warning=True)
    if spec.demo:
        yield _Setting("data", "synthetic, made for the demo: no result", is_warning=True)
    if attempt is not None and attempt.isolated is not None:
        text = "yes" if attempt.isolated else "no: only for agents that are trusted"
        yield _Setting("isolated", text, is_warning=not attempt.isolated)
    if attempt is not None and attempt.unenforced:
        yield _Setting("limits not enforced", names_of_limits(attempt.unenforced), is_warning=True)
    yield _Setting("agent", spec.agent_id)
    yield _Setting("agent version", facts.sweep.agent_version[:12])
    yield option("edition", "edition", conditions.edition)
    yield option("time limit", "time_limit_seconds", wording.duration(conditions.time_limit_seconds))
    yield option("runtime", "runtime", attempt.runtime if attempt else conditions.runtime)
    yield option("placement", "placement", attempt.placement if attempt else conditions.placement)
    if attempt is not None and attempt.job:
        yield _Setting("job", f"{attempt.job} on {attempt.node}" if attempt.node else attempt.job)
    yield option("network", "network", conditions.network)
    yield option("processors", "cpus", f"{resources.cpus:g}")
    memory = wording.size(resources.memory_bytes) if resources.memory_bytes else "not limited"
    yield option("memory", "memory_bytes", memory)
    yield option("GPUs", "gpus", "all" if resources.gpus < 0 else str(resources.gpus))
    yield option("runs per GPU", "runs_per_gpu", str(resources.runs_per_gpu))
    if conditions.models.gateway:
        yield option("model gateway", "gateway", ", ".join(conditions.models.gateway))
    if conditions.obfuscated:
        yield option("description", "obfuscated", "obfuscated")
    if attempt is not None:
        yield _Setting(
            "machine", (attempt.hardware.in_words() if attempt.hardware else "") or wording.UNKNOWN
        )
        yield _Setting("image digest", attempt.image or "none")
        if attempt.recipe:
            yield _Setting("image built from", attempt.recipe)
        yield _Setting("directory", str(facts.directory))
    for name, text in order_facts(order) if order is not None else ():
        yield _Setting(name, text)
    if facts.competition is not None:
        metric = facts.competition.metric.name
        arrow = better_arrow(facts.competition.thresholds, drawing.signs)
        yield _Setting("metric", f"{metric}, {wording.better(facts.competition.thresholds)} {arrow}")


_CONFIG = (
    NounField[tuple[str, Cell]]("name", lambda row, _: row[0], _CONFIG_NAME, title="", role="dim"),
    NounField[tuple[str, Cell]]("value", lambda row, _: row[1], 10, grows=REST, title=""),
)


class ConfigurationPane(Pane):
    """The whole configuration."""

    name = "config"

    def read(self, facts: RunFacts) -> Order | None:
        """Read the order that the runner got."""
        return read_order(facts)

    def lines(self, view: PaneView) -> list[Line]:
        """Draw the configuration."""
        return configuration_lines(view.facts, self.data, view.width, view.drawing)

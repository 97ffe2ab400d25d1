"""Export a row: as text with a disclosure of its conditions, a bundle of its reports, or a data frame of its runs."""

from __future__ import annotations

import json
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench_console.competitions import registry
from mlebench_console.competitions.judging import Judgement
from mlebench_console.competitions.model import Edition
from mlebench_console.engine.grading.batch import REPORT_SUFFIX, batch_document
from mlebench_console.engine.grading.report import Report, make_report
from mlebench_console.engine.model_costs import CALLS, CURRENCY, TOKENS
from mlebench_console.engine.rungroups import (
    MAPPING_NAME,
    SUBMISSION,
    ExportedRun,
    group_name,
    run_id_for,
    write_group,
    write_mapping,
)
from mlebench_console.engine.scoreboard.audit import RunAudit, audits_of
from mlebench_console.engine.scoreboard.insight import ending_of
from mlebench_console.engine.scoreboard.integrity import IntegritySummary, integrity_document, summary_of
from mlebench_console.engine.scoreboard.model import (
    COLUMNS,
    FLAGS,
    OBFUSCATED,
    REPORTED,
    Cell,
    Costs,
    Evidence,
    Measure,
    Provenance,
    Row,
    Standing,
    Trial,
)
from mlebench_console.foundation.clock import iso
from mlebench_console.foundation.files import csv_text, file_hash, write_json, write_text
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from mlebench_console.foundation.text import limit_text, names_of_limits, plural, spreadsheet_text, visible

if TYPE_CHECKING:
    import pandas as pd

RUNS = "runs"
AUDIT = "audit"
MANIFEST = "manifest.json"
COSTS = "model-costs.csv"
INTEGRITY = "integrity.json"
_FORMAT = "mlebench-console bundle"
_VERSION = 1
_UNKNOWN = "not known"
_IMAGES, _UNKNOWN_IMAGES = "agent images", "none known"

# The headings of the published leaderboard, word for word.
_HEADINGS = (
    "Agent",
    "LLM(s) used",
    "Low == Lite (%)",
    "Medium (%)",
    "High (%)",
    "All (%)",
    "Running Time (hours)",
    "Date",
    "Source Code Available",
    "Grading Reports Available",
)
_LATEX_SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
    }
)
_MARKDOWN_SPECIAL = str.maketrans({"\\": r"\\", "[": r"\[", "|": r"\|", "<": "&lt;"})
_PADDED_FOOTNOTE = "Computed by padding incomplete seeds with failing scores."


# The conditions behind a row


@dataclass(frozen=True)
class Disclosure:
    """The conditions under which a row was made.

    Attributes:
        seeds_done: complete seeds; None: unknown.
        seeds_planned: seeds that the sweeps asked for; None: unknown.
        rerolled: runs that were relaunched though the agent itself had failed, as `competition, seed n`.
        classified: failures that a person classified, as `competition, seed n: class by whom: why`.
        lost: runs that do not count: lost to infrastructure, or stopped by an operator.
        absent: competitions of the benchmark's 75 without a single run.
        unavailable: absent competitions that are no longer offered, with the reason; they still count.
        excluded: competitions that the edition leaves out, with the reason.
        defects: known defects of the edition that affect a competition of the row.
        hardware: the processors, memory and GPUs of a run.
        machines: the distinct machines of its runs, as text.
        images: digests of the images that the agent ran in, each with what it was built from where that is known.
        test_feedback: whether the agent could learn its score on the test set; None: unknown.
        isolated: how many runs could reach neither answers nor network, of how many; None: unknown.
        unenforced: the codes of the limits that nothing enforced in some run.
        runtimes: the distinct runtimes in which exported images ran.
        model_calls: how model calls were counted and in how many runs, as text; empty: unknown.
        tokens, model_costs: of these calls, as text; empty: unknown.
        integrity: results of detectors and reviews of own runs; None: there are none.
        descriptions: `obfuscated` where they hid the competition's name; empty: unknown.
        further: other conditions that are not as usual, as texts by the names of options.
    """

    edition: str
    agent: str
    agent_version: str
    seeds_done: int | None
    seeds_planned: int | None
    padded: bool
    rerolled: tuple[str, ...]
    classified: tuple[str, ...]
    lost: tuple[str, ...]
    absent: tuple[str, ...]
    unavailable: tuple[tuple[str, str], ...]
    excluded: tuple[tuple[str, str], ...]
    defects: tuple[tuple[str, str], ...]
    hours: float | None
    hardware: str
    network: str
    images: tuple[str, ...]
    machines: tuple[str, ...]
    test_feedback: bool | None
    isolated: tuple[int, int] | None
    unenforced: tuple[str, ...]
    demo: bool
    model_calls: str = ""
    tokens: str = ""
    model_costs: str = ""
    descriptions: str = ""
    further: tuple[tuple[str, str], ...] = ()
    runtimes: tuple[str, ...] = ()
    integrity: IntegritySummary | None = None

    def facts(self) -> tuple[tuple[str, str], ...]:
        """List all conditions as pairs of a name and a text, in reading order."""
        return tuple(
            (name, text or (_UNKNOWN_IMAGES if name == _IMAGES else _UNKNOWN)) for name, text in self._facts()
        )

    def unknown(self) -> tuple[str, ...]:
        """List the names of the conditions that are not known."""
        return tuple(name for name, text in self._facts() if not text)

    def _facts(self) -> tuple[tuple[str, str], ...]:
        """List all conditions; the text of one that is not known is empty."""
        return (
            *((("data", "synthetic: a demo, not a result"),) if self.demo else ()),
            ("edition", self.edition),
            *((("descriptions", "obfuscated"),) if self.descriptions == OBFUSCATED else ()),
            ("agent", " ".join(part for part in (self.agent, self.agent_version) if part)),
            (_IMAGES, ", ".join(self.images)),
            ("complete seeds", _of(self.seeds_done, self.seeds_planned)),
            ("missing results", "counted as no medal" if self.padded else "left out"),
            ("re-rolled seeds", _listed(self.rerolled)),
            ("failures classified by hand", _listed(self.classified)),
            ("runs that do not count", _listed(self.lost)),
            ("competitions of the 75 without a run", _listed(self.absent)),
            ("of those no longer available", _with_reasons(self.unavailable)),
            ("excluded by the edition", _with_reasons(self.excluded)),
            (
                "known defects that touch it",
                _listed(tuple(dict.fromkeys(name for name, _ in self.defects))),
            ),
            ("time limit", "" if self.hours is None else limit_text(self.hours)),
            ("hardware per run", self.hardware),
            ("machines", "; ".join(self.machines)),
            ("network policy", self.network),
            *(
                (("further conditions", ", ".join(f"{name} {text}" for name, text in self.further)),)
                if self.further
                else ()
            ),
            ("isolated runs", self._isolation()),
            ("model calls", self.model_calls),
            *((("tokens", self.tokens),) if self.tokens else ()),
            *((("cost of models", self.model_costs),) if self.model_costs else ()),
            *(() if self.integrity is None else self._integrity(self.integrity)),
            ("test-set feedback", {True: "yes", False: "no", None: ""}[self.test_feedback]),
        )

    @staticmethod
    def _integrity(summary: IntegritySummary) -> tuple[tuple[str, str], ...]:
        facts = [("integrity", summary.in_words())]
        if summary.flagged:
            facts.append(("runs that detectors flag, none of them excluded", _listed(summary.flagged)))
        if summary.reviewed:
            facts.append(("findings reviewed by hand", _listed(summary.reviewed)))
        return tuple(facts)

    def _isolation(self) -> str:
        counted = "" if self.isolated is None else _of(*self.isolated)
        by = f", by {', '.join(self.runtimes)}" if self.runtimes else ""
        missing = f"; limits not enforced: {names_of_limits(self.unenforced)}" if self.unenforced else ""
        return f"{counted or _UNKNOWN}{by}{missing}" if counted or by or missing else ""


def disclose(evidence: Evidence, row: Row) -> Disclosure:
    """Gather the conditions of a row.

    Agents of our own runs never learn a score; for imported reports that is unknown.
    """
    found = [trial.provenance for trial in evidence.trials if trial.provenance is not None]
    isolated = [one.attempt.isolated for one in found if one.attempt.isolated is not None]
    edition = _known_edition(evidence.conditions.edition)
    covered = evidence.competitions
    absent = tuple(name for name in registry.splits()["split75"] if name not in set(covered))
    return Disclosure(
        edition=evidence.conditions.edition,
        agent=evidence.conditions.agent,
        agent_version=evidence.conditions.agent_version,
        seeds_done=row.seeds_done,
        seeds_planned=row.seeds_planned,
        padded=row.padded,
        rerolled=tuple(trial.name for trial in evidence.trials if trial.rerolls),
        classified=tuple(
            f"{trial.name}: {text}"
            for trial in evidence.trials
            if trial.provenance is not None
            for text in trial.provenance.classified
        ),
        lost=tuple(
            f"{trial.name}: {trial.text}" for trial in evidence.trials if trial.ended and trial.earned is None
        ),
        absent=absent,
        unavailable=tuple((name, reason) for name, reason in evidence.unavailable.items() if name in absent),
        excluded=tuple(
            (name, reason)
            for name in registry.splits()["split75"]
            if edition == "corrected" and (reason := registry.get(name).excluded)
        ),
        defects=tuple((name, text) for name in covered for text in registry.get(name).defects_in(edition)),
        hours=row.hours,
        hardware=evidence.conditions.hardware,
        network=evidence.conditions.network,
        descriptions=evidence.conditions.descriptions,
        further=evidence.conditions.further or (),
        images=tuple(sorted({one.image for one in found} - {""})),
        machines=tuple(sorted({one.machine for one in found} - {""})),
        test_feedback=False if evidence.table == "own" else None,
        isolated=(sum(isolated), len(isolated)) if evidence.table == "own" else None,
        unenforced=tuple(sorted({code for one in found for code in one.attempt.unenforced})),
        runtimes=tuple(sorted({one.runtime for one in found} - {""})),
        demo=row.demo,
        integrity=summary_of(evidence),
        model_calls=_model_calls(row.costs, evidence.conditions.network),
        tokens="" if row.costs is None else row.costs.tokens_in_words(),
        model_costs="" if row.costs is None else row.costs.cost_in_words(),
    )


def _model_calls(costs: Costs | None, network: str) -> str:
    if costs is None:
        return ""
    around = "; calls around the gateway are not counted" if costs.measured and network == "open" else ""
    return f"{costs.counted_in_words()}{around}"


def _known_edition(name: str) -> Edition:
    """Return the edition of a name; an unknown one counts as v1."""
    return "corrected" if name == "corrected" else "v1"


def _of(part: int | None, whole: int | None) -> str:
    return " of ".join(str(value) for value in (part, whole) if value is not None)


def _with_reasons(found: Sequence[tuple[str, str]]) -> str:
    return _listed(tuple(f"{name} ({reason})" for name, reason in found))


def _listed(names: tuple[str, ...]) -> str:
    return f"{len(names)}: {'; '.join(names)}" if names else "none"


# What a row lacks


# Published rows are over this many seeds or more.
USUAL_SEEDS = 3


def shortcomings(row: Row, disclosure: Disclosure) -> tuple[tuple[str, str], ...]:
    """Return what a row lacks before it is ready for the leaderboard, the gravest first.

    Each is a pair of what it is about (`data`, `row`, `runs`, `competitions`, `seeds`, `agent`, `models`, `integrity`
    or `conditions`) and a text of what is lacking.
    """
    found: list[tuple[str, str]] = []
    if disclosure.demo:
        found.append(("data", "they are synthetic: a demo is never a result"))
    if row.conflict:
        found.append(("row", f"its runs can't share one: {row.conflict}"))
    empty = ", ".join(name.capitalize() for name in COLUMNS if row.columns[name].cell is None)
    without = f": no figure for {empty}" if empty and not row.conflict else ""
    if disclosure.absent:
        of = len(registry.splits()["split75"])
        found.append(("competitions", f"{len(disclosure.absent)} of {of} have no run{without}"))
    if row.running:
        interim = None if row.own is None else row.own.interim
        count = "some" if interim is None else f"{interim.runs - interim.ended:,} of {interim.runs:,}"
        found.append(("runs", f"{count} have not ended{'' if disclosure.absent else without}"))
    done, planned = disclosure.seeds_done, disclosure.seeds_planned
    if done is not None and planned is not None and done < planned:
        found.append(("seeds", f"{done} of {planned} complete"))
    elif done is not None and done < USUAL_SEEDS:
        found.append(("seeds", f"{done}; published rows have {USUAL_SEEDS} or more"))
    if not row.agent:
        found.append(("agent", "its name is missing"))
    if not row.llms:
        found.append(("models", "their names are missing"))
    summary = disclosure.integrity
    if summary is not None and not summary.layers:
        found.append(("integrity", "no detector has looked at its runs"))
    if summary is not None and summary.flagged:
        flagged = plural(len(summary.flagged), "flagged run")
        found.append(("integrity", f"{flagged} that nobody has reviewed"))
    if unknown := disclosure.unknown():
        found.append(("conditions", f"not known: {', '.join(unknown)}"))
    return tuple(found)


# A row as text


class RowFormat(StrEnum):
    """The formats of an exported row."""

    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"
    LATEX = "latex"

    @property
    def suffix(self) -> str:
        """The suffix of a file of this format."""
        return {"markdown": ".md", "latex": ".tex"}.get(self, f".{self}")


def row_text(row: Row, disclosure: Disclosure, form: RowFormat = RowFormat.MARKDOWN) -> str:
    """Return a row with the headings of the published leaderboard, and its disclosure."""
    return {
        RowFormat.MARKDOWN: _markdown,
        RowFormat.CSV: _csv,
        RowFormat.JSON: _json,
        RowFormat.LATEX: _latex,
    }[form](row, disclosure)


def _row_cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row under the headings of the published leaderboard."""
    return (
        row.name if row.agent == row.name or not row.agent else f"{row.agent} ({row.name})",
        row.llms,
        *(_cell(row.columns.get(column)) for column in COLUMNS),
        "" if row.hours is None else f"{row.hours:.4g}",
        row.date,
        _mark(row.source_available),
        _mark(row.reports_available),
    )


def _cell(standing: Standing | None) -> str:
    if standing is None or standing.cell is None:
        return "-" if standing is None or not standing.covered else f"{standing.covered}/{standing.of} run"
    return _figures(standing.cell)


def _figures(cell: Cell) -> str:
    """Write a percentage; that of one seed has no error."""
    return str(cell) if cell.has_error else f"{cell.figures()} (1 seed)"


def _mark(available: bool | None) -> str:
    return {True: "✓", False: "X", None: ""}[available]


def _extra(row: Row) -> tuple[tuple[str, str], ...]:
    """Return the columns beyond the published ones: user-made splits, a partial row's own competitions, and costs."""
    made = [(name, _cell(standing)) for name, standing in row.columns.items() if name not in COLUMNS]
    whole = all(standing.cell is not None for standing in row.columns.values())
    if row.own is not None and row.own.cell is not None and not whole:
        made.append((f"Its own {row.own.of} competitions (%)", _figures(row.own.cell)))
    costs = row.costs
    if costs is not None and costs.tokens_per_run is not None:
        made.append(("Tokens per run", f"{costs.tokens_per_run:,.0f}{_over(costs.measured, costs.runs)}"))
        if costs.per_run is not None:
            over = _over(costs.priced, costs.runs)
            made.append((f"Models per run ({CURRENCY})", f"{costs.per_run:,.2f}{over}"))
            medal = "-" if costs.per_medal is None else f"{costs.per_medal:,.2f}{over}"
            made.append((f"Models per medal ({CURRENCY})", medal))
    return tuple(made)


def _over(part: int, whole: int) -> str:
    """Return how many runs a mean is over, as a suffix; empty if it is over all."""
    return "" if part == whole else f" ({part}/{whole} runs)"


def row_notes(row: Row) -> tuple[str, ...]:
    """Return notes that a reader must know before the numbers of a row, one sentence each."""
    notes = []
    if row.padded:
        notes.append(_PADDED_FOOTNOTE)
    if row.demo:
        notes.append("Synthetic data: a demo, not a result.")
    if row.conflict:
        notes.append(f"No numbers: {row.conflict}.")
    if row.table == "imported":
        notes.append(f"{REPORTED.capitalize()}.")
    if row.running:
        notes.append("Still running: complete seeds only.")
    return tuple(notes)


def _markdown(row: Row, disclosure: Disclosure) -> str:
    extra = _extra(row)
    headings = (*_HEADINGS, *(name for name, _ in extra))
    cells = (*_row_cells(row), *(value for _, value in extra))
    lines = [_table_line(headings), _table_line(["---"] * len(headings)), _table_line(cells), ""]
    lines += [f"*{_markdown_safe(note)}*" for note in row_notes(row)]
    lines += ["", "<details><summary>How this row was made</summary>", ""]
    lines += [f"- {name}: {_markdown_safe(text)}" for name, text in disclosure.facts()]
    return "\n".join([*lines, "", "</details>", ""])


def _table_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_markdown_safe(cell) for cell in cells) + " |"


def _markdown_safe(text: str) -> str:
    """Return text that makes no element, link, image or cell."""
    return visible(text).translate(_MARKDOWN_SPECIAL)


def _csv(row: Row, disclosure: Disclosure) -> str:
    """Return one line with the columns of the published leaderboard.csv, below the disclosure as comment lines."""
    agent = spreadsheet_text(row.agent or row.name)
    values = {"table": row.table, "agent": agent, "llms": spreadsheet_text(row.llms)}
    for column in COLUMNS:
        cell = row.columns[column].cell
        values[f"{column}_mean"] = "" if cell is None else f"{cell.mean:.2f}"
        values[f"{column}_sem"] = "" if cell is None else f"{cell.sem:.2f}"
    yes_no = {True: "yes", False: "no", None: ""}
    values |= {
        "hours": "" if row.hours is None else f"{row.hours:g}",
        "date": row.date,
        "source_available": yes_no[row.source_available],
        "reports_available": yes_no[row.reports_available],
        "padded_missing_seeds": yes_no[row.padded],
        "note": spreadsheet_text(row.note),
    }
    comments = "".join(f"# {name}: {visible(text)}\n" for name, text in disclosure.facts())
    return comments + csv_text([values.keys(), values.values()])


def _json(row: Row, disclosure: Disclosure) -> str:
    return json.dumps(row_document(row, disclosure), ensure_ascii=False, indent=1) + "\n"


def row_document(row: Row, disclosure: Disclosure) -> dict[str, Any]:
    """Return the row with full precision, every measure and 95 % interval, and its disclosure."""
    return {
        "agent": row.agent,
        "name": row.name,
        "llms": row.llms,
        "hours": row.hours,
        "date": row.date,
        "source_available": row.source_available,
        "reports_available": row.reports_available,
        "note": row.note,
        "conflict": row.conflict,
        "columns": columns_document(row),
        "costs": None if row.costs is None else row.costs.document(),
        "disclosure": asdict(disclosure),
    }


def columns_document(row: Row) -> dict[str, Any]:
    """Return the numbers of a row as they stand in JSON documents, by column name."""
    columns = dict(row.columns) | ({} if row.own is None else {"own": row.own})
    return {
        name: {
            "covered": standing.covered,
            "of": standing.of,
            "measures": measures_document(
                standing.measures or ({Measure.ANY_MEDAL: standing.cell} if standing.cell else {})
            ),
        }
        for name, standing in columns.items()
    }


def measures_document(measures: Mapping[Measure, Cell]) -> dict[str, Any]:
    """Return percentages as they stand in JSON documents, by measure name."""
    return {
        measure.value: {
            "mean": cell.mean,
            "sem": cell.sem,
            "seeds": cell.n,
            "interval_95": list(cell.interval()),
            "wilson_95": None if (wilson := cell.wilson()) is None else list(wilson),
        }
        for measure, cell in measures.items()
    }


def _latex(row: Row, disclosure: Disclosure) -> str:
    """Return a line of a LaTeX table for the columns up to the date, with the disclosure as comments."""
    facts = [f"% {name}: {visible(text)}" for name, text in disclosure.facts()]
    headings = " & ".join(heading.replace("%", r"\%") for heading in _HEADINGS[:8])
    cells = " & ".join(visible(cell).translate(_LATEX_SPECIAL) for cell in _row_cells(row)[:8])
    notes = [f"% {visible(note)}" for note in row_notes(row)]
    return "\n".join([*facts, *notes, f"% {headings}", rf"{cells} \\", ""])


# The bundle of a row, whose `runs` folder MLE-bench's own aggregation can read


def write_bundle(
    folder: Path,
    evidence: Evidence,
    row: Row,
    *,
    now: float,
    with_files: bool = False,
    state_dir: Path | None = None,
) -> Path:
    """Write a bundle into a new folder, which appears in one step, and return the path of its manifest.

    For a padded row, the reports contain the missing results too. With a state directory, the bundle gets audit
    trails and final submissions of own runs, so that it can be verified. With files, it gets logs and code.

    Raises:
        UsageProblem: the folder exists, or the runs of the evidence can't share a row.
        DataProblem: there is no result, or the folder can't be written.
    """
    if folder.exists():
        raise UsageProblem(f"{folder} already exists", "", "Give the name of a new folder.")
    if evidence.conflict:
        raise UsageProblem(f"{evidence.name} does not make a row", evidence.conflict)
    disclosure = disclose(evidence, row)
    partial = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.partial")
    try:
        write_runs(partial / RUNS, evidence, pad_missing=row.padded, now=now, with_files=with_files)
        for form in RowFormat:
            write_text(partial / f"row{form.suffix}", row_text(row, disclosure, form))
        if found := integrity_document(evidence):
            write_json(partial / INTEGRITY, found)
        if row.costs is not None:
            write_text(partial / COSTS, csv_text(_cost_lines(evidence)))
        if state_dir is not None:
            _write_audits(partial, audits_of(state_dir, evidence), state_dir)
        write_json(
            partial / MANIFEST,
            {
                "format": _FORMAT,
                "version": _VERSION,
                "created_at": iso(now),
                "experiment_id": evidence.name,
                "edition": evidence.conditions.edition,
                "padded": row.padded,
                "demo": row.demo,
                "files": _checksums(partial),
            },
        )
        partial.rename(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise DataProblem(f"{folder} can't be written", error.strerror or str(error)) from error
    return folder / MANIFEST


def _cost_lines(evidence: Evidence) -> Iterator[Sequence[object]]:
    """Yield the lines of a table of each run's model calls, tokens and cost; an unknown cost is empty."""
    yield (
        "competition_id",
        "seed",
        "result_counts",
        "counted",
        *CALLS,
        *TOKENS,
        "cost_usd",
        "unpriced_models",
    )
    for trial in evidence.trials:
        if trial.costs is None:
            continue
        spent = trial.costs.measured
        numbers: list[object] = [""] * (len(CALLS) + len(TOKENS) + 2)
        if spent is not None:
            numbers = [
                *(getattr(spent, name) for name in (*CALLS, *TOKENS)),
                "" if spent.cost is None else f"{spent.cost:.6f}",
                spreadsheet_text(" ".join(spent.unpriced)),
            ]
        yield (trial.competition_id, trial.seed, trial.counts, trial.costs.counted, *numbers)


def verify_bundle(folder: Path) -> dict[str, object]:
    """Check a bundle's files against its manifest, and return the manifest.

    Raises:
        DataProblem: it is not a bundle, or files are missing, changed or not listed; it names them.
    """
    manifest, wrong = check_files(folder)
    if wrong:
        raise DataProblem(f"{folder} differs from its manifest", ", ".join(wrong[:5]))
    return manifest


def check_files(folder: Path) -> tuple[dict[str, object], list[str]]:
    """Return a bundle's manifest, and the names of files that are missing, changed or not listed.

    Raises:
        DataProblem: it is not a bundle.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise DataProblem(f"{folder} is not a bundle", f"it has no {MANIFEST}", "'export bundle' writes one.")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        listed = manifest["files"]
        if manifest["format"] != _FORMAT or manifest["version"] != _VERSION:
            raise DataProblem(f"{path} has an unknown format")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataProblem(f"{folder} is not a bundle", str(error)) from error
    found = _checksums(folder)
    wrong = sorted(name for name in found.keys() | listed.keys() if found.get(name) != listed.get(name))
    return dict(manifest), wrong


def snapshot_path(sha256: str) -> str:
    """Return the path within a bundle of a final submission."""
    return f"{AUDIT}/submissions/{sha256}.csv"


def _write_audits(folder: Path, audits: Sequence[RunAudit], state_dir: Path) -> None:
    """Write the audit trail of each run, numbered in the order in which runs count, and the final submissions."""
    if audits:
        (folder / snapshot_path("")).parent.mkdir(parents=True)
    for place, audit in enumerate(audits, start=1):
        name = f"{place:04}-{audit.run.competition_id}-seed-{audit.run.seed}.json"
        write_json(folder / AUDIT / name, audit.to_dict())
        final = audit.final
        if final is None or final.file_sha256 != final.submission.sha256:
            continue  # the audit reports that the file is not the one that was submitted
        target = folder / snapshot_path(final.file_sha256)
        shutil.copyfile(state_dir / final.submission.path, target, follow_symlinks=False)


def write_runs(
    runs_dir: Path,
    evidence: Evidence,
    *,
    pad_missing: bool,
    now: float,
    with_files: bool = False,
) -> tuple[int, int]:
    """Write a run group with its report for each seed, and their mapping; return the numbers of runs and groups.

    Raises:
        DataProblem: there is no result.
        OSError: the folder can't be written.
    """
    # The k-th result of a competition is seed k, whatever its run's own seed number.
    groups: list[list[tuple[Trial, frozenset[Measure]]]] = []
    seeds: Counter[str] = Counter()
    for trial, earned in evidence.counted(pad_missing=pad_missing):
        if seeds[trial.competition_id] == len(groups):
            groups.append([])
        groups[seeds[trial.competition_id]].append((trial, earned))
        seeds[trial.competition_id] += 1
    if not groups:
        raise DataProblem(f"{evidence.name} has no result to export")
    runs_dir.mkdir(parents=True, exist_ok=True)
    pairs = []
    for seed, members in enumerate(groups, start=1):
        name = group_name(evidence.conditions.agent or evidence.name, evidence.created_at or now, seed)
        exported, reports = [], []
        for trial, earned in members:
            run_id = run_id_for(trial.competition_id, evidence.name, seed)
            success = trial.earned is not None and not trial.failure
            provenance = trial.provenance if with_files else None
            exported.append(_exported(run_id, success=success, provenance=provenance))
            reports.append(report_of(trial, earned, evidence.conditions.edition, run_id))
        folder = write_group(runs_dir, name, exported)
        write_json(folder / f"{name.partition('_')[0]}{REPORT_SUFFIX}", batch_document(reports))
        pairs.append((evidence.name, name))
    write_mapping(runs_dir / MAPPING_NAME, pairs)
    return seeds.total(), len(groups)


def _exported(run_id: str, *, success: bool, provenance: Provenance | None) -> ExportedRun:
    if provenance is None or not provenance.folder.is_dir():
        return ExportedRun(run_id, success)
    graded = [one for one in provenance.submissions if one.standing is not None]
    snapshot = provenance.state_dir / graded[-1].path if graded else None
    return ExportedRun(
        run_id, success, provenance.folder, snapshot if snapshot and snapshot.is_file() else None
    )


def report_of(trial: Trial, earned: frozenset[Measure], edition: str, run_id: str) -> Report:
    """Return a trial as a report; its flags are the measures that it earned, nothing is graded again."""
    message = trial.text if trial.earned is not None else f"counted as no medal (padding): {trial.text}"
    judgement = Judgement("no_file", None, message)
    if Measure.VALID in earned:
        judgement = (
            Judgement("scored", None, message)
            if trial.score is None
            else Judgement.scored(trial.score, message)
        )
    elif Measure.SUBMISSION in earned:
        judgement = Judgement("rejected", None, message)
    made = make_report(
        registry.get(trial.competition_id),
        judgement,
        Path(run_id, SUBMISSION) if Measure.SUBMISSION in earned else None,
        _known_edition(edition),
        "" if trial.decided_at is None else iso(trial.decided_at),
    )
    flags: dict[str, Any] = {flag: measure in earned for flag, measure in FLAGS.items()}
    return replace(made, **flags)


def _checksums(folder: Path) -> dict[str, dict[str, object]]:
    return {
        str(path.relative_to(folder)): {"sha256": file_hash(path), "bytes": path.stat().st_size}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / MANIFEST
    }


# A data frame for notebooks


def trials_frame(evidence: Evidence) -> pd.DataFrame:
    """Return a data frame with one line per trial, in the order in which they count.

    The measures of a trial that counts for nothing are missing values.
    """
    import pandas as pd

    trials = evidence.trials
    spending = [None if trial.costs is None else trial.costs.measured for trial in trials]
    competitions = [registry.get(trial.competition_id) for trial in trials]
    return pd.DataFrame(
        {
            "competition_id": [trial.competition_id for trial in trials],
            "split": [competition.complexity for competition in competitions],
            "category": [competition.category for competition in competitions],
            "seed": [trial.seed for trial in trials],
            "ending": [ending_of(trial) for trial in trials],
            "score": pd.array([trial.score for trial in trials], dtype="float64"),
            **{
                measure.value: pd.array(
                    [None if trial.earned is None else trial.has(measure) for trial in trials],
                    dtype="boolean",
                )
                for measure in Measure
            },
            "seconds": pd.array([trial.seconds for trial in trials], dtype="float64"),
            "rerolls": [trial.rerolls for trial in trials],
            "tokens": pd.array([None if one is None else one.tokens for one in spending], dtype="Int64"),
            "cost": pd.array([None if one is None else one.cost for one in spending], dtype="float64"),
            "text": [trial.text for trial in trials],
            "note": [trial.note or (REPORTED if evidence.table == "imported" else "") for trial in trials],
            "tags": [" ".join(trial.tags) for trial in trials],
        }
    )

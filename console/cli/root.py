"""The root command: which commands there are, the flags before them, and what happens without any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from console.cli.invocation import Appearance, Invocation
from console.cli.lazy import Entry, LazyGroup, new_app
from console.cli.light_values import take_as_they_are

if TYPE_CHECKING:
    from typer._click import Context, Parameter


class Root(LazyGroup):
    """Every command, in the order in which an operator meets them."""

    entries = {  # noqa: RUF012  # a class-level table that nobody changes
        "demo": Entry("console.cli.demo", "Open the console on a demo sweep with synthetic data."),
        "doctor": Entry("console.cli.doctor", "Check what this machine has and lacks, with next steps."),
        "status": Entry("console.cli.status", "Tell how the engine, the sweeps and the disks are."),
        "watch": Entry("console.cli.watch", "Print how everything is at intervals, in plain lines."),
        "serve": Entry("console.cli.serve", "Show the console in a browser, on this machine only."),
        "engine": Entry("console.cli.engine", "Start, stop and watch the engine that does the work."),
        "sweep": Entry("console.cli.sweep", "Launch and steer sweeps: an agent on competitions and seeds."),
        "runs": Entry("console.cli.runs", "List, follow, retry, stop and classify single runs."),
        "images": Entry("console.cli.images", "Build, list and check container images."),
        "prepare": Entry("console.cli.prepare", "Prepare datasets: download, verify, extract, split."),
        "datasets": Entry("console.cli.datasets", "List, check, verify, stop and prune datasets."),
        "competitions": Entry("console.cli.competitions", "Show the benchmark's competitions and defects."),
        "grade-sample": Entry("console.cli.grade_sample", "Grade one submission file."),
        "grade": Entry("console.cli.grade", "Grade many submissions, listed in a JSONL file."),
        "make-submission": Entry(
            "console.cli.make_submission", "List a run group's submissions in a JSONL file for 'grade'."
        ),
        "validate": Entry("console.cli.validate", "Tell whether a submission is valid, without its score."),
        "scoreboard": Entry("console.cli.scoreboard", "Show own experiments beside the published rows."),
        "aggregate": Entry(
            "console.cli.aggregate", "Aggregate runs, grading reports or a table of outcomes."
        ),
        "compare": Entry("console.cli.compare", "Compare two experiments by competition."),
        "insight": Entry("console.cli.insight", "Tell what lies behind a row."),
        "report": Entry("console.cli.report", "Write one self-contained HTML page of an experiment."),
        "export": Entry(
            "console.cli.export", "Export a row, a bundle to hand in, run groups of MLE-bench, or plots."
        ),
        "import": Entry(
            "console.cli.import_", "Import reports of MLE-bench onto the scoreboard, or newer published rows."
        ),
        "dev": Entry("console.cli.dev", "Keep the benchmark's own facts up to date."),
        "completion": Entry("console.cli.completion", "Print the completion script for a shell."),
    }

    def get_params(self, ctx: Context) -> list[Parameter]:
        """The flags before a command, which need no validation library."""
        found = super().get_params(ctx)
        take_as_they_are(found)
        return found


app = new_app(
    "Prepare, run, watch and grade MLE-bench. Without a command: open the console.",
    cls=Root,
    invoke_without_command=True,
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad data, 4 unusable state, 5 missing from this"
    " machine, 130 interrupted.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mlebench-console {version('mlebench-console')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    state_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the state lies (MLEBENCH_STATE_DIR).")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where datasets lie (MLEBENCH_DATA_DIR).")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The configuration (MLEBENCH_CONFIG).")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Work on the demo instead of your own state.")] = False,
    screen: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Where the console opens: a screen, sweep:ID or run:NUMBER."),
    ] = None,
    readonly: Annotated[
        bool, typer.Option("--readonly", help="Open the console without the keys that change anything.")
    ] = False,
    theme: Annotated[
        str | None, typer.Option(metavar="NAME", help="The console's theme: dark, light or mono.")
    ] = None,
    ascii_only: Annotated[
        bool, typer.Option("--ascii", help="Draw the console's signs with ASCII only.")
    ] = False,
    version: Annotated[  # noqa: ARG001  # its callback does the work
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Take the flags that hold for every command."""
    appearance = Appearance(screen, readonly, ascii_only, theme)
    invocation = Invocation(state_dir, data_dir, config, demo, appearance)
    context.obj = invocation
    if context.invoked_subcommand is None:
        from console.cli.opening import open_console

        open_console(invocation.places, appearance, demo=demo)

"""`engine`: start, stop and watch the process that does the work; and an engine for commands that need one."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from mlebench_console.console import wording
from mlebench_console.console.cli.common import Context, Following, Lines, TextCommand, new_group
from mlebench_console.console.cli.output import say, say_logs
from mlebench_console.engine.places import Places
from mlebench_console.foundation.daemons import open_log
from mlebench_console.foundation.folders import make_private
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state import database, datasets, runs

if TYPE_CHECKING:
    from mlebench_console.engine.control import EngineStatus

app = new_group()


@app.command()
def start(context: Context) -> None:
    """Start the engine in the background; it goes on when you log out."""
    from mlebench_console.engine.control import start

    _tell(context, start(context.places))


@app.command()
def stop(
    context: Context, with_runs: Annotated[bool, Option(help="Also stop the runs that are live.")] = False
) -> None:
    """Stop the engine; live runs go on until their deadline, unless --with-runs is given."""
    from mlebench_console.engine.control import status, stop

    places = context.places
    before = status(places)
    after = stop(places, with_runs=with_runs)
    text = "the engine has stopped" if before.running else "no engine was running"
    if before.live and not with_runs:
        is_there = (places.state_dir / database.DATABASE_NAME).exists()
        text += f"; {before.live} live runs go on, and a new engine " + (
            "finds them again"
            if is_there
            else "will not know them: the state's file is gone, restore it from a backup first"
        )
    context.say_result(asdict(after), text)


@app.command()
def status(context: Context) -> None:
    """Show the status of the engine and its host; exit code 1 when it is not running."""
    from mlebench_console.engine.control import status

    current = status(context.places)
    _tell(context, current)
    if not current.running:
        raise typer.Exit(1)


@app.command()
def logs(context: Context, lines: Lines = 50, following: Following = False) -> None:
    """Print the end of the engine's log."""
    from mlebench_console.console.logs.reader import LogFile, one_part

    log = context.places.engine_log
    if not log.exists():
        raise DataProblem(f"there is no {log}", "no engine was started on this state yet")
    say_logs({"": LogFile(log, one_part)}, lines, json=context.json, following=following)


@app.command(cls=TextCommand)
def unit(context: Context) -> None:
    """Print a systemd user unit that keeps the engine running."""
    from mlebench_console.engine.control import unit_text

    say(unit_text(context.places).rstrip("\n"))


@app.command(cls=TextCommand, hidden=True)
def run(context: Context) -> None:
    """Run the engine in the foreground until interrupted."""
    from mlebench_console.engine.control.client import engine_command

    command = engine_command(context.places)
    os.execv(command[0], command)  # noqa: S606  # this process becomes the engine


def _tell(context: Context, current: EngineStatus) -> None:
    context.say_result(asdict(current), engine_text(current))


def engine_text(current: EngineStatus) -> str:
    """Describe the engine's status in lines of text."""
    if not current.running:
        return "engine  not running; start it: mlebench-console engine start"
    up = None if current.started_at is None else time.time() - current.started_at
    waiting = f" ({current.waiting} wait in Slurm)" if current.waiting else ""
    parts = [
        f"engine  running on {current.host or 'this host'}, process {current.pid}, up {wording.duration(up)}",
        f"work    {current.live} live{waiting}, {current.queued} queued, {current.retrying} to be retried",
        f"disk    {wording.size(current.state_disk_free)} free for the state,"
        f" {wording.size(current.data_disk_free)} for data",
    ]
    if current.problem:
        parts.append(f"problem {current.problem}")
    return "\n".join(parts)


@contextmanager
def engine_for(places: Places, data_dir: Path) -> Iterator[Places]:
    """Provide an engine for a data directory; one that was started for this and is idle is stopped in the end.

    An interrupted command leaves the user's own engine at work.
    """
    from mlebench_console.engine.control import ensure_running, status, stop
    from mlebench_console.engine.control.status import owner_path

    if data_dir == places.data_dir:
        was_running = status(places).running
        ensure_running(places)
        goes_on = was_running
        try:
            yield places
        except KeyboardInterrupt:
            goes_on = True
            raise
        finally:
            if not goes_on and _is_idle(places):
                stop(places)
        return
    # One data directory to an engine: the state knows datasets by competition and edition alone.
    folder = Path(tempfile.mkdtemp(prefix="mlebench-prepare-"))
    other = replace(places, data_dir=data_dir, state_dir=folder)
    owner = FileLock(owner_path(other))
    owner.acquire()
    with owner:  # its engine ends by itself when this command is killed
        try:
            ensure_running(other)
            yield other
        finally:
            stop(other)
            _keep_tracebacks(other.engine_log, places)
            shutil.rmtree(folder)


def _keep_tracebacks(log: Path, places: Places) -> None:
    """Append a temporary engine's log to that of the user's own engine, if it contains an error."""
    content = log.read_bytes() if log.exists() else b""
    if b"Traceback" in content:
        make_private(places.state_dir)
        with open_log(places.engine_log) as kept:
            kept.write(content)


def _is_idle(places: Places) -> bool:
    with closing(database.open_for_reading(places.state_dir)) as opened:
        live = sum(runs.live_counts(opened).values()) + runs.queued_count(opened) + len(runs.to_retry(opened))
        return not live and not any(one.state.is_busy for one in datasets.all_datasets(opened))

"""config.toml: its tables, read with their types, and changing one value in it."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar

from foundation import files
from foundation.fields import Bounds, FieldError, read_fields
from foundation.problems import UsageProblem

Value = str | bool | int | float | list[str] | None
_Positive = Annotated[float, Bounds("a number above 0", above=0)]
_Count = Annotated[int, Bounds("a whole number, 1 or more", least=1)]
_Rate = Annotated[float | None, Bounds("a number above 0", above=0)]
_Price = Annotated[float | None, Bounds("a price, 0 or more", least=0)]


def _host_memory_gb() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9


class Table(Protocol):
    """A table of config.toml."""

    TABLE: ClassVar[str]


@dataclass(frozen=True)
class PlaceSettings:
    """Where data and state lie; a flag or the environment wins.

    Attributes:
        runs_dir: where runs' directories and agents lie, on a file system that is shared with the nodes of a batch
            system; in the state's own folder by default.
    """

    TABLE: ClassVar[str] = "places"
    data_dir: str | None = None
    state_dir: str | None = None
    runs_dir: str | None = None


@dataclass(frozen=True)
class EngineSettings:
    """How much of this host the engine may use; by default all of it.

    Attributes:
        cpus: processor slots that live runs may take together.
        memory_gb: what the memory limits of live runs may come to together.
        dataset_workers: datasets that are prepared at once.
        download_workers: datasets that are downloaded at once.
        keep_free_gb: how much of the data directory's disk datasets must leave free.
        download_mb_per_second: what all downloads of datasets may take together; all there is by default.
        download_hours: from when to when they go on each day, such as 22:00-06:00; always by default.
        grading_workers: submissions that are graded at once.
        kaggle_patience_hours: for how long datasets wait for Kaggle while it can't be reached.
    """

    TABLE: ClassVar[str] = "engine"
    cpus: _Positive = field(default_factory=lambda: float(os.cpu_count() or 1))
    memory_gb: _Positive = field(default_factory=_host_memory_gb)
    dataset_workers: _Count = 2
    download_workers: _Count = 3
    keep_free_gb: _Positive = 1.0
    download_mb_per_second: _Rate = None
    download_hours: str = ""
    grading_workers: _Count = 2
    kaggle_patience_hours: _Positive = 24.0

    @property
    def memory_bytes(self) -> int:
        """The memory for runs."""
        return round(self.memory_gb * 1e9)


@dataclass(frozen=True)
class ConsoleSettings:
    """How the console looks; `refresh` is how many seconds it waits before it looks for changes again."""

    TABLE: ClassVar[str] = "console"
    theme: str = "dark"
    ascii: bool = False
    refresh: Annotated[float, Bounds("a number of seconds from 0.1 to 3600", least=0.1, most=3600)] = 0.5


class NotificationKind(StrEnum):
    """What a notification can be about."""

    FINISHED = "finished"
    FAILED = "failed"
    MEDAL = "medal"
    IDLE = "idle"
    DISK = "disk"
    PREPARED = "prepared"
    REFUSED = "refused"
    PROVIDER = "provider"
    BUDGET = "budget"


@dataclass(frozen=True)
class NotificationSettings:
    """What an operator is notified of, and how.

    Attributes:
        bell: ring the terminal of an open console.
        desktop: let that terminal notify the desktop.
        urls: addresses as apprise knows them (webhooks, Slack, mail); they may hold secrets, so no repr shows them.
    """

    TABLE: ClassVar[str] = "notifications"
    on: frozenset[NotificationKind] = frozenset(
        {
            *(NotificationKind.FAILED, NotificationKind.IDLE, NotificationKind.DISK),
            *(NotificationKind.REFUSED, NotificationKind.PROVIDER, NotificationKind.BUDGET),
        }
    )
    bell: bool = False
    desktop: bool = False
    urls: tuple[str, ...] = field(default=(), repr=False)

    @property
    def uses_terminal(self) -> bool:
        """Whether an open console notifies by its terminal."""
        return self.bell or self.desktop


@dataclass(frozen=True)
class Prices:
    """What an hour costs; an unknown price counts as nothing.

    Attributes:
        run_hour: an hour of a run: its machine, without GPUs.
        gpu_hour: an hour of one GPU.
    """

    TABLE: ClassVar[str] = "prices"
    run_hour: _Price = None
    gpu_hour: _Price = None
    currency: str = "USD"


@dataclass(frozen=True)
class SlurmProfile:
    """How a placement of Slurm submits runs; what is empty is left to the cluster.

    Attributes:
        partition, account, qos, constraint, exclude, licences: as sbatch takes them.
        gres: how GPUs are asked for, with `{n}` for how many: `gpu:a100:{n}`, `shard:{n}`.
        options: more options of sbatch, such as `--reservation=mle`.
        leave_out: options that this cluster does not take: `mem`, `cpus-per-task`, `gres` or `comment`.
        max_jobs: how many runs are submitted at once.
        submissions_per_minute: how fast they are.
        poll_seconds: how often squeue is called, for all runs together; less often with very many.
        silent_seconds: for how long a node that can't write anything goes on, and after which it is given up.
        slack_minutes: how much longer than a run's own limits its job may take.
        scratch: a folder on each node's own disk; `$TMPDIR`, else `/tmp`, where it is empty.
        proxy: the site's, by which model gateways on nodes reach providers; without it they go there themselves.
        staging: how public data come to a node: read where they lie, copied to its own disk, or as an image there.
        staging_mb_per_second: how fast they are expected to come, from which follows how long a job may take.
    """

    TABLE: ClassVar[str] = "slurm"
    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    exclude: str = ""
    licences: str = ""
    gres: str = "gpu:{n}"
    options: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    max_jobs: _Count = 100
    submissions_per_minute: _Positive = 30.0
    poll_seconds: _Positive = 30.0
    silent_seconds: _Positive = 300.0
    slack_minutes: _Positive = 10.0
    scratch: str = ""
    proxy: str = ""
    staging: Literal["direct", "copy", "squashfs"] = "direct"
    staging_mb_per_second: _Positive = 50.0


AnyTable = TypeVar("AnyTable", bound=Table)


def read_table(config_file: Path, table: type[AnyTable]) -> AnyTable:
    """Read one table of config.toml; its defaults where the file or the table is not there.

    Raises:
        UsageProblem: the file can't be read, or something in the table is not understood.
    """
    return _read_as(table, read_values(config_file, table.TABLE), f"{config_file}: [{table.TABLE}]")


def slurm_profiles(config_file: Path) -> dict[str, SlurmProfile]:
    """Read the tables `[slurm.NAME]`, by their names; the one named `default` is always there.

    Raises:
        UsageProblem: the file can't be read, or something in one of them is not understood.
    """
    tables = {"default": {}} | read_values(config_file, SlurmProfile.TABLE)
    return {
        name: _read_as(SlurmProfile, values, f"{config_file}: [{SlurmProfile.TABLE}.{name}]")
        for name, values in tables.items()
    }


def _read_as(table: type[AnyTable], values: Any, name: str) -> AnyTable:
    if not isinstance(values, dict):
        raise UsageProblem(f"{name} must be a table")
    try:
        return read_fields(table, values)
    except FieldError as error:
        if error.expected:
            raise UsageProblem(f"{name} {error.name} is not {error.expected}") from error
        known = ", ".join(sorted(error.known))
        raise UsageProblem(f"{name} has no '{error.name}'", "", f"Known are: {known}.") from error


def read_values(config_file: Path, table: str) -> dict[str, Any]:
    """Read one table as it stands; empty where the file or the table is not there.

    Raises:
        UsageProblem: the file can't be read, or what has the table's name is none.
    """
    try:
        values = tomllib.loads(config_file.read_text(encoding="utf-8")).get(table, {})
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageProblem(f"{config_file} can't be read", str(error), "Correct or remove it.") from error
    if not isinstance(values, dict):
        raise UsageProblem(f"{config_file} can't be used", f"'{table}' must be a table, [{table}]")
    return values


FILTERS = "filters"
_FILTER_NAME = re.compile(r"[^\W_][\w.+-]{0,39}")
_LONGEST_FILTER = 500
_NOT_FILTERS = frozenset({"save", "remove", "clear"})


def read_filters(config_file: Path) -> dict[str, str]:
    """Read the operator's saved filters of runs, what each shows by its name.

    Raises:
        UsageProblem: the file can't be read, or something in the table is no filter.
    """
    found = read_values(config_file, FILTERS)
    for name, text in found.items():
        if not isinstance(text, str):
            raise UsageProblem(f"{config_file}: [{FILTERS}] {name} is not a text")
    return found


def save_filter(config_file: Path, name: str, text: str | None) -> None:
    """Keep a filter of runs under a name, or remove the one of this name if the text is None.

    Raises:
        UsageProblem: it can't be kept so.
    """
    if text is not None:
        check_filter(name, text)
    write_value(config_file, FILTERS, name, text)


def check_filter(name: str, text: str) -> None:
    """Refuse what can't be kept as a filter.

    Raises:
        UsageProblem: the name or the text can't be kept.
    """
    if name in _NOT_FILTERS:
        raise UsageProblem(f"'{name}' can't name a filter", f"':filter {name}' means something else")
    if not _FILTER_NAME.fullmatch(name):
        raise UsageProblem(
            f"'{name}' can't name a filter", "", "Use letters, digits, '.', '_', '+' and '-', at most 40."
        )
    if not text.strip() or not text.isprintable() or len(text) > _LONGEST_FILTER:
        raise UsageProblem(
            f"the filter '{name}' can't be saved", f"it must have 1 to {_LONGEST_FILTER} letters"
        )


# Tables that are read elsewhere, whose keys are names that operators give.
_TABLES_OF_NAMES = frozenset({FILTERS, "keys", "providers", "model_prices"})
_TABLES: tuple[type[Table], ...] = (
    *(PlaceSettings, EngineSettings, ConsoleSettings, NotificationSettings),
    *(Prices, SlurmProfile),
)


def require_understood(config_file: Path) -> None:
    """Read every table that has keys of its own.

    Raises:
        UsageProblem: the file can't be read, or something in it is not understood.
    """
    for table in _TABLES:
        if table is not SlurmProfile:
            read_table(config_file, table)
    slurm_profiles(config_file)
    read_filters(config_file)


def unknown_settings(config_file: Path) -> tuple[str, ...]:
    """Say of each table and key in the file that nothing reads it, with the nearest name that there is.

    What can't be read at all is the problem of whoever reads it.
    """
    try:
        content = tomllib.loads(config_file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return ()
    tables = {table.TABLE: table for table in _TABLES}
    names = (*tables, *sorted(_TABLES_OF_NAMES))
    found = []
    for name, values in content.items():
        if name in tables and isinstance(values, dict):
            of_profile = [part for part in values.values() if isinstance(part, dict)]
            parts = of_profile if tables[name] is SlurmProfile else [values]
            known = [field.name for field in fields(tables[name])]  # type: ignore[arg-type]  # all are dataclasses
            found += [
                f"{config_file.name}: [{name}] has no '{key}', which is ignored{_nearest(key, known)}"
                for part in parts
                for key in part
                if key not in known
            ]
        elif name not in names:
            kind = f"table [{name}]" if isinstance(values, dict) else f"setting '{name}' outside of tables"
            found.append(f"{config_file.name}: there is no {kind}, it is ignored{_nearest(name, names)}")
    return tuple(found)


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean '{close[0]}'?" if close else ""


def write_value(
    config_file: Path,
    table: str,
    name: str,
    value: Value,
    *,
    check: Callable[[Path], object] | None = None,
) -> None:
    """Set `name` in `[table]`, or take it out if the value is None; all else stays as it is written.

    With `check` the whole file, as it would become, is judged first under a name of its own.

    Raises:
        UsageProblem: the file can't be read or written, or the check refuses it; then it is as before.
    """
    try:
        # A link to the file, as people keep them among their dotfiles, stays a link.
        place = config_file.resolve()
        before = place.read_text(encoding="utf-8") if place.exists() else ""
        after = with_value(before, table, name, value)
        place.parent.mkdir(parents=True, exist_ok=True)
        mode = place.stat().st_mode & 0o777 if place.exists() else 0o600
        with files.replacing(place) as stream:
            # Addresses for notifications hold tokens: nobody may read more than before.
            Path(stream.name).chmod(mode)
            stream.write(after.encode())
            stream.flush()
            if check is not None:
                check(Path(stream.name))
    except UsageProblem as problem:
        what, why = (text.replace(stream.name, str(config_file)) for text in (problem.what, problem.why))
        raise UsageProblem(what, why, problem.next_step) from problem
    except (OSError, ValueError) as error:
        raise UsageProblem(f"{config_file} can't be changed", str(error)) from error


def with_value(text: str, table: str, name: str, value: Value) -> str:
    """The text of a TOML file with one value set, or taken out if it is None.

    Raises:
        ValueError: the text is not TOML.
    """
    import tomlkit

    document = tomlkit.parse(text)
    values = document.get(table)
    if values is None and value is not None:
        values = document[table] = tomlkit.table()
    if not isinstance(values, MutableMapping | None):
        raise ValueError(f"'{table}' must be a table, [{table}]")
    if values is not None and value is not None:
        values[name] = value
    elif values is not None:
        values.pop(name, None)
    return tomlkit.dumps(document)

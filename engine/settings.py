"""config.toml: read its tables as typed settings, and change single values."""

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

from mlebench_console.foundation import files
from mlebench_console.foundation.fields import Bounds, FieldError, read_fields
from mlebench_console.foundation.problems import UsageProblem

Value = str | bool | int | float | list[str] | None
_Positive = Annotated[float, Bounds("a number above 0", above=0)]
_Count = Annotated[int, Bounds("a whole number, 1 or more", least=1)]
_Rate = Annotated[float | None, Bounds("a number above 0", above=0)]
_Price = Annotated[float | None, Bounds("a price, 0 or more", least=0)]


def _host_memory_gb() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9


class SettingsTable(Protocol):
    """A table of config.toml."""

    TABLE: ClassVar[str]


@dataclass(frozen=True)
class PlaceSettings:
    """Where data and state are stored; a flag or the environment has precedence.

    Attributes:
        runs_dir: where runs' directories and agents are stored, on a file system that is shared with the nodes of a
            batch system; by default in the state directory.
    """

    TABLE: ClassVar[str] = "places"
    data_dir: str | None = None
    state_dir: str | None = None
    runs_dir: str | None = None


@dataclass(frozen=True)
class EngineSettings:
    """How much of this host the engine may use; by default all of it.

    Attributes:
        cpus: processor slots for all live runs together.
        memory_gb: the sum of the memory limits of all live runs.
        dataset_workers: how many datasets are prepared at once.
        download_workers: how many datasets are downloaded at once.
        keep_free_gb: how much of the data directory's disk must stay free.
        download_mb_per_second: the rate of all downloads of datasets together; unlimited by default.
        grading_workers: how many submissions are graded at once.
        kaggle_patience_hours: how long datasets wait for Kaggle while it can't be reached.
    """

    TABLE: ClassVar[str] = "engine"
    cpus: _Positive = field(default_factory=lambda: float(os.cpu_count() or 1))
    memory_gb: _Positive = field(default_factory=_host_memory_gb)
    dataset_workers: _Count = 2
    download_workers: _Count = 3
    keep_free_gb: _Positive = 1.0
    download_mb_per_second: _Rate = None
    grading_workers: _Count = 2
    kaggle_patience_hours: _Positive = 24.0

    @property
    def memory_bytes(self) -> int:
        """The memory for runs."""
        return round(self.memory_gb * 1e9)


@dataclass(frozen=True)
class ConsoleSettings:
    """The look of the console; `refresh` is the seconds between two checks for changes."""

    TABLE: ClassVar[str] = "console"
    theme: str = "dark"
    ascii: bool = False
    refresh: Annotated[float, Bounds("a number of seconds from 0.1 to 3600", least=0.1, most=3600)] = 0.5


class NotificationKind(StrEnum):
    """The subjects of notifications."""

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
        bell: ring the bell of an open console's terminal.
        desktop: send desktop notifications through that terminal.
        urls: addresses for apprise (webhooks, Slack, mail); they may contain secrets, so no repr shows them.
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
        """Whether an open console notifies through its terminal."""
        return self.bell or self.desktop


@dataclass(frozen=True)
class Prices:
    """The prices of hours; an unknown price counts as nothing.

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
    """How a placement of Slurm submits runs; empty values are left to the cluster.

    Attributes:
        partition, account, qos, constraint, exclude, licences: values for sbatch.
        gres: how GPUs are requested, with `{n}` for their number: `gpu:a100:{n}`, `shard:{n}`.
        options: further options of sbatch, such as `--reservation=mle`.
        leave_out: options that this cluster does not accept: `mem`, `cpus-per-task`, `gres` or `comment`.
        max_jobs: how many jobs may be submitted at the same time.
        submissions_per_minute: the rate of submissions.
        poll_seconds: how often squeue is called, for all runs together; less often with very many.
        silent_seconds: how long a node that can't write continues, after which its run is given up.
        slack_minutes: how much longer than a run's own limits its job may take.
        scratch: a folder on each node's own disk; if empty, `$TMPDIR`, or else `/tmp`.
        proxy: the site's proxy for model gateways on nodes; without it they connect to providers directly.
        staging: how public data get to a node: read in place, copied to its own disk, or as an image there.
        staging_mb_per_second: the expected rate of staging, from which the time limit of jobs is computed.
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

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions by name; empty where the cluster's default is used."""
        return tuple(filter(None, self.partition.split(",")))


AnyTable = TypeVar("AnyTable", bound=SettingsTable)


def read_table(config_file: Path, table: type[AnyTable]) -> AnyTable:
    """Read one table of config.toml; its defaults if the file or the table is missing.

    Raises:
        UsageProblem: the file can't be read, or the table is not valid.
    """
    return _read_as(table, read_values(config_file, table.TABLE), f"{config_file}: [{table.TABLE}]")


def slurm_profiles(config_file: Path) -> dict[str, SlurmProfile]:
    """Read the tables `[slurm.NAME]` by name; `default` always exists.

    Raises:
        UsageProblem: the file can't be read, or one of the tables is not valid.
    """
    tables = {"default": {}} | read_values(config_file, SlurmProfile.TABLE)
    return {
        name: _read_as(SlurmProfile, values, f"{config_file}: [{SlurmProfile.TABLE}.{name}]")
        for name, values in tables.items()
    }


def _read_as(table: type[AnyTable], values: Any, name: str) -> AnyTable:
    if not isinstance(values, dict):
        raise UsageProblem(f"{name} must be a table")
    # `unknown_settings` reports the others: a mistyped name must not keep a console from opening.
    known = _keys_of(table)
    try:
        return read_fields(table, {key: value for key, value in values.items() if key in known})
    except FieldError as error:
        raise UsageProblem(f"{name} {error.name} is not {error.expected}") from error


def _keys_of(table: type[SettingsTable]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(table))  # type: ignore[arg-type]  # all are dataclasses


def read_values(config_file: Path, table: str) -> dict[str, Any]:
    """Read one table without checking its values; empty if the file or the table is missing.

    Raises:
        UsageProblem: the file can't be read, or the value of this name is not a table.
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


def read_filters(config_file: Path) -> dict[str, str]:
    """Read the operator's saved filters of runs, by their names.

    Raises:
        UsageProblem: the file can't be read, or a value of the table is not a filter.
    """
    found = read_values(config_file, FILTERS)
    for name, text in found.items():
        if not isinstance(text, str):
            raise UsageProblem(f"{config_file}: [{FILTERS}] {name} is not a text")
    return found


def save_filter(config_file: Path, name: str, text: str | None) -> None:
    """Save a filter of runs under a name, or remove the one of this name if the text is None.

    Raises:
        UsageProblem: it can't be saved.
    """
    if text is not None and not _FILTER_NAME.fullmatch(name):
        raise UsageProblem(
            f"'{name}' is not a valid name of a filter",
            "",
            "Use letters, digits, '.', '_', '+' and '-', at most 40.",
        )
    if text is not None and not (text.strip() and text.isprintable() and len(text) <= _LONGEST_FILTER):
        raise UsageProblem(
            f"the filter '{name}' can't be saved",
            f"it must have 1 to {_LONGEST_FILTER} printable characters",
        )
    write_value(config_file, FILTERS, name, text)


# Tables that are read elsewhere, whose keys are chosen by operators.
_TABLES_OF_NAMES = frozenset({FILTERS, "keys", "providers", "model_prices"})
_TABLES: tuple[type[SettingsTable], ...] = (
    *(PlaceSettings, EngineSettings, ConsoleSettings, NotificationSettings),
    *(Prices, SlurmProfile),
)


def require_valid(config_file: Path) -> None:
    """Check every table with known keys.

    Raises:
        UsageProblem: the file can't be read, or is not valid.
    """
    for table in _TABLES:
        if table is not SlurmProfile:
            read_table(config_file, table)
    slurm_profiles(config_file)
    read_filters(config_file)


def unknown_settings(config_file: Path) -> tuple[str, ...]:
    """List the tables and keys of the file that nothing reads, each with the most similar known name.

    An unreadable file is reported by those who read it.
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
            profiles = [part for part in values.values() if isinstance(part, dict)]
            parts = profiles if tables[name] is SlurmProfile else [values]
            known = _keys_of(tables[name])
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
    """Set `name` in `[table]`, or remove it if the value is None; everything else stays as it is written.

    `check` is called with the path of the changed file before it replaces the old one.

    Raises:
        UsageProblem: the file can't be read or written, or the check refuses it; then it is unchanged.
    """
    try:
        # A link to the file, as in collections of dotfiles, stays a link.
        place = config_file.resolve()
        before = place.read_text(encoding="utf-8") if place.exists() else ""
        after = with_value(before, table, name, value)
        place.parent.mkdir(parents=True, exist_ok=True)
        mode = place.stat().st_mode & 0o777 if place.exists() else 0o600
        with files.replacing(place) as stream:
            # Addresses for notifications contain tokens, so the file must not become more readable.
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
    """Return the text of a TOML file with one value set, or removed if it is None.

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

"""Finding competitions and splits by name; reads a competition's facts only when it is asked for.

They are the benchmark's, those in folders that users name, and those that installed packages bring.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from competitions.model import Competition
from competitions.reading import read_competition
from foundation.problems import DataProblem, UsageProblem

OWN_VARIABLE = "MLEBENCH_COMPETITIONS"
"""Names the folders in which users keep competitions of their own, separated as in PATH."""

ENTRY_POINTS = "mlebench_console.competitions"
"""The group of entry points by which packages bring competitions: each names a package that holds their folders."""

_HOME = Path(__file__).parent
_BENCHMARK = "benchmark"
_TASKS = "competitions.tasks"  # the package that their tasks are loaded into
_ALIASES = {"lite": "low", "all": "split75"}
_UNION = ("low", "medium", "high")
# How alike a name must be to be suggested, how much less than the likeliest, and how many of them.
_LIKE = 0.7
_AS_LIKE = 0.1
_MOST_SUGGESTED = 3
_SHORTEST_PART = 3


def all_ids() -> tuple[str, ...]:
    """Every competition's id, the user's own among them, sorted without regard to case."""
    return tuple(_folders(_homes()))


def forget() -> None:
    """Look for competitions, and read their facts and tasks, anew from now on: one was written."""
    _unload(_TASKS)
    _folders.cache_clear()
    read_competition.cache_clear()
    splits.cache_clear()


def get(competition_id: str) -> Competition:
    """The facts of one competition.

    Raises:
        UsageProblem: there is none of that name.
        DataProblem: its facts cannot be read.
    """
    folders = _folders(_homes())
    if competition_id not in folders:
        close = resembling(competition_id, folders)
        raise UsageProblem(
            f"Competition {competition_id!r} is not known",
            next_step=f"Did you mean {' or '.join(close)}?"
            if close
            else "List them: mlebench-console competitions list",
        )
    return read_competition(folders[competition_id])


def readable(ids: Iterable[str]) -> tuple[list[Competition], dict[str, DataProblem]]:
    """The facts of competitions, and the problems of those whose facts can't be read, which hide no others."""
    found, problems = [], {}
    for competition_id in ids:
        try:
            found.append(get(competition_id))
        except DataProblem as problem:
            problems[competition_id] = problem
    return found, problems


def is_own(competition: Competition) -> bool:
    """Whether it is none of the benchmark's: it comes from a user's folder, or with a package."""
    return competition.folder.parent != _HOME


def source_of(competition: Competition) -> str:
    """Where a competition comes from: `benchmark`, a user's folder, or a package's name and version."""
    place = competition.folder.parent
    return next((home.source for home in _homes() if home.folder == place), str(place))


def rules_url(competition: Competition) -> str | None:
    """The page on which a person accepts the competition's rules; None where it is none of Kaggle's."""
    return None if is_own(competition) else f"https://www.kaggle.com/c/{competition.id}/rules"


def resembling(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """The names that may have been meant, the likeliest first: by part, by beginning, or misspelt.

    Names are long and people type the beginning, so that a name is as close as its closest part.
    """
    wanted = text.strip().lower()
    likeness = {name: _likeness(wanted, name.lower()) for name in known} if wanted else {}
    close = [name for name, found in likeness.items() if found >= _LIKE]
    best = max((likeness[name] for name in close), default=0.0)
    close = [name for name in close if likeness[name] > best - _AS_LIKE]
    return tuple(sorted(close, key=lambda name: (-likeness[name], name))[:_MOST_SUGGESTED])


def _likeness(wanted: str, name: str) -> float:
    parts = [name]
    if len(wanted) >= _SHORTEST_PART:
        if wanted in name:
            return 1.0
        parts += [name[: len(wanted)], *name.split("-")]
    return max(difflib.SequenceMatcher(None, wanted, part).ratio() for part in parts)


@dataclass(frozen=True)
class _Home:
    """A folder that holds folders of competitions, and what to call it."""

    folder: Path
    source: str


def _homes() -> tuple[_Home, ...]:
    # by the environment, because the engine's workers and graders inherit it as they are started
    own = os.environ.get(OWN_VARIABLE, "").split(os.pathsep)
    folders = (Path(name).expanduser().absolute() for name in own if name)
    return (
        _Home(_HOME, _BENCHMARK),
        *(_Home(folder, str(folder)) for folder in folders),
        *_homes_in_packages(tuple(sys.path)),
    )


@cache
def _homes_in_packages(search_path: tuple[str, ...]) -> tuple[_Home, ...]:
    """The packages that bring competitions, found without importing them; `search_path` is where they are installed."""
    from importlib.metadata import distributions  # here: it takes longer than all else in this module

    def homes() -> Iterator[_Home]:
        for distribution in distributions(path=list(search_path)):
            for entry in distribution.entry_points.select(group=ENTRY_POINTS):
                source = f"{distribution.name} {distribution.version}"
                try:
                    spec = importlib.util.find_spec(entry.value)
                except ImportError:  # of a package that it lies in
                    spec = None
                places = spec.submodule_search_locations if spec else None
                if not places:
                    raise UsageProblem(
                        f"{source} brings competitions in {entry.value!r}",
                        "there is no such package",
                        "Install it again, or uninstall it.",
                    )
                yield from (_Home(Path(place), source) for place in places)

    return tuple(dict.fromkeys(homes()))


@cache
def _folders(homes: tuple[_Home, ...]) -> Mapping[str, Path]:
    found: dict[str, tuple[Path, _Home]] = {}
    for home in homes:
        if not home.folder.is_dir():
            raise UsageProblem(
                f"{OWN_VARIABLE} names {home.folder}", "there is no such folder", "Correct or unset it."
            )
        for path in home.folder.glob("*/competition.toml"):
            other, first = found.setdefault(path.parent.name, (path.parent, home))
            if other != path.parent:
                raise UsageProblem(
                    f"Competition {path.parent.name!r} is there twice",
                    f"in {first.folder} ({first.source}) and in {home.folder}"
                    if first.source != str(first.folder)
                    else f"in {first.folder} and in {home.folder}",
                    f"Rename the one from {home.source}: an id must not change its meaning.",
                )
    return {name: found[name][0] for name in sorted(found, key=str.lower)}


def load_task(competition: Competition) -> ModuleType:
    """Import the module with the competition's `prepare` and `grade`.

    A folder's name may hold dashes, and operators' folders lie anywhere, so each folder becomes a package here:
    its task.py imports modules that lie beside it with `from . import name`.

    Raises:
        UsageProblem: the competition's task is not written.
        DataProblem: it can't be imported.
    """
    if not competition.available:
        raise UsageProblem(
            f"{competition.id} cannot be prepared or graded here",
            "its task.py is not written",
            "docs/adding-a-competition.md describes how to write one.",
        )
    name = f"{_TASKS}.{competition.folder.name}"
    place = [str(competition.folder)]
    if name in sys.modules and sys.modules[name].__path__ != place:
        _unload(name)  # another competition had the name before
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = place
        sys.modules[name] = package
    try:
        return importlib.import_module(f"{name}.task")
    except Exception as error:  # importing an author's code may raise anything
        raise DataProblem(
            f"{competition.task_path} can't be imported",
            f"{type(error).__name__}: {error}",
            f"Mend it; mlebench-console competitions check {competition.id} shows the traceback.",
        ) from error


def _unload(package: str) -> None:
    for loaded in [each for each in sys.modules if f"{each}.".startswith(f"{package}.")]:
        del sys.modules[loaded]


@cache
def splits() -> Mapping[str, tuple[str, ...]]:
    """The named splits: low, medium, high, split75, dev, systemcard, and the aliases lite and all.

    Raises:
        DataProblem: one names what is no competition of the benchmark.
    """
    path = _HOME / "splits.toml"
    named = {name: tuple(ids) for name, ids in tomllib.loads(path.read_text("utf-8")).items()}
    for name, ids in named.items():
        unknown = [id_ for id_ in ids if not (_HOME / id_ / "competition.toml").is_file()]
        if unknown:
            raise DataProblem(
                f"{path} cannot be used", f"{name} names {', '.join(unknown)}, which is no folder beside it"
            )
    named["split75"] = tuple(sorted((id_ for name in _UNION for id_ in named[name]), key=str.lower))
    return named | {alias: named[name] for alias, name in _ALIASES.items()}


def read_split(path_or_name: str | Path) -> tuple[str, ...]:
    """The members of a named split, or of a file with one id a line (blank lines and # lines skipped).

    Raises:
        UsageProblem: no such split or file, or the file names an unknown competition.
        DataProblem: the file cannot be read.
    """
    named = splits().get(str(path_or_name))
    if named is not None:
        return named
    path = Path(path_or_name)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise UsageProblem(
            f"Split {str(path_or_name)!r} is neither a name nor a file",
            next_step=f"Names: {', '.join(splits())}; or give a file with one competition id a line.",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataProblem(f"Split file {path} cannot be read", str(error)) from error
    ids = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return tuple(get(competition_id).id for competition_id in dict.fromkeys(ids))


def choose(names: Iterable[str]) -> tuple[str, ...]:
    """The competitions that are meant by ids and named splits, in this order, each once.

    Raises:
        UsageProblem: one of them is neither.
    """
    chosen: list[str] = []
    for name in names:
        chosen += splits()[name] if name in splits() else [get(name).id]
    return tuple(dict.fromkeys(chosen))

"""Find competitions and splits by name, and load a competition's facts and task when asked for it.

Competitions are the benchmark's, those in folders that users name, and those that installed packages provide.
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

from mlebench_console.competitions.model import Competition
from mlebench_console.competitions.reading import read_competition
from mlebench_console.foundation.problems import DataProblem, UsageProblem

OWN_VARIABLE = "MLEBENCH_COMPETITIONS"
"""The environment variable that lists users' own folders of competitions, separated as in PATH."""

ENTRY_POINTS = "mlebench_console.competitions"
"""The group of entry points by which packages provide competitions: each names a package that holds their folders."""

_HOME = Path(__file__).parent
_BENCHMARK = "benchmark"
_TASKS = "mlebench_console.competitions.tasks"  # the package name under which task modules are loaded
_ALIASES = {"lite": "low", "all": "split75"}
_UNION = ("low", "medium", "high")
# A name is suggested from this similarity on, if it is at most so much below the best one, and at most so many.
_LEAST_SIMILARITY = 0.7
_MOST_BELOW_BEST = 0.1
_MOST_SUGGESTED = 3
_SHORTEST_PART = 3


def all_ids() -> tuple[str, ...]:
    """Return every competition's id, users' own included, sorted without regard to case."""
    return tuple(_folders(_homes()))


def clear_caches() -> None:
    """Make later calls find competitions and read their facts and tasks again, since files have changed."""
    _unload(_TASKS)
    _folders.cache_clear()
    read_competition.cache_clear()
    splits.cache_clear()


def get(competition_id: str) -> Competition:
    """Return the facts of one competition.

    Raises:
        UsageProblem: there is none with that id.
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
    """Return the facts of the competitions that can be read, and by id the problems of those that cannot."""
    found, problems = [], {}
    for competition_id in ids:
        try:
            found.append(get(competition_id))
        except DataProblem as problem:
            problems[competition_id] = problem
    return found, problems


def is_own(competition: Competition) -> bool:
    """Return whether it comes from a user's folder or a package instead of the benchmark."""
    return competition.folder.parent != _HOME


def source_of(competition: Competition) -> str:
    """Return where a competition comes from: `benchmark`, a user's folder, or a package's name and version."""
    folder = competition.folder.parent
    return next((home.source for home in _homes() if home.folder == folder), str(folder))


def rules_url(competition: Competition) -> str | None:
    """Return the page on which a person accepts the competition's rules; None where it is not Kaggle's."""
    return None if is_own(competition) else f"https://www.kaggle.com/c/{competition.id}/rules"


def resembling(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the known names that may have been meant, best first: containing the text, or similar to it.

    Names are long and people type the beginning, so a name is as similar as its most similar part.
    """
    typed = text.strip().lower()
    similarity = {name: _similarity(typed, name.lower()) for name in known} if typed else {}
    close = [name for name, ratio in similarity.items() if ratio >= _LEAST_SIMILARITY]
    best = max((similarity[name] for name in close), default=0.0)
    close = [name for name in close if similarity[name] > best - _MOST_BELOW_BEST]
    return tuple(sorted(close, key=lambda name: (-similarity[name], name))[:_MOST_SUGGESTED])


def _similarity(typed: str, name: str) -> float:
    parts = [name]
    if len(typed) >= _SHORTEST_PART:
        if typed in name:
            return 1.0
        parts += [name[: len(typed)], *name.split("-")]
    return max(difflib.SequenceMatcher(None, typed, part).ratio() for part in parts)


@dataclass(frozen=True)
class _Home:
    """A folder that holds folders of competitions, and its name in messages."""

    folder: Path
    source: str


def _homes() -> tuple[_Home, ...]:
    # an environment variable, because the engine's workers and graders inherit it
    own = os.environ.get(OWN_VARIABLE, "").split(os.pathsep)
    folders = (Path(name).expanduser().absolute() for name in own if name)
    return (
        _Home(_HOME, _BENCHMARK),
        *(_Home(folder, str(folder)) for folder in folders),
        *_homes_in_packages(tuple(sys.path)),
    )


@cache
def _homes_in_packages(search_path: tuple[str, ...]) -> tuple[_Home, ...]:
    """Find the packages on `search_path` that provide competitions, without importing them."""
    from importlib.metadata import (
        distributions,
    )  # imported here, as it takes longer than all else in this module

    def homes() -> Iterator[_Home]:
        for distribution in distributions(path=list(search_path)):
            for entry in distribution.entry_points.select(group=ENTRY_POINTS):
                source = f"{distribution.name} {distribution.version}"
                try:
                    spec = importlib.util.find_spec(entry.value)
                except ImportError:  # a parent package cannot be imported
                    spec = None
                places = spec.submodule_search_locations if spec else None
                if not places:
                    raise UsageProblem(
                        f"the competitions of {source} cannot be found",
                        f"its package {entry.value!r} is missing",
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
                f"{OWN_VARIABLE} names {home.folder}", "the folder does not exist", "Correct or unset it."
            )
        for path in home.folder.glob("*/competition.toml"):
            other, first = found.setdefault(path.parent.name, (path.parent, home))
            if other != path.parent:
                raise UsageProblem(
                    f"Two competitions have the id {path.parent.name!r}",
                    f"in {first.folder} ({first.source}) and in {home.folder}"
                    if first.source != str(first.folder)
                    else f"in {first.folder} and in {home.folder}",
                    f"Rename the one from {home.source}: an id must always mean the same competition.",
                )
    return {name: found[name][0] for name in sorted(found, key=str.lower)}


def load_task(competition: Competition) -> ModuleType:
    """Import the module with the competition's `prepare` and `grade`.

    A folder's name may contain dashes, and users' folders lie anywhere, so each folder becomes a package here:
    its task.py imports modules beside it with `from . import name`.

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
    search_path = [str(competition.folder)]
    if name in sys.modules and sys.modules[name].__path__ != search_path:
        _unload(name)  # a competition from another folder had the same name before
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = search_path
        sys.modules[name] = package
    try:
        return importlib.import_module(f"{name}.task")
    except Exception as error:  # importing an author's code may raise anything
        raise DataProblem(
            f"{competition.task_path} can't be imported",
            f"{type(error).__name__}: {error}",
            f"Correct it; mlebench-console competitions check {competition.id} shows the traceback.",
        ) from error


def _unload(package: str) -> None:
    for loaded in [each for each in sys.modules if f"{each}.".startswith(f"{package}.")]:
        del sys.modules[loaded]


@cache
def splits() -> Mapping[str, tuple[str, ...]]:
    """Return the named splits: low, medium, high, split75, dev, systemcard, and the aliases lite and all.

    Raises:
        DataProblem: a split names something that is not a competition of the benchmark.
    """
    path = _HOME / "splits.toml"
    named = {name: tuple(ids) for name, ids in tomllib.loads(path.read_text("utf-8")).items()}
    for name, ids in named.items():
        unknown = [id_ for id_ in ids if not (_HOME / id_ / "competition.toml").is_file()]
        if unknown:
            raise DataProblem(
                f"{path} cannot be used",
                f"{name} names {', '.join(unknown)}, and no such folder lies beside it",
            )
    named["split75"] = tuple(sorted((id_ for name in _UNION for id_ in named[name]), key=str.lower))
    return named | {alias: named[name] for alias, name in _ALIASES.items()}


def read_split(path_or_name: str | Path) -> tuple[str, ...]:
    """Return the members of a named split, or of a file with one id per line (blank lines and # lines skipped).

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
            f"{str(path_or_name)!r} is neither a split nor a file",
            next_step=f"Splits: {', '.join(splits())}; or give a file with one competition id per line.",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataProblem(f"Split file {path} cannot be read", str(error)) from error
    ids = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return tuple(get(competition_id).id for competition_id in dict.fromkeys(ids))


def choose(names: Iterable[str]) -> tuple[str, ...]:
    """Return the competitions that ids and named splits stand for, in this order, each once.

    Raises:
        UsageProblem: a name is neither.
    """
    chosen: list[str] = []
    for name in names:
        chosen += splits()[name] if name in splits() else [get(name).id]
    return tuple(dict.fromkeys(chosen))

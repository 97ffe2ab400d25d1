"""Compare graders with those of a checkout of MLE-bench, on damaged submissions; ends with 1 for unstated differences.

make fuzz ARGS="--against PATH --seed 7 --files 200 --competition spaceship-titanic"
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import venv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlebench_console.competitions import registry
from mlebench_console.competitions.judging import GradeRequest, Judgement, judge
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Case, Vector
from tools.fuzz.mutations import damaged

_ROOT = Path(__file__).parents[2]
_PLACE = _ROOT / ".fuzz"
_OWN = Path(__file__).parent
_NEARLY = 1e-9
# Refused in every competition, as no CSV has them, where pandas 2 ends a cell at one.
_STATED_EVERYWHERE = ("bytes: nul",)


@dataclass(frozen=True)
class Trial:
    """A damaged submission of a competition, with what both make of it."""

    competition_id: str
    kind: str
    file: Path
    answers: Path | None

    @property
    def kinds(self) -> set[str]:
        """The kinds of damage."""
        return set(self.kind.split(" + "))


def main() -> int:
    """Fuzz, print each difference, and return whether one is not stated in competition.toml."""
    parser = argparse.ArgumentParser(prog="make fuzz", description="Compare graders with MLE-bench's own.")
    parser.add_argument("--against", type=Path, required=True, metavar="PATH", help="a checkout of MLE-bench")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other files")
    parser.add_argument("--files", type=int, default=50, metavar="N", help="files of each competition")
    parser.add_argument("--competition", action="append", metavar="ID", help="only this one; may be repeated")
    options = parser.parse_args()
    if not (options.against / "mlebench" / "grade.py").is_file():
        parser.error(f"{options.against} is not a checkout of MLE-bench: it has no mlebench/grade.py")
    chosen = options.competition or [each for each in registry.all_ids() if registry.get(each).available]
    if unknown := sorted(set(chosen) - set(registry.all_ids())):
        parser.error(f"there is no competition '{unknown[0]}'")
    python = _environment()
    folder = _PLACE / f"seed-{options.seed}"
    counts: Counter[str] = Counter()
    unstated = 0
    with ProcessPoolExecutor(initializer=_quiet) as pool:
        for competition_id in chosen:
            trials = list(_trials(competition_id, options.seed, options.files, folder / competition_id))
            with _theirs(python, options.against, trials) as theirs:
                ours = pool.map(_judged, trials, chunksize=8)
                for trial, own, other in zip(trials, ours, theirs, strict=True):
                    counts["graded"] += 1
                    counts["scored by both"] += own.score is not None and "score" in other
                    difference = _difference(own, other)
                    if not difference:
                        continue
                    stated = trial.kinds & set(_stated(competition_id))
                    counts["stated" if stated else "not stated"] += 1
                    if not stated:
                        unstated += 1
                        print(f"{competition_id}: {difference}\n    {trial.kind}: {trial.file}")
                        print(f"    {_case(trial, other)}", flush=True)
    print(", ".join(f"{number:,} {what}" for what, number in counts.items()))
    return 1 if unstated else 0


def _environment() -> Path:
    """Return the Python of MLE-bench's environment, made at the first time."""
    wanted = (_OWN / "requirements.txt").read_text(encoding="utf-8")
    place = _PLACE / "environment"
    done = place / "installed.txt"
    if not done.is_file() or done.read_text(encoding="utf-8") != wanted:
        print("installing what MLE-bench needs ...", flush=True)
        venv.create(place, with_pip=True, clear=True)
        subprocess.run(
            [place / "bin" / "python", "-m", "pip", "install", "-q", "-r", _OWN / "requirements.txt"],
            check=True,
        )
        done.write_text(wanted, encoding="utf-8")
    return place / "bin" / "python"


def _trials(competition_id: str, seed: int, number: int, folder: Path) -> Iterator[Trial]:
    """Write damaged submissions of a competition, the same ones for the same seed."""
    cases = [case for case in Vector(VECTORS / competition_id).cases() if _is_whole(case)]
    folder.mkdir(parents=True, exist_ok=True)
    for place in range(number):
        rng = random.Random(f"{seed}:{competition_id}:{place}")
        case = rng.choice(cases)
        made = damaged(case.submission.read_bytes(), rng)
        file = folder / f"{place:04}{made.suffix}"
        file.write_bytes(made.content)
        yield Trial(competition_id, made.kind, file, case.answers)


def _is_whole(case: Case) -> bool:
    """Return whether a case is a plain table with a score that does not depend on the order of ties."""
    return case.expect == "score" and not case.unstable and case.submission.suffix == ".csv"


def _quiet() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _judged(trial: Trial) -> Judgement:
    vector = Vector(VECTORS / trial.competition_id)
    return judge(
        GradeRequest(
            trial.competition_id,
            trial.file,
            prepared(trial.competition_id),
            parameters=vector.parameters,
            answers=trial.answers,
        )
    )


@contextmanager
def _theirs(python: Path, checkout: Path, trials: Sequence[Trial]) -> Iterator[Iterable[dict[str, Any]]]:
    """Yield what MLE-bench makes of each file, in order, while it goes on."""
    data = _PLACE / "data"
    for competition_id in {trial.competition_id for trial in trials}:
        place = data / competition_id / "prepared"
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.is_symlink() or place.readlink() != prepared(competition_id):
            place.unlink(missing_ok=True)
            place.symlink_to(prepared(competition_id))
    asked = _folder(trials) / "asked.jsonl"
    asked.write_text(
        "".join(
            json.dumps(
                {
                    "competition": trial.competition_id,
                    "submission": str(trial.file),
                    "answers": None if trial.answers is None else str(trial.answers),
                }
            )
            + "\n"
            for trial in trials
        ),
        encoding="utf-8",
    )
    variables = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
    with (
        asked.open(encoding="utf-8") as questions,
        subprocess.Popen(
            [python, _OWN / "theirs.py", data],
            stdin=questions,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=variables,
            cwd=_PLACE,
        ) as process,
    ):
        assert process.stdout is not None
        yield (json.loads(line) for line in process.stdout)


def _folder(trials: Sequence[Trial]) -> Path:
    return trials[0].file.parent


def _difference(own: Judgement, other: dict[str, Any]) -> str:
    """Return in words how both differ; empty where they agree."""
    theirs = other.get("score")
    if own.score is None and theirs is None:
        return ""
    if theirs is None:
        return f"scored {own.score!r} here, refused there ({other['error']})"
    if own.score is None:
        return f"scored {theirs!r} there, refused here ({own.outcome}: {own.message})"
    if math.isnan(own.score) and math.isnan(theirs):
        return ""
    if own.rounded != other["rounded"]:
        return f"rounded {own.rounded!r} here, {other['rounded']!r} there ({own.score!r}, {theirs!r})"
    if math.isclose(own.score, theirs, rel_tol=_NEARLY, abs_tol=1e-12):
        return ""
    return f"scored {own.score!r} here, {theirs!r} there"


def _case(trial: Trial, other: dict[str, Any]) -> str:
    """Return a line for the `cases.json` of the competition's vectors, beside whose submissions the file belongs."""
    verdict = {"expect": "error"} if "error" in other else {"expect": "score", **other}
    return json.dumps({"submission": trial.file.name, **verdict})


def _stated(competition_id: str) -> tuple[str, ...]:
    """Return the kinds of damage of which competition.toml says that verdicts differ."""
    own = (kind for each in registry.get(competition_id).differences for kind in each.damage)
    return (*_STATED_EVERYWHERE, *own)


if __name__ == "__main__":
    sys.exit(main())

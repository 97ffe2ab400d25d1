"""Plagiarism: compare the code of runs with public kernels, runs of other agents, and the agent's other seeds."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mlebench_console.engine.integrity import winnowing
from mlebench_console.engine.integrity.code import SourceFile
from mlebench_console.engine.integrity.kernels import (
    KernelIndex,
    competitions_here,
    index_of,
    known_kernels,
    text_of,
)
from mlebench_console.engine.integrity.material import ExaminedRun
from mlebench_console.engine.integrity.results import is_current, save_results
from mlebench_console.engine.integrity.winnowing import Hashes, Likeness, Tokens
from mlebench_console.engine.requests import NewResults
from mlebench_console.foundation.clock import Clock
from mlebench_console.state.integrity import DetectorResult, Excerpt, Finding, Layer, RunIntegrity, Severity

KERNELS = "public-kernels"
RUNS = "other-runs"
_VERSION = 1

# MLE-bench's paper reviews pairs that are more than 60 % alike by Dolos; our similarity is computed differently.
FLAG = 0.6
LEAST_TOKENS = 150
_NOTED = 0.35
_MOST_FINDINGS = 3
_LEAST_FILE_TOKENS = 50
_MANY_COMPETITIONS = 3
_MOST_FILES_SHOWN = 50


@dataclass(frozen=True, eq=False)
class Solution:
    """The code of a run: each of its files, and all of them together."""

    examined: ExaminedRun

    @cached_property
    def files(self) -> list[tuple[SourceFile, Tokens]]:
        """The files with enough tokens to be compared."""
        read = [(file, winnowing.tokens_of(file.text)) for file in self.examined.code.files]
        return [(file, tokens) for file, tokens in read if len(tokens.codes) >= _LEAST_FILE_TOKENS]

    @cached_property
    def parts(self) -> list[Tokens]:
        """The parts to compare: each file and, where there are several, all of them joined."""
        single = [tokens for _, tokens in self.files]
        return single if len(single) < 2 else [*single, winnowing.joined(single)]

    @property
    def whole(self) -> Tokens | None:
        """All files joined; None where there is too little code."""
        return self.parts[-1] if self.parts else None

    @cached_property
    def digest(self) -> str:
        """A hash of its fingerprints."""
        return hashlib.sha256(b"".join(part.fingerprints[0].tobytes() for part in self.parts)).hexdigest()


def examine(
    chosen: Sequence[ExaminedRun],
    others: Sequence[ExaminedRun],
    earlier: Mapping[int, RunIntegrity],
    clock: Clock,
    kernels: Path,
) -> Iterator[NewResults]:
    """Compare runs without current results with kernels and other runs, and yield each finished run.

    Args:
        chosen: the runs to examine.
        others: further runs to compare them with.
        earlier: their results so far.
        clock: for the time of the results.
        kernels: the folder of downloaded kernels.

    Raises:
        DataProblem: a downloaded kernel can't be read.
    """
    solutions = {one.run.id: Solution(one) for one in (*others, *chosen)}
    indexes = {name: index_of(kernels, name) for name in competitions_here(kernels)}
    dropped = _shared_by_competitions(solutions.values(), indexes)
    indexes = {name: index.without(dropped) for name, index in indexes.items()}
    rivals: dict[str, list[Solution]] = defaultdict(list)
    for solution in solutions.values():
        rivals[solution.examined.run.competition_id].append(solution)
    versions = {KERNELS: _VERSION, RUNS: _VERSION}
    shared = hashlib.sha256(dropped.tobytes()).hexdigest()
    for examined in chosen:
        name = examined.run.competition_id
        index = indexes.get(name)
        compared = [one.digest for one in rivals[name]]
        about = [examined.content, index.digest if index else "", shared, *compared]
        content = hashlib.sha256(json.dumps(about).encode()).hexdigest()
        solution = solutions[examined.run.id]
        coverage, problem = _coverage(solution, index)
        if is_current(earlier.get(examined.run.id), versions, content, lasting=problem):
            continue
        of_kernels = DetectorResult(
            KERNELS,
            Layer.PLAGIARISM,
            _VERSION,
            content,
            clock.now(),
            tuple(_like_kernels(solution, index, dropped, kernels)) if index else (),
            coverage=coverage,
            problem=problem,
        )
        found = tuple(_like_runs(solution, rivals[name], dropped))
        of_runs = DetectorResult(RUNS, Layer.PLAGIARISM, _VERSION, content, clock.now(), found)
        yield save_results(examined, Layer.PLAGIARISM, [of_kernels, of_runs])


def _shared_by_competitions(solutions: Iterable[Solution], indexes: Mapping[str, KernelIndex]) -> Hashes:
    """Return the fingerprints that three or more competitions share, such as those of imports and starter code.

    Of 598 public notebooks, 99 % of the unrelated pairs have a similarity of at most 0.17 without them, 0.85 with them.
    """
    by_competition: dict[str, list[Hashes]] = defaultdict(list)
    for name, index in indexes.items():
        by_competition[name].append(index.hashes)
    for solution in solutions:
        if solution.whole is not None:
            by_competition[solution.examined.run.competition_id].append(solution.whole.fingerprints[0])
    single = [np.unique(np.concatenate(parts)) for parts in by_competition.values()]
    values, counts = np.unique(np.concatenate([np.empty(0, np.uint64), *single]), return_counts=True)
    return values[counts >= _MANY_COMPETITIONS]


def _coverage(solution: Solution, index: KernelIndex | None) -> tuple[str, str]:
    """Return with how many public kernels a run is compared, and the problem if known ones are not downloaded."""
    name = solution.examined.run.competition_id
    if index is not None and index.refs:
        without = "" if solution.parts else ", with no code"
        return f"{len(index.refs)} public kernels of {name} compared{without}", ""
    if known_kernels().get(name):
        fetch = f"mlebench-console integrity kernels fetch -c {name}"
        return "", f"no public kernels of {name} are downloaded: {fetch}"
    return f"no public kernels of {name} are known", ""


def _like_kernels(
    solution: Solution, index: KernelIndex, dropped: Hashes, kernels: Path
) -> Iterator[Finding]:
    """Yield the kernels that are most similar to a solution, or to one of its files."""
    sizes = index.counts()
    best: dict[int, Likeness] = {}
    for part in solution.parts:
        hashes, places = part.fingerprints
        rare = ~winnowing.is_in(hashes, dropped)
        hashes, places = hashes[rare], places[rare]
        mine = np.unique(hashes)
        if not len(mine):
            continue
        common = index.counts(winnowing.is_in(index.hashes, mine))
        similarity = 2 * common / np.maximum(len(mine) + sizes, 1)
        containment = common / np.maximum(np.minimum(len(mine), sizes), 1)
        for number in np.flatnonzero((similarity >= _NOTED) | (containment >= _NOTED)):
            covered = winnowing.covered(places[winnowing.is_in(hashes, index.of(int(number)))])
            one = Likeness(float(similarity[number]), float(containment[number]), covered)
            if covered >= LEAST_TOKENS and _grade(one) > _grade(best.get(int(number))):
                best[int(number)] = one
    for found, one in sorted(best.items(), key=lambda each: _grade(each[1]), reverse=True)[:_MOST_FINDINGS]:
        ref = index.refs[found]
        text = text_of(kernels, solution.examined.run.competition_id, ref)
        yield _finding(one, f"the public kernel {ref}", solution, SourceFile(f"kaggle.com/code/{ref}", text))


def _like_runs(solution: Solution, rivals: Sequence[Solution], dropped: Hashes) -> Iterator[Finding]:
    """Yield the runs of other agents, and other seeds of the same agent, that are most similar to a solution."""
    if solution.whole is None:
        return
    found: list[tuple[Likeness, Solution]] = []
    for other in rivals:
        if other.examined.run.id != solution.examined.run.id and other.whole is not None:
            one = winnowing.likeness(solution.whole, other.whole, dropped)
            if one.tokens >= LEAST_TOKENS and max(one.similarity, one.containment) >= FLAG:
                found.append((one, other))
    own = solution.examined.spec.agent_id
    found.sort(key=lambda each: (each[1].examined.spec.agent_id == own, -_grade(each[0])[2]))
    for one, other in found[:_MOST_FINDINGS]:
        run, is_own = other.examined.run, other.examined.spec.agent_id == own
        whose = "the same agent's" if is_own else f"the agent {other.examined.spec.agent_id}'s"
        right = max(other.files, key=lambda each: len(each[1].codes))[0]
        where = SourceFile(f"run {run.id}: {right.path}", right.text)
        # An agent tends to write the same code again, which is not plagiarism.
        most = Severity.NOTE if is_own else Severity.SUSPICIOUS
        yield _finding(
            one, f"{whose} run {run.id} (seed {run.seed} of {run.sweep_id})", solution, where, most
        )


def _grade(one: Likeness | None) -> tuple[bool, bool, float]:
    """Return a sort key by the gravity of a likeness."""
    if one is None:
        return False, False, 0.0
    return _is_flagged(one), one.similarity >= FLAG, max(one.similarity, one.containment)


def _is_flagged(one: Likeness) -> bool:
    return max(one.similarity, one.containment) >= FLAG and one.tokens >= LEAST_TOKENS


def _finding(
    one: Likeness, whose: str, solution: Solution, other: SourceFile, most: Severity = Severity.HIGH
) -> Finding:
    """Return the finding of a likeness, with the longest common run of tokens as excerpts of both texts."""
    severity = Severity.NOTE
    if _is_flagged(one):
        severity = Severity.HIGH if one.similarity >= FLAG else Severity.SUSPICIOUS
    severity = min(severity, most, key=lambda each: each.rank)
    right = winnowing.tokens_of(other.text)
    excerpts: tuple[Excerpt, ...] = ()
    longest = 0
    largest = sorted(solution.files, key=lambda each: -len(each[1].codes))[:_MOST_FILES_SHOWN]
    for file, tokens in largest:
        passage = winnowing.longest_passage(tokens, right)
        if passage is not None and passage[0] > longest:
            longest, of_file, of_other = passage
            excerpts = (file.excerpt(*of_file), other.excerpt(*of_other))
    numbers = {
        "similarity": round(one.similarity, 3),
        "containment": round(one.containment, 3),
        "matched tokens": one.tokens,
        "longest run of tokens": longest,
    }
    share = f"similarity {one.similarity:.2f}, containment {one.containment:.2f}"
    return Finding(severity, f"its code is like {whose}: {share} (not Dolos' number)", excerpts, numbers)

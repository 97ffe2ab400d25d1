"""Copied code is found, however it was disguised; what everybody writes is not."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.engine.integrity import kernels, plagiarism
from mlebench_console.engine.integrity.material import ExaminedRun, examined_runs
from mlebench_console.engine.integrity.plagiarism import FLAG, LEAST_TOKENS
from mlebench_console.engine.integrity.results import saved_results
from mlebench_console.engine.integrity.winnowing import likeness, longest_passage, tokens_of
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state import integrity
from mlebench_console.state.database import Database
from mlebench_console.state.integrity import DetectorResult, Layer, Severity
from tests.console.world import FrozenClock
from tests.engine.integrity.kernels_here import MadeKernels, put
from tests.engine.integrity.made_runs import COMPETITION, SPEC, MadeRun, examined_run
from tests.engine.integrity.notebooks import STARTER, buried, cells, notebook, program, renamed, shuffled

CLOCK = FrozenClock()


def is_flagged(left: str, right: str) -> bool:
    one = likeness(tokens_of(left), tokens_of(right))
    return max(one.similarity, one.containment) >= FLAG and one.tokens >= LEAST_TOKENS


def look(
    chosen: list[ExaminedRun], folder: Path, others: tuple[ExaminedRun, ...] = ()
) -> list[DetectorResult]:
    """Compare runs, and return what was found for the first."""
    list(plagiarism.examine(chosen, others, {}, CLOCK, folder))
    return list(saved_results(chosen[0].folder, Layer.PLAGIARISM))


def test_the_threshold_parts_copies_from_what_was_written_independently() -> None:
    seeds = range(6)
    for seed in seeds:
        original = program(seed)
        for copy in (
            original,
            renamed(original),
            shuffled(cells(seed), seed),
            buried(original, 1000 + 3 * seed),
        ):
            assert is_flagged(copy, original), seed
    independent = [tokens_of(program(seed)) for seed in range(100, 116)]
    worst = max(
        max(one.similarity, one.containment)
        for one in (likeness(left, right) for left, right in itertools.combinations(independent, 2))
    )
    assert worst < FLAG / 3


def test_a_short_copy_is_not_flagged() -> None:
    copied = "\n".join(cells(1)[1:2])
    assert likeness(tokens_of(copied), tokens_of(copied)).similarity == 1.0
    assert not is_flagged(copied, copied)


def test_a_copied_kernel_is_shown_with_both_passages(state: Database, tmp_path: Path) -> None:
    put(tmp_path / "k", {COMPETITION: {"ann/best": program(1), "bob/other": program(2)}})
    examined = examined_run(state, MadeRun(code={"train.py": "import os\n" + renamed(program(1))}))
    of_kernels, _ = look([examined], tmp_path / "k")
    (finding,) = of_kernels.findings
    assert finding.severity is Severity.HIGH
    assert "ann/best" in finding.statement and "not Dolos' number" in finding.statement
    left, right = finding.excerpts
    assert (left.source, right.source) == ("code/train.py", "kaggle.com/code/ann/best")
    assert left.text and right.text and left.first_line and right.first_line
    assert finding.numbers["longest run of tokens"] >= LEAST_TOKENS
    assert of_kernels.coverage == f"2 public kernels of {COMPETITION} compared"


def test_code_that_three_competitions_share_counts_for_nothing(state: Database, tmp_path: Path) -> None:
    with_starter = {
        name: {f"ann/{name}": f"{STARTER}\n{program(seed, 2)}"} for seed, name in enumerate("abc")
    }
    put(tmp_path / "k", {COMPETITION: {"ann/starter": f"{STARTER}\n{program(9, 2)}"}, **with_starter})
    examined = examined_run(state, MadeRun(code={"train.py": f"{STARTER}\n{program(50, 2)}"}))
    assert is_flagged(STARTER, STARTER)
    of_kernels, _ = look([examined], tmp_path / "k")
    assert of_kernels.findings == ()


def test_steps_of_a_run_are_compared_alone_and_together(state: Database, tmp_path: Path) -> None:
    put(tmp_path / "k", {COMPETITION: {"ann/best": program(1)}})
    parts = cells(1)
    pieces = {f"step_{n}.py": "\n".join(parts[n * 4 : n * 4 + 4]) for n in range(4)}
    alone = {**{f"step_{n}.py": program(60 + n) for n in range(5)}, "late.py": program(1)}
    for name, code in (("pieces", pieces), ("alone", alone)):
        examined = examined_run(state, MadeRun(code=code), name)
        assert look([examined], tmp_path / "k")[0].severity is Severity.HIGH, name


def test_another_agent_s_run_is_flagged_and_the_same_agent_s_is_noted(
    state: Database, tmp_path: Path
) -> None:
    code = {"train.py": program(1)}
    chosen = examined_run(state, MadeRun(code=code), "mine")
    own = examined_run(state, MadeRun(code=code), "my-second-seed")
    rival = examined_run(state, MadeRun(code=code, spec=replace(SPEC, agent_id="rival")), "rival")
    of_kernels, of_runs = look([chosen], tmp_path / "k", (own, rival))
    assert [one.severity for one in of_runs.findings] == [Severity.SUSPICIOUS, Severity.NOTE]
    assert "the agent rival's" in of_runs.findings[0].statement
    assert "are downloaded: mlebench-console integrity kernels fetch" in of_kernels.problem


def test_runs_are_compared_again_only_when_code_or_kernels_have_changed(
    state: Database, tmp_path: Path
) -> None:
    examined = examined_run(state, MadeRun(code={"train.py": program(1)}))

    def looked_at() -> int:
        known = integrity.of_runs(state, [examined.run.id])
        done = list(
            plagiarism.examine(examined_runs(state, [examined.run.id]), (), known, CLOCK, tmp_path / "k")
        )
        with state.transaction():
            integrity.replace_results(
                state, examined.attempt.id, Layer.PLAGIARISM, saved_results(examined.folder, Layer.PLAGIARISM)
            )
        return len(done)

    assert [looked_at(), looked_at()] == [1, 0]
    put(tmp_path / "k", {COMPETITION: {"ann/best": program(1)}})
    assert [looked_at(), looked_at()] == [1, 0]


def test_fingerprints_are_kept_and_made_anew_when_damaged(tmp_path: Path) -> None:
    put(tmp_path, {COMPETITION: {"ann/best": program(1)}})
    first = kernels.index_of(tmp_path, COMPETITION)
    path = tmp_path / COMPETITION / "fingerprints.npz"
    (tmp_path / COMPETITION / "ann__best.py").unlink()  # what is kept is enough
    assert (kernels.index_of(tmp_path, COMPETITION).hashes == first.hashes).all()
    put(tmp_path, {COMPETITION: {"bob/new": program(2)}})
    path.write_bytes(b"damaged")
    with pytest.raises(DataProblem, match="ann__best"):
        kernels.index_of(tmp_path, COMPETITION)


def test_fingerprints_are_the_same_in_every_process() -> None:
    script = "from mlebench_console.engine.integrity.winnowing import *\n"
    script += "print(tokens_of('a = b(1)\\n' * 20).fingerprints[0].sum())"
    told = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "'''never ends\nx = 1\n" + program(1),
        "(" * 10_000,
        "if x:\n\ty\n    z\n" * 50,
        "\\\n" * 100,
        "\0" * 100,
        "é" * 1000,
        "def f(:\n" * 300,
    ],
)
def test_what_is_no_python_is_read_as_far_as_it_can_be(text: str) -> None:
    tokens = tokens_of(text)
    assert len(tokens.codes) == len(tokens.lines)
    assert likeness(tokens, tokens).tokens <= len(tokens.codes)
    longest_passage(tokens, tokens)


def test_repeated_lines_cost_no_square_of_their_number() -> None:
    table = tokens_of("x = f(1, 2)\n" * 8000)
    passage = longest_passage(table, table)
    assert passage is not None and passage[0] >= LEAST_TOKENS


def test_kernels_are_fetched_once_and_what_is_not_to_be_had_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "ann/a": program(1),
        "ann/b": notebook(cells(2)),
        "ann/private": "403",
        "ann/gone": "404",
        "ann/r": "# R\nx <- 1",
        "ann/broken": "{}",
    }
    known = {COMPETITION: list(texts)}
    monkeypatch.setattr(kernels, "known_kernels", lambda: known)
    source = MadeKernels(texts)
    paused: list[float] = []

    def outcomes(*, again: bool = False) -> list[str]:
        found = kernels.fetch(tmp_path, [COMPETITION], source, again=again, pause=paused.append)
        return [one.outcome for one in found]

    first = kernels.fetch(tmp_path, [COMPETITION], source, pause=paused.append)
    next(first)  # interrupted after the first one
    first.close()
    assert outcomes() == ["ok", "private", "gone", "not python", "unreadable"]
    assert outcomes() == []
    assert source.asked == list(texts)
    assert len(paused) == 5 and min(paused) > 0
    assert outcomes(again=True) == ["private", "gone", "not python", "unreadable"]
    assert cells(2)[1] in kernels.text_of(tmp_path, COMPETITION, "ann/b")


def test_the_names_of_kernels_are_known_for_the_benchmark_s_competitions() -> None:
    known = kernels.known_kernels()
    assert (len(known), sum(map(len, known.values()))) == (80, 3636)

"""Our own agents work from public data alone, improve in stages, and say what they cannot do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from mlebench_console import environment, grade_submission, prepare_competition
from mlebench_console.engine.demo_data import DEMO_COMPETITIONS, cactus, generate
from mlebench_console.environment.agents.baseline.solver.problem import read_problem

FOLDER = Path(environment.__path__[0])


@dataclass(frozen=True)
class Finished:
    """What a run of an agent left."""

    code: int
    output: str
    submission: Path
    folder: Path


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's six competitions, prepared, with fewer rows and pictures to learn from."""
    root = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cactus, "LABELLED", 300)
        patch.setattr(cactus, "UNLABELLED", 10)
        for competition in DEMO_COMPETITIONS:
            generate(competition, root / "raw" / competition)
            prepared = prepare_competition(
                competition, raw=root / "raw" / competition, data_dir=root / "data"
            )
            train = prepared / "public" / "train.csv"
            if competition != "leaf-classification":  # which has but nine rows for each of its classes
                few = train.read_text().splitlines(keepends=True)[:300]
                train.write_text("".join(few))
    return root / "data"


@pytest.fixture(scope="module")
def solved(datasets: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Finished]:
    """The baseline's run on a competition, made once: each costs seconds, and several tests look at one.

    It is a second attempt, after one that a staged fault has ended.
    """

    @cache
    def solve(competition: str) -> Finished:
        folder = tmp_path_factory.mktemp(competition)
        public = datasets / competition / "prepared" / "public"
        fault = f"{competition}:1:1=crash"
        return run_agent("baseline", public, folder, competition, DEMO_FAULTS=fault, ATTEMPT="2")

    return solve


def run_agent(agent: str, data: Path, folder: Path, competition: str = "none", **variables: str) -> Finished:
    for name in ("submission", "logs", "code"):
        (folder / name).mkdir(parents=True)
    validate = folder / "validate.sh"
    validate.write_text('#!/bin/sh\necho "asked about $(wc -l < "$1") lines"\n')
    validate.chmod(0o755)
    told = subprocess.run(
        ["bash", str(FOLDER / "agents" / agent / "start.sh")],
        env={
            "PATH": f"{FOLDER}:/usr/bin:/bin",
            "MLEBENCH_ENV_AGENT": sys.prefix,
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "COMPETITION_ID": competition,
            "SEED": "1",
            "DATA_DIR": str(data),
            "SUBMISSION_DIR": str(folder / "submission"),
            "LOGS_DIR": str(folder / "logs"),
            "CODE_DIR": str(folder / "code"),
            "AGENT_DIR": str(FOLDER / "agents" / agent),
            "INSTRUCTIONS_FILE": str(FOLDER / "instructions.txt"),
            "VALIDATE_SCRIPT": str(validate),
            **variables,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    return Finished(told.returncode, told.stdout, folder / "submission" / "submission.csv", folder)


@pytest.mark.parametrize(
    ("competition", "material", "goal", "targets"),
    [
        ("spaceship-titanic", "a table", "label", ("Transported",)),
        ("detecting-insults-in-social-commentary", "text", "chance", ("Insult",)),
        (
            "nomad2018-predict-transparent-conductors",
            "a table",
            "numbers",
            ("formation_energy_ev_natom", "bandgap_energy_ev"),
        ),
        ("aerial-cactus-identification", "pictures", "chance", ("has_cactus",)),
        ("spooky-author-identification", "text", "classes", ("EAP", "HPL", "MWS")),
    ],
)
def test_the_kind_of_problem_is_found_from_public_data(
    datasets: Path, competition: str, material: str, goal: str, targets: tuple[str, ...]
) -> None:
    problem = read_problem(datasets / competition / "prepared" / "public")
    assert (problem.material, problem.goal, problem.targets) == (material, goal, targets)


def test_many_classes_are_found_by_their_names(datasets: Path) -> None:
    problem = read_problem(datasets / "leaf-classification" / "prepared" / "public")
    assert (problem.goal, problem.label, len(problem.targets)) == ("classes", "species", 99)
    assert len(problem.features) == 192


@pytest.mark.parametrize("competition", DEMO_COMPETITIONS)
def test_the_baseline_beats_the_sample_submission(
    datasets: Path, solved: Callable[[str], Finished], competition: str
) -> None:
    public = datasets / competition / "prepared" / "public"
    finished = solved(competition)
    assert finished.code == 0, finished.output
    report = grade_submission(finished.submission, competition, data_dir=datasets)
    assert report.score is not None, report.message
    sample = grade_submission(next(public.glob("sample_submission*.csv")), competition, data_dir=datasets)
    assert sample.score is not None
    assert report.score < sample.score if report.is_lower_better else report.score > sample.score
    assert "submitted constants" in finished.output
    assert "submitted the mean of 2 rounds" in finished.output
    assert "validation: asked about" in finished.output
    assert (finished.folder / "logs" / "agent.log").read_text() == finished.output
    assert (finished.folder / "code" / "selection.py").is_file()
    assert [path.name for path in finished.submission.parent.iterdir()] == ["submission.csv"]


def test_the_same_seed_gives_the_same_submission_and_another_seed_another(
    datasets: Path, solved: Callable[[str], Finished], tmp_path: Path
) -> None:
    competition = "spooky-author-identification"
    public = datasets / competition / "prepared" / "public"
    again, other = (
        run_agent("baseline", public, tmp_path / seed, competition, SEED=seed).submission.read_bytes()
        for seed in ("1", "2")
    )
    one = solved(competition).submission.read_bytes()
    assert one == again
    assert one != other


@pytest.mark.parametrize(
    ("fault", "code", "telling"),
    [("gpu_lost", 1, "Failed to initialize NVML: Unknown Error"), ("crash", 1, "ZeroDivisionError")],
)
def test_staged_faults_end_the_run_and_say_that_they_are_staged(
    datasets: Path, tmp_path: Path, fault: str, code: int, telling: str
) -> None:
    finished = run_agent(
        "baseline",
        datasets / "spaceship-titanic" / "prepared" / "public",
        tmp_path,
        "spaceship-titanic",
        DEMO_FAULTS=f"leaf-classification:1:1=invalid, spaceship-titanic:1:1={fault}",
        ATTEMPT="1",
    )
    assert finished.code == code
    assert "staged demo fault" in finished.output
    assert telling in finished.output


def test_a_staged_invalid_submission_lacks_a_column(datasets: Path, tmp_path: Path) -> None:
    competition = "spaceship-titanic"
    finished = run_agent(
        "baseline",
        datasets / competition / "prepared" / "public",
        tmp_path,
        competition,
        DEMO_FAULTS=f"{competition}:1:1=invalid",
    )
    assert finished.code == 0
    report = grade_submission(finished.submission, competition, data_dir=datasets)
    assert not report.valid_submission
    assert "Transported" in report.message


def test_a_staged_fault_spares_the_next_attempt(solved: Callable[[str], Finished]) -> None:
    finished = solved("spaceship-titanic")
    assert finished.code == 0
    assert "staged" not in finished.output


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "there is no sample_submission.csv"),
        ({"sample_submission.csv": "id,y\n1,0\n"}, "there is no train.csv"),
        (
            {"sample_submission.csv": "id,y\n1,0\n", "train.csv": "a,b\n1,2\n", "test.csv": "a\n1\n"},
            "train.csv has no column for y",
        ),
        (
            {"sample_submission.csv": "id,y\n1,0\n", "train.csv": "id,y\n1,2\n", "test.csv": "id\n1\n2\n"},
            "test.csv has 2 rows, the sample submission 1",
        ),
        (
            {"sample_submission.csv": "id,y\na.png,0\n", "train.csv": "id,y\nb.png,1\nc.png,0\n"},
            "there are neither tables nor pictures for train",
        ),
    ],
)
def test_what_the_baseline_cannot_solve_it_says(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name, content in files.items():
        (data / name).write_text(content)
    finished = run_agent("baseline", data, tmp_path / "run", "odd-one")
    assert finished.code == 1
    assert f"this agent cannot solve odd-one: {reason}" in finished.output
    assert "Traceback" not in finished.output


def test_the_dummy_tells_what_it_finds_and_submits_the_sample(datasets: Path, tmp_path: Path) -> None:
    public = datasets / "spaceship-titanic" / "prepared" / "public"
    finished = run_agent("dummy", public, tmp_path, "spaceship-titanic")
    assert finished.code == 0, finished.output
    assert finished.submission.read_bytes() == (public / "sample_submission.csv").read_bytes()
    for told in ("competition spaceship-titanic, seed 1", "GPUs:", "train.csv", "asked about 871 lines"):
        assert told in finished.output
    assert (tmp_path / "code" / "train.py").is_file()


def test_the_dummy_says_when_there_is_nothing_to_submit(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    finished = run_agent("dummy", tmp_path / "empty", tmp_path / "run")
    assert finished.code == 1
    assert "nothing to submit" in finished.output


def test_submissions_keep_the_keys_as_they_were_given(
    datasets: Path, solved: Callable[[str], Finished]
) -> None:
    competition = "detecting-insults-in-social-commentary"
    public = datasets / competition / "prepared" / "public"
    finished = solved(competition)
    sample = pd.read_csv(public / "sample_submission_null.csv", dtype=str, keep_default_na=False)
    submitted = pd.read_csv(finished.submission, dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(sample.drop(columns="Insult"), submitted.drop(columns="Insult"))

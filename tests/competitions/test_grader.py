"""Grading under limits: what dies or takes too much costs its own score, in the same words wherever it is graded."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from mlebench_console import grade_submission, validate_submission
from mlebench_console.competitions import grader, registry
from mlebench_console.competitions.grader import Grader, GradeResult, grade
from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.console.screens.grading import grade_file
from mlebench_console.engine.grading.batch import grade_many
from mlebench_console.engine.rungroups import SubmissionLine
from mlebench_console.environment.container.processes import process_tree
from mlebench_console.environment.runner.host import readings
from mlebench_console.environment.validation_server.server import check_form
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, Problem, UsageProblem
from mlebench_console.foundation.workers import JobLimits
from tests.competitions.prepared import prepared
from tests.engine.harness import eventually

ID = "spaceship-titanic"
OWN = Path(__file__).parent / "own" / "harbour-tides"


@pytest.fixture
def data_dir() -> Path:
    return prepared(ID).parent.parent


@pytest.fixture
def gold() -> Path:
    return prepared(ID) / "private" / "test.csv"


def request(submission: Path | None, **values: object) -> GradeRequest:
    return GradeRequest(ID, submission, prepared(ID), **values)  # type: ignore[arg-type]


@pytest.fixture
def competition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A competition of the user's own whose grader is to be written: its submission and dataset are there."""
    shutil.copytree(OWN, tmp_path / "own" / OWN.name)
    monkeypatch.setenv(registry.OWN_VARIABLE, str(tmp_path / "own"))
    data = tmp_path / "data" / OWN.name / "prepared"
    for part, name in (("public", "sample_submission.csv"), ("private", "test.csv")):
        (data / part).mkdir(parents=True)
        pd.DataFrame({"id": [1], "height": [0.5]}).to_csv(data / part / name, index=False)
    return tmp_path


def write_grader(place: Path, body: str) -> GradeRequest:
    """Let the competition's grader do something; returns the request to grade its sample."""
    (place / "own" / OWN.name / "task.py").write_text(f"def grade(case):\n    import os\n    {body}\n")
    data = place / "data" / OWN.name / "prepared"
    return GradeRequest(OWN.name, data / "public" / "sample_submission.csv", data)


def theirs(place: Path) -> Path:
    """A submission that an agent wrote; its graders tell it from the sample by its value."""
    path = place / "submission.csv"
    pd.DataFrame({"id": [1], "height": [7.5]}).to_csv(path, index=False)
    return path


OF_AGENTS = "if case.submission['height'].iloc[0] != 7.5: return 0.0\n   "


def test_a_child_says_what_this_process_would_say(gold: Path) -> None:
    here = judge(GradeRequest(ID, gold, prepared(ID)))
    assert grade(request(gold)) == here
    assert grade(request(gold)) == here, "and so does one that finds the libraries loaded"


def test_parameters_and_answers_reach_the_child(gold: Path, tmp_path: Path) -> None:
    found = GradeRequest(ID, gold, tmp_path, parameters={"seed": 1}, answers=gold)
    assert grade(found).score == 1.0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("while True: pass", "takes more than 1 s of processor time"),
        ("import time; time.sleep(60)", "takes more than 4 s"),
        ("bytearray(2 << 30)", "needs more than 1 GiB of memory"),
        ("os.abort()", "needs more than 1 GiB of memory"),
    ],
)
def test_a_limit_that_a_submission_exceeds_is_named_in_the_same_words_wherever_it_is_graded(
    competition: Path, body: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = write_grader(competition, f"{OF_AGENTS} {body}")
    wall_seconds = 4 if "sleep" in body else 600  # on a busy machine little work takes long
    limits = JobLimits(wall_seconds=wall_seconds, cpu_seconds=1, memory_bytes=1 << 30)
    # the defaults of Grader, which all use
    monkeypatch.setattr(Grader.__init__, "__defaults__", (limits,))
    data_dir, message = competition / "data", f"Grading the submission {words}."
    submission = theirs(competition)
    grader._shared.close()
    try:
        report = grade_submission(submission, OWN.name, data_dir=data_dir)
        verdict = validate_submission(submission, OWN.name, data_dir=data_dir)
        shown = grade_file(OWN.name, submission, data_dir).report
    finally:
        grader._shared.close()
    (line,) = grade_many([SubmissionLine(OWN.name, str(submission))], data_dir=data_dir)
    is_valid, told = check_form(OWN.name, "v1", wanted.prepared, submission, limits)
    assert {report.outcome, shown.outcome, line.outcome} == {"limits_exceeded"}
    assert {report.message, verdict.message, shown.message, line.message, told} == {message}
    assert not (verdict.valid or is_valid)


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "bytearray(2 << 30)",
        "os.kill(os.getpid(), 9)",
        "raise ValueError('secret answers')",
        "os._exit(3)",
    ],
)
def test_trouble_of_the_grader_is_never_held_against_a_submission(
    competition: Path, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = write_grader(competition, body)
    limits = JobLimits(cpu_seconds=1, memory_bytes=1 << 30)
    monkeypatch.setattr(Grader.__init__, "__defaults__", (limits,))
    data_dir, submission = competition / "data", theirs(competition)
    grader._shared.close()
    try:
        with pytest.raises(Problem, match="could not be graded"):
            grade_submission(submission, OWN.name, data_dir=data_dir)
    finally:
        grader._shared.close()
    (line,) = grade_many([SubmissionLine(OWN.name, str(submission))], data_dir=data_dir)
    assert line.outcome == "not_graded"
    is_valid, told = check_form(OWN.name, "v1", wanted.prepared, submission, limits)
    assert is_valid is None
    assert "secret" not in told


def test_a_submission_that_alone_makes_its_grader_fail_is_at_fault(competition: Path) -> None:
    wanted = write_grader(competition, f"{OF_AGENTS} raise KeyError('odd')")
    judgement = grade(replace(wanted, submission=theirs(competition)))
    assert judgement.outcome == "grader_error"
    assert "odd" in judgement.detail


def test_a_grader_that_is_killed_whenever_it_grades_one_submission_is_no_verdict_on_it(
    competition: Path,
) -> None:
    wanted = write_grader(competition, f"{OF_AGENTS} os.kill(os.getpid(), 9)")
    with pytest.raises(Problem, match="killed its grader 3 times"):
        grade(replace(wanted, submission=theirs(competition)))


def test_a_limit_that_is_exceeded_beside_others_counts_only_if_it_is_exceeded_alone_too(
    competition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    siblings = "open(f'/proc/{os.getppid()}/task/{os.getppid()}/children').read().split()"
    sleep = f"time.sleep(1); time.sleep(60 if len({siblings}) > 1 else 0)"
    wanted = write_grader(competition, f"import time; {sleep}; return 0.5")
    monkeypatch.setattr(Grader.__init__, "__defaults__", (JobLimits(wall_seconds=4),))
    with Grader() as own:
        both = [replace(wanted, submission=theirs(competition)) for _ in range(2)]
        found = [result.judgement for _, result in own.grade_all(both, at_once=2)]
    assert [judgement and judgement.outcome for judgement in found] == ["scored", "scored"]


def test_what_breaks_after_other_gradings_in_its_process_is_graded_again_in_one_of_its_own(
    competition: Path,
) -> None:
    second = "if 'GRADED' in os.environ: raise KeyError('a second one')\n   "
    wanted = write_grader(competition, f"{second} os.environ['GRADED'] = 'yes'; return 0.5")
    with Grader(per_process=10) as own:
        three = [replace(wanted, submission=theirs(competition)) for _ in range(3)]
        found = [result.judgement for _, result in own.grade_all(three)]
    assert [judgement and judgement.score for judgement in found] == [0.5] * 3


def test_graders_see_nothing_of_the_operators_variables(
    competition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    wanted = write_grader(competition, f"{OF_AGENTS} raise ValueError(','.join(sorted(os.environ)))")
    told = grade(replace(wanted, submission=theirs(competition))).detail
    assert "ValueError" in told and registry.OWN_VARIABLE in told
    assert "OPENAI_API_KEY" not in told and "HOME" not in told


def test_graders_write_nothing(competition: Path) -> None:
    wanted = write_grader(competition, f"{OF_AGENTS} open({str(competition / 'made')!r}, 'w').write('x')")
    assert grade(replace(wanted, submission=theirs(competition))).outcome == "grader_error"
    made = competition / "made"
    assert not made.exists() or made.stat().st_size == 0


@pytest.mark.usefixtures("bubblewrap")
def test_graders_can_not_change_the_settings_of_the_kernel(competition: Path) -> None:
    wanted = write_grader(competition, f"{OF_AGENTS} open('/proc/sys/kernel/core_pattern', 'r+').close()")
    told = grade(replace(wanted, submission=theirs(competition)))
    assert (told.outcome, "core_pattern" in told.detail) == ("grader_error", True)


@pytest.mark.usefixtures("bubblewrap")
def test_graders_reach_no_network(competition: Path) -> None:
    wanted = write_grader(competition, f"{OF_AGENTS} raise ValueError(open('/proc/net/dev').read())")
    told = grade(replace(wanted, submission=theirs(competition))).detail
    interfaces = [line.split(":")[0].strip() for line in told.splitlines()]
    assert "lo" in interfaces
    assert not [name for name in interfaces if name.startswith(("eth", "en", "wl"))]


def test_problems_of_the_operator_come_back_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match="is not prepared"):
        grade_submission(None, ID, data_dir=tmp_path)
    with pytest.raises(UsageProblem, match="not known"):
        grade(GradeRequest("titanic", None, tmp_path))
    with pytest.raises(UsageProblem, match="parameter"):
        grade(request(None, parameters={"size": 1}))


@pytest.mark.usefixtures("bubblewrap")
def test_what_the_sandbox_hides_is_named_and_is_no_verdict(gold: Path, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        hidden = Path(folder, "submission.csv")
        shutil.copyfile(gold, hidden)
        named = tmp_path / "named.csv"
        named.symlink_to(hidden)
        for found in (request(hidden), request(named, follow_links=True), request(gold, answers=hidden)):
            with pytest.raises(EnvironmentProblem) as caught:
                grade(found)
            assert str(hidden) in caught.value.why and "/dev/shm" in caught.value.why
        assert grade(request(named)).outcome == "no_file", (
            "an agent's link leads nowhere, wherever it points to"
        )


def test_an_agents_link_is_not_followed(gold: Path, tmp_path: Path) -> None:
    link = tmp_path / "submission.csv"
    link.symlink_to(gold)
    assert grade(request(link)).outcome == "no_file"
    assert grade(request(link, follow_links=True)).score == 1.0


def test_relative_paths_are_those_of_the_caller(
    gold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade(request(gold))  # its process was started in another working directory
    shutil.copy(gold, tmp_path / "here.csv")
    monkeypatch.chdir(tmp_path)
    assert grade(request(Path("here.csv"))).score == 1.0


def test_modules_in_the_working_directory_are_not_imported(
    gold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pandas.py").write_text("import os; os._exit(7)")
    monkeypatch.chdir(tmp_path)
    with Grader() as own:
        assert own.grade(request(gold)).score == 1.0
    assert [path.name for path in tmp_path.iterdir()] == ["pandas.py"]


def test_what_is_killed_from_outside_is_graded_again(gold: Path) -> None:
    with Grader() as own:
        number = own.start(request(gold))
        tree = process_tree()
        readings.kill([child.pid for child in tree.get(os.getpid(), ())])
        found: list[GradeResult] = []

        def graded() -> bool:
            found.extend(own.poll())
            return bool(found)

        eventually(graded)
    assert [result.number for result in found] == [number]
    assert found[0].judgement is not None and found[0].judgement.score == 1.0


def test_a_forked_process_grades_with_a_grader_of_its_own(gold: Path) -> None:
    assert grade(request(gold)).score == 1.0
    pid = os.fork()
    if pid == 0:
        same = False
        try:
            same = grade(request(gold)).score == 1.0
            grader._shared.close()
        finally:
            os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert grade(request(gold)).score == 1.0

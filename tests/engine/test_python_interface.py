"""The documented interface does what its document shows: every example in docs/python.md is run."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from mlebench_console import aggregate, leaderboard_row, results_frame
from mlebench_console.foundation.problems import DataProblem, UsageProblem

ROOT = Path(__file__).parents[2]
OPERAND = ROOT / "tests/engine/scoreboard/operand_row.csv"
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.splitlines()[-1][:40])
def test_every_example_runs(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copyfile(OPERAND, tmp_path / "operand_row.csv")
    line = {"competition_id": "leaf-classification", "submission_path": None}
    (tmp_path / "submission.jsonl").write_text(json.dumps(line) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLEBENCH_STATE_DIR", str(tmp_path / "state"))
    exec(compile(example, "docs/python.md", "exec"), {})
    assert capsys.readouterr().out


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 4


def test_a_split_may_be_a_name_a_file_or_ids(tmp_path: Path) -> None:
    ids = ("herbarium-2020-fgvc7", "aptos2019-blindness-detection")
    listed = tmp_path / "mine.txt"
    listed.write_text("\n".join(ids))
    assert aggregate(OPERAND, split=ids) == aggregate(OPERAND, split=listed)
    assert aggregate(OPERAND, split=ids)["any_medal"].mean == 50.0
    with pytest.raises(UsageProblem, match="not known"):
        aggregate(OPERAND, split=("titanic",))
    with pytest.raises(DataProblem):
        aggregate(OPERAND)


def test_a_row_takes_what_only_a_person_knows() -> None:
    row = leaderboard_row(OPERAND, agent="Operand ensemble", llms="gpt-5", hours=24)
    assert (row.agent, row.llms, row.hours) == ("Operand ensemble", "gpt-5", 24)


def test_a_frame_has_a_line_for_every_trial() -> None:
    frame = results_frame(OPERAND)
    assert len(frame) == 125
    assert int(frame["any_medal"].sum()) == 89
    assert frame.groupby("split")["competition_id"].nunique().to_dict() == {
        "low": 22,
        "medium": 24,
        "high": 7,
    }

"""Each defect of questions about whole pages that edition corrected mends, shown in both editions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import mends
from tests.competitions.prepared import prepared

QUESTIONS = "tensorflow2-question-answering"
LONG = {"start_token": 5, "end_token": 9, "candidate_index": 0}
NONE = {"start_token": -1, "end_token": -1, "candidate_index": -1}


def answer(id_: int, passage: dict[str, int], word: str) -> str:
    annotation: dict[str, Any] = {"yes_no_answer": word, "long_answer": passage, "short_answers": []}
    return json.dumps({"annotations": [annotation], "example_id": str(id_)}, separators=(",", ":")) + "\n"


@mends(QUESTIONS, "accuracy-instead-of-f1")
def test_rows_rightly_left_blank_count_in_v1_and_wrong_and_missing_ones_in_corrected(tmp_path: Path) -> None:
    answers, submission = tmp_path / "answers.jsonl", tmp_path / "submission.csv"
    answers.write_text(answer(1, LONG, "YES") + answer(2, NONE, "NONE") + answer(3, NONE, "NONE"))
    told = {"1_long": "5:9", "1_short": "", "2_long": "1:2", "2_short": "", "3_long": "", "3_short": ""}
    rows = [f"{id_},{claim}\n" for id_, claim in told.items()]
    submission.write_text("".join(["example_id,PredictionString\n", *rows]))
    v1, corrected = (
        judge(GradeRequest(QUESTIONS, submission, prepared(QUESTIONS, edition), edition, answers=answers))
        for edition in EDITIONS
    )
    assert v1.score == pytest.approx(4 / 6)  # one hit and three rightly blank
    assert corrected.score == pytest.approx(2 / (2 + 1 + 1))  # one hit, one wrong, one missing


@mends(QUESTIONS, "preparing-twice-doubles")
@pytest.mark.parametrize("edition", EDITIONS)
def test_preparing_twice_into_one_folder_gives_the_same_files(edition: Edition, tmp_path: Path) -> None:
    folder = prepared_after(lambda raw: None, QUESTIONS, edition, tmp_path)
    names = ["public/simplified-nq-train.jsonl", "public/simplified-nq-test.jsonl", "private/test.jsonl"]
    once = [(folder / name).read_bytes() for name in names]
    first = (folder / names[0]).stat().st_ino
    again = prepare_competition(
        QUESTIONS, data_dir=tmp_path / "data", raw=tmp_path / f"raw-{edition}", edition=edition
    )
    assert again == folder
    assert (folder / names[0]).stat().st_ino != first
    assert [(folder / name).read_bytes() for name in names] == once


def test_keys_keep_their_order_and_ids_become_text() -> None:
    path = prepared(QUESTIONS) / "public" / "simplified-nq-test.jsonl"
    line = json.loads(path.read_text().splitlines()[0])
    assert list(line) == ["example_id", "question_text", "document_text", "long_answer_candidates"]
    assert isinstance(line["example_id"], str)

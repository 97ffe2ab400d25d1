"""Agents get a text that holds for their edition, and on request one that does not tell the competition."""

from __future__ import annotations

import csv
import dataclasses
import re
from pathlib import Path

import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.descriptions import (
    addendum,
    description,
    identifying_words,
    obfuscated_description,
)
from mlebench_console.competitions.model import EDITIONS, Competition, Edition, Obfuscation
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.prepared import prepared

ALL = [registry.get(competition_id) for competition_id in registry.all_ids()]
every_competition = pytest.mark.parametrize("competition", ALL, ids=lambda competition: competition.id)
every_edition = pytest.mark.parametrize("edition", EDITIONS)

TWO_EDITIONS = """# Wolves 2020 - Find the Wolf
Photos of wolves.
<!-- edition v1 -->
The photos are missing.
<!-- edition corrected -->
The photos are in `images/`.
<!-- end -->
Name the wolf.
"""


@pytest.fixture
def wolves(tmp_path: Path) -> Competition:
    """A competition in a folder of the test's own."""
    known = registry.get("spaceship-titanic")
    return dataclasses.replace(
        known,
        id="wolves-2020",
        name="Wolves 2020 - Find the Wolf",
        obfuscation=Obfuscation(("Wolfpack",)),
        folder=tmp_path,
    )


def write(competition: Competition, text: str) -> None:
    competition.description_path.write_text(text, encoding="utf-8")


@every_edition
@every_competition
def test_a_description_tells_the_task_the_files_the_metric_and_the_submission(
    competition: Competition, edition: Edition
) -> None:
    text = description(competition, edition)
    assert text.startswith("# ")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert [name for name in headings if name in ("Files", "Metric", "Submission")] == [
        "Files",
        "Metric",
        "Submission",
    ]
    assert "```" in text.split("## Submission")[1], "an example of a submission"
    assert "<!--" not in text


@every_edition
@every_competition
def test_a_description_does_not_speak_of_what_an_agent_cannot_know(
    competition: Competition, edition: Edition
) -> None:
    text = description(competition, edition)
    found = re.findall(r"(?i)\bedition\b(?! v?\d)|mle-?bench", text.partition("\n")[2])
    assert not found, "agents are told how it is, not which edition it is in"


@every_edition
@every_competition
def test_no_name_no_host_and_no_prize_survives_obfuscation(
    competition: Competition, edition: Edition
) -> None:
    text = obfuscated_description(competition, edition)
    assert not identifying_words(competition, text)
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL).lower()
    for word in ("kaggle", competition.id.lower(), competition.name.lower(), "mle-bench", "prize", "fgvc"):
        assert word not in prose
    for host in competition.obfuscation.hosts:
        assert not re.search(rf"(?<!\w){re.escape(host.lower())}(?!\w)", prose)


@every_edition
@every_competition
def test_an_addendum_tells_all_that_is_graded_and_not_the_competition(
    competition: Competition, edition: Edition
) -> None:
    text = addendum(competition, edition)
    assert all(f"\n## {name}\n" in text for name in ("Files", "Metric", "Submission"))
    assert not identifying_words(competition, text)


@every_edition
@every_competition
def test_obfuscation_keeps_what_the_data_need(competition: Competition, edition: Edition) -> None:
    plain, obfuscated = (make(competition, edition) for make in (description, obfuscated_description))
    code = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
    assert code.findall(plain) == code.findall(obfuscated)
    assert re.findall(r"^## .*$", plain, re.MULTILINE) == re.findall(r"^## .*$", obfuscated, re.MULTILINE)


@pytest.mark.parametrize(
    ("competition", "edition"),
    [
        pytest.param(competition, edition, id=f"{competition.id}-{edition}")
        for competition in ALL
        for edition in EDITIONS
        if edition == "v1" or not competition.excluded
    ],
)
def test_the_example_has_columns_of_the_sample_submission(competition: Competition, edition: Edition) -> None:
    example = description(competition, edition).split("## Submission")[1].split("```")[1].split("\n")[1]
    told = [column for column in next(csv.reader([example])) if column != "..."]
    with (prepared(competition.id, edition) / competition.sample_submission).open(encoding="utf-8") as stream:
        columns = next(csv.reader(stream))
    assert told == [column for column in columns if column in told]


@every_competition
def test_every_renaming_is_of_use(competition: Competition) -> None:
    for phrase in competition.obfuscation.renamings:
        pattern = r"\s+".join(re.escape(word) for word in phrase.split())
        assert any(re.search(pattern, description(competition, edition)) for edition in EDITIONS), phrase


def test_passages_of_one_edition_are_left_out_of_the_other(wolves: Competition) -> None:
    write(wolves, TWO_EDITIONS)
    title, wolf = "# Wolves 2020 - Find the Wolf\nPhotos of wolves.\n", "Name the wolf.\n"
    assert description(wolves, "v1") == f"{title}The photos are missing.\n{wolf}"
    assert description(wolves, "corrected") == f"{title}The photos are in `images/`.\n{wolf}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# W\n<!-- edition v2 -->\n", "line 2 names an unknown edition 'v2'"),
        ("# W\n<!-- end -->\n", "line 2 ends a passage that was never opened"),
        ("# W\n<!-- edition v1 -->\nNo end.\n", "edition v1 is never closed"),
    ],
)
def test_passages_that_are_set_off_wrongly_are_told(wolves: Competition, text: str, message: str) -> None:
    write(wolves, text)
    with pytest.raises(DataProblem, match=message):
        description(wolves, "v1")


def test_a_competition_without_a_description_is_told(wolves: Competition) -> None:
    with pytest.raises(DataProblem, match=r"description\.md cannot be read"):
        description(wolves, "v1")


def test_names_are_renamed_outside_of_code_and_over_line_ends(wolves: Competition) -> None:
    renamed = dataclasses.replace(
        wolves, obfuscation=Obfuscation(("Wolfpack",), {"the Wolfpack Society": "a society"})
    )
    write(renamed, "# Wolves\nPhotos of the Wolfpack\nSociety, in `the Wolfpack Society/`.\n")
    assert obfuscated_description(renamed, "v1") == (
        "# A machine learning problem: tabular\nPhotos of a society, in `the Wolfpack Society/`.\n"
    )


@pytest.mark.parametrize(
    "telling",
    [
        "wolves-2020",
        "Find the Wolf",
        "find\nthe wolf",
        "WOLFPACK",
        "Kaggle",
        "a prize of all",
        "$ 500 for all",
        "USD 20",
    ],
)
def test_a_text_that_would_still_tell_is_refused(wolves: Competition, telling: str) -> None:
    write(wolves, f"# Wolves\nThis is {telling}, you see.\n")
    with pytest.raises(DataProblem, match="would still identify it"):
        obfuscated_description(wolves, "v1")


def test_a_description_without_a_title_is_not_obfuscated(wolves: Competition) -> None:
    write(wolves, "Wolves\n")
    with pytest.raises(DataProblem, match="does not begin with a title"):
        obfuscated_description(wolves, "v1")

"""docs/adding-a-competition.md does what it says: its commands are run and its files are written, in its order."""

from __future__ import annotations

import io
import math
import random
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.console.cli.program import PROGRAM, run
from mlebench_console.engine.authoring import check
from mlebench_console.engine.checks import Health
from tests.conformance.trees import Vector, describe

GUIDE = Path(__file__).parents[2] / "docs" / "adding-a-competition.md"
EXAMPLES = {"forest-photos": "forest", "customer-visits": "shop"}  # and the folders of their raw data
VISITS = "customer-visits"


def steps(text: str) -> Iterator[tuple[str, str]]:
    """The guide's command lines and files in their order: `run` and a line, or a file's name and its text."""
    section = text[text.index("## Two examples") : text.index("## What is checked")]
    for found in re.finditer(
        r"^```sh\n(.*?)^```|`([\w./-]+)`:\n\n~~~\w+\n(.*?)^~~~", section, re.DOTALL | re.M
    ):
        commands, name, content = found.groups()
        if name:
            yield name, content
        else:
            yield from (("run", line) for line in commands.splitlines())


def raw_data(folder: Path) -> None:
    """What the guide says of both examples' raw data."""
    rng = random.Random(4)
    (folder / "forest" / "photos").mkdir(parents=True)
    labels = ["photo,tree\n"]
    for number in range(60):
        (folder / "forest" / "photos" / f"{number:04}.jpg").write_bytes(b"\xff\xd8" + rng.randbytes(30))
        labels.append(f"{number:04}.jpg,{('oak', 'beech', 'pine')[number % 3]}\n")
    (folder / "forest" / "labels.csv").write_text("".join(labels))
    (folder / "shop").mkdir()
    visits = (
        f"{number},C{number // 6},{number // 2},{1 + number % 4},{round(rng.uniform(1, 90), 2)}\n"
        for number in range(120)
    )
    (folder / "shop" / "visits.csv").write_text("visit,customer,day,items,spend\n" + "".join(visits))


@dataclass(frozen=True)
class Home:
    """A home folder in which every step of the guide was taken, and what each command printed."""

    folder: Path
    printed: dict[str, str]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The home folder after the guide's last step."""
    folder = tmp_path_factory.mktemp("guide")
    raw_data(folder)
    printed = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.delenv(registry.OWN_VARIABLE, raising=False)
        patch.chdir(folder)
        for step, text in steps(GUIDE.read_text(encoding="utf-8")):
            words = shlex.split(text, comments=True) if step == "run" else []
            match words:
                case []:
                    (folder / "competitions" / step).write_text(text)
                case ["export", assignment]:
                    name, _, value = assignment.partition("=")
                    patch.setenv(name, value)
                case ["mkdir", "-p", name]:
                    Path(name).expanduser().mkdir()
                case [program, *arguments]:
                    assert program == PROGRAM, text
                    with redirect_stdout(io.StringIO()) as out:
                        code = run(arguments)
                    assert code == 0, out.getvalue()
                    printed[text] = out.getvalue()
    return Home(folder, printed)


@pytest.fixture
def home(walked: Home, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(registry.OWN_VARIABLE, str(walked.folder / "competitions"))
    return walked.folder


def test_both_examples_of_the_guide_pass_every_check_without_a_warning(walked: Home) -> None:
    checked = [text.splitlines() for line, text in walked.printed.items() if " check " in line]
    assert len(checked) == len(EXAMPLES)
    for lines in checked:
        assert [line for line in lines if not line.startswith("ok ")] == []
        assert len(lines) >= 15


def test_customers_of_the_guide_are_in_one_part_only(home: Path, tmp_path: Path) -> None:
    prepared = prepare_competition(VISITS, data_dir=tmp_path, raw=home / EXAMPLES[VISITS])
    train, test = (
        {line.split(",")[1] for line in (prepared / "public" / name).read_text().splitlines()[1:]}
        for name in ("train.csv", "test.csv")
    )
    assert train and test and not train & test


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_vectors_that_were_written_hold_as_those_of_the_benchmark_do(
    home: Path, tmp_path: Path, example: str
) -> None:
    vector = Vector(home / "vectors" / example)
    prepared = prepare_competition(
        vector.id, data_dir=tmp_path / "data", raw=vector.unpack_raw(tmp_path / "raw")
    )
    assert describe(prepared, vector.expected) == vector.expected
    cases = vector.cases()
    assert len(cases) > 60
    for case in cases:
        found = judge(GradeRequest(vector.id, case.submission, prepared))
        assert (found.score is not None) == (case.expect == "score"), case.submission
        if case.score is not None:
            assert found.score is not None
            assert math.isclose(found.score, case.score, rel_tol=1e-9) or math.isnan(case.score)


def test_one_of_the_benchmark_must_be_named_in_its_split(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in registry.get("spaceship-titanic").folder.parent.iterdir():
        if path.is_dir():
            (tmp_path / path.name).symlink_to(path)
    (tmp_path / VISITS).symlink_to(home / "competitions" / VISITS)
    splits = (Path(registry.__file__).parent / "splits.toml").read_text()
    (tmp_path / "splits.toml").write_text(splits)
    monkeypatch.setattr(registry, "_HOME", tmp_path)
    monkeypatch.delenv(registry.OWN_VARIABLE)
    first = next(check(VISITS, home / EXAMPLES[VISITS]))
    assert (first.health, first.text) == (
        "fail",
        "complexity is 'dev', but dev in splits.toml does not list it",
    )
    entry = re.search(r"^```toml\n(dev = \[\n.*?)\]\n```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert entry is not None
    (tmp_path / "splits.toml").write_text(splits.replace("dev = [\n", entry.group(1)))
    registry.clear_caches()
    assert next(check(VISITS, home / EXAMPLES[VISITS])).health is Health.OK
    assert VISITS in registry.read_split("dev")
    registry.clear_caches()

"""Installed packages bring competitions by an entry point, and each competition tells where it comes from."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mlebench_console import grade_submission, prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.foundation.problems import UsageProblem
from tests.competitions.test_own_competition import ID, OWN, raw

__all__ = ["raw"]  # a fixture

PACKAGE = Path(__file__).parent / "package"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the package, as it is built from its sources, with nothing downloaded."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(PACKAGE, folder / "source")
    shutil.copytree(OWN / ID, folder / "source" / "coastal_competitions" / ID)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run(
        [*pip, "--no-build-isolation", "--target", folder / "site", folder / "source"],
        check=True,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"},
    )
    return folder / "site"


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(site))
    # graders are processes of their own
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")])))
    return site


def test_a_competition_of_an_installed_package_is_prepared_and_graded(
    tmp_path: Path, raw: Path, installed: Path
) -> None:
    competition = registry.get(ID)
    assert competition.folder == installed / "coastal_competitions" / ID
    assert registry.is_own(competition)
    assert "coastal_competitions" not in sys.modules, "it was found without being imported"
    prepared = prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    report = grade_submission(prepared / competition.answers, ID, data_dir=tmp_path / "data")
    assert (report.score, report.medal) == (0.0, "gold")


def test_the_list_tells_where_each_competition_comes_from(installed: Path) -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "mlebench_console.console", "competitions", "list", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    sources = {each["id"]: (each["source"], each["rules_url"]) for each in json.loads(listed.stdout)}
    assert sources.pop(ID) == ("coastal-competitions 1.2", None)
    assert {source for source, _ in sources.values()} == {"benchmark"}
    assert len(sources) == 82


def test_a_package_that_names_what_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "gone-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gone\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(f"[{registry.ENTRY_POINTS}]\ngone = gone.competitions\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(
        UsageProblem, match=r"gone 0\.1 cannot be found: its package 'gone\.competitions' is missing"
    ):
        registry.all_ids()


def test_an_id_that_a_folder_and_a_package_share_is_told_with_both(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(registry.OWN_VARIABLE, str(OWN))
    with pytest.raises(
        UsageProblem, match=r"in .*/own and in .*\nRename the one from coastal-competitions 1\.2:"
    ):
        registry.all_ids()

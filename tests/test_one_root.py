"""Installed, everything is one package: nothing generic lands in site-packages, and foreign packages shadow nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("competitions", "console", "engine", "environment", "foundation", "state")


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Build a wheel from the checkout, and one from its source archive."""
    work = tmp_path_factory.mktemp("archives")
    source = work / "source"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(source)], check=True)
    build = "import sys; from hatchling import build; print(getattr(build, sys.argv[1])(sys.argv[2]))"

    def made(kind: str, folder: Path, target: Path) -> Path:
        target.mkdir()
        command = [sys.executable, "-c", build, f"build_{kind}", str(target)]
        name = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split()[
            -1
        ]
        return target / name

    direct = made("wheel", source, work / "direct")
    archive = made("sdist", source, work / "archive")
    subprocess.run(["tar", "-xf", str(archive), "-C", str(work)], check=True)
    unpacked = work / archive.name.removesuffix(".tar.gz")
    return direct, made("wheel", unpacked, work / "from_archive")


def files_of(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as opened:
        return sorted(name for name in opened.namelist() if ".dist-info/" not in name)


def test_the_wheel_from_the_source_archive_has_the_same_files(archives: tuple[Path, Path]) -> None:
    direct, from_archive = archives
    assert files_of(direct) == files_of(from_archive)


def test_a_wheel_has_every_file_once_below_one_package(archives: tuple[Path, Path]) -> None:
    listed = subprocess.run(
        ["git", "ls-files", *FOLDERS], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\n")
    wanted = {f"mlebench_console/{name}" for name in listed if name}
    found = files_of(archives[0])
    assert {name.partition("/")[0] for name in found} == {"mlebench_console"}
    assert len(found) == len(set(found))
    assert wanted <= set(found)


def test_the_program_runs_beside_foreign_packages_of_the_folders_names(
    archives: tuple[Path, Path], tmp_path: Path
) -> None:
    """MLE-bench's checkout has a package `environment`, and the index has `competitions`, `state` and `console`."""
    site, foreign = tmp_path / "site", tmp_path / "foreign"
    with zipfile.ZipFile(archives[0]) as wheel:
        wheel.extractall(site)
    for name in FOLDERS:
        (foreign / name).mkdir(parents=True)
        (foreign / name / "__init__.py").write_text(f"raise ImportError('the foreign {name} was imported')\n")
    program = "from mlebench_console.console.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "competitions", "list", "--json"],
        env={**os.environ, "PYTHONPATH": f"{foreign}:{site}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "spooky-author-identification" in done.stdout

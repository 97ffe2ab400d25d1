"""What a person types about datasets, against the loopback Kaggle: what is told, with which exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.competitions.model import Competition
from mlebench_console.engine import control
from mlebench_console.engine.places import Places
from tests.console.cli.conftest import Cli
from tests.engine.harness import eventually
from tests.kaggle.fixtures import LOSS, login
from tests.kaggle.loopback import Fault, Loopback

OPEN, RULES, GONE = "spaceship-titanic", "dog-breed-identification", "leaf-classification"
BOTH = ("-c", OPEN, "-c", RULES, "-c", GONE)
URL = f"https://www.kaggle.com/c/{RULES}/rules"


@pytest.fixture
def three(loopback: Loopback, places: Places) -> Iterator[Loopback]:
    """Kaggle with one competition that is open, one with rules to accept, and one that it no longer has."""
    loopback.add(OPEN)
    loopback.add(RULES, accepted=False)
    loopback.add(GONE, gone=True)
    yield loopback
    control.stop(places, with_runs=True)


def test_rules_tells_open_refused_and_gone_apart(three: Loopback, cli: Cli, clean_environment: Path) -> None:
    found = cli("datasets", "rules", *BOTH, "--json").document()
    assert [(one["competition_id"], one["state"]) for one in found] == [
        (OPEN, "open"),
        (RULES, "rules"),
        (GONE, "gone"),
    ]
    told = cli("datasets", "rules", *BOTH)
    assert told.code == 0
    assert "no longer available" in told.out and URL in told.out
    assert "1 of 3 may be downloaded" in told.out
    login(clean_environment, key="wrong")
    assert "does not accept the credentials" in cli("datasets", "rules", "-c", OPEN).out
    (clean_environment / ".kaggle" / "kaggle.json").unlink()
    alone = cli("datasets", "rules", "-c", OPEN)
    assert (alone.code, alone.out) == (5, "")
    assert "no Kaggle credentials were found" in alone.err and "access_token" in alone.err


def test_without_a_network_it_is_said_once_and_soon(loopback: Loopback, cli: Cli, places: Places) -> None:
    loopback.close()
    found = cli("datasets", "rules", "--split", "low", "--json").document()
    assert len(found) == 22 and len({one["problem"] for one in found}) == 1
    assert "Kaggle can't be reached" in found[0]["problem"]
    told = cli("prepare", "--lite", "--dry-run")
    assert told.code == 0 and "asking Kaggle: 22 of 22" in told.err


def test_doctor_asks_kaggle_about_every_kind_of_credentials(
    loopback: Loopback, cli: Cli, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGGLE_API_TOKEN", "KGAT_revoked")
    (clean_environment / ".kaggle" / "access_token").write_text("two\nlines")
    checks = json.loads(cli("doctor", "--online", "--json").out)
    about = [one for one in checks if one["name"] == "kaggle"]
    assert [(one["health"], one["found"].replace(str(clean_environment), "~")) for one in about] == [
        ("ok", "credentials in KAGGLE_API_TOKEN"),
        ("warn", "~/.kaggle/access_token can't be used: it has 2 lines instead of one token"),
        ("ok", "credentials in ~/.kaggle/kaggle.json"),
        ("warn", "Kaggle does not accept those in KAGGLE_API_TOKEN"),
        ("ok", "Kaggle accepts the credentials in ~/.kaggle/kaggle.json"),
    ]
    assert "KGAT_revoked" not in str(checks)


def test_a_dry_run_tells_everything_and_does_nothing(three: Loopback, cli: Cli, places: Places) -> None:
    damaged = places.data_dir / "aerial-cactus-identification"
    damaged.mkdir(parents=True)
    (damaged / "x.zip").write_bytes(b"no zip")
    chosen = (*BOTH, "-c", damaged.name)
    document = cli("prepare", *chosen, "--dry-run", "--json").document()
    assert {one["competition_id"]: one["to_do"] for one in document["datasets"]} == {
        OPEN: "download",
        RULES: "refused",
        GONE: "refused",
        damaged.name: "prepare",
    }
    size = len(three.shelves[OPEN].archive)
    assert document["download_bytes"] == size and document["needed_bytes"] > size
    assert document["seconds"] is None
    assert "x.zip cannot be read as a zip" in next(
        one["problem"] for one in document["datasets"] if one["competition_id"] == damaged.name
    )
    told = cli("prepare", *chosen, "--dry-run")
    assert told.code == 0
    assert (
        "it fits" in told.out and "You must accept" in told.out and "1 of unknown size left out" in told.out
    )
    assert [path.name for path in places.data_dir.iterdir()] == [damaged.name]
    assert not places.state_dir.exists()


def test_one_prepared_two_refused_and_each_is_told_on_plain_lines(
    three: Loopback, cli: Cli, places: Places
) -> None:
    done = cli("prepare", *BOTH, "--skip-verification", "--jobs", "2")
    assert done.code == 3
    assert f"{OPEN}: prepared" in done.out and "1 of 3 prepared" in done.out
    refused, gone = sorted(done.err.splitlines(), key=lambda line: GONE in line)
    assert refused.startswith(f"{RULES}: Kaggle refuses the download: You must accept") and URL in refused
    assert gone.startswith(f"{GONE}: no longer available on Kaggle")
    assert "\x1b" not in done.out + done.err
    states = {one["competition_id"]: one for one in cli("datasets", "list", "--json").document()}
    assert [states[name]["state"] for name in (OPEN, RULES, GONE)] == ["prepared", "refused", "unavailable"]
    assert [states[name]["access"] for name in (OPEN, RULES, GONE)] == ["open", "rules", "gone"]
    assert "unavailable" in cli("datasets", "list").out
    three.shelves[RULES].accepted = True
    (again,) = cli("prepare", "-c", RULES, "--skip-verification", "--json").document()
    assert (again["state"], again["problem"]) == ("prepared", "")


def test_what_is_wrong_with_all_is_told_in_full_once(
    three: Loopback, cli: Cli, clean_environment: Path
) -> None:
    login(clean_environment, key="wrong")
    done = cli("prepare", *BOTH)
    assert done.code == 3
    lines = done.err.splitlines()
    assert sum("does not accept the credentials" in line for line in lines) == 1
    assert sum("the same as with" in line for line in lines) == 2
    assert three.count("storage") == 0
    (clean_environment / ".kaggle" / "kaggle.json").unlink()
    lines = cli("prepare", *BOTH).err.splitlines()
    assert sum("no Kaggle credentials were found" in line for line in lines) == 1


def test_a_terminal_shows_bars_and_an_interrupt_leaves_the_engine_at_it(
    three: Loopback, cli: Cli, places: Places
) -> None:
    # The first answers the check; however late the interrupt comes, the download still stands still.
    three.shelves[OPEN].faults.extend([Fault(), *[Fault(stall=True)] * 20])
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "mlebench_console.console", f"--state-dir={places.state_dir}"]
    command += [f"--data-dir={places.data_dir}", f"--config={places.config_file}"]
    shown = b""
    with subprocess.Popen(
        [*command, "prepare", "-c", OPEN], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        while not (b"download" in shown and b"0 of 1 done" in shown and b"\xc2\xb7" in shown):
            shown += os.read(ours, 1 << 16)
        process.send_signal(2)
        try:
            while part := os.read(ours, 1 << 16):
                shown += part
        except OSError:  # how Linux tells that nobody is at the other end any more
            shown += b""
    os.close(ours)
    assert process.returncode == 130
    assert b"The engine continues; 'mlebench-console datasets stop --all' stops it." in shown
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")  # the cursor is back
    partial = places.data_dir / OPEN / f"{OPEN}.zip.partial"
    assert "1 dataset is being stopped" in cli("datasets", "stop", "--all").out
    eventually(lambda: cli("datasets", "stop", "--all").out == "nothing is being prepared\n")
    assert partial.exists()
    three.shelves[OPEN].faults.clear()
    done = cli("prepare", "-c", OPEN, "--skip-verification")
    assert (done.code, done.err) == (0, "")
    assert not partial.exists()


def test_a_dataset_is_shown_verified_and_pruned(three: Loopback, cli: Cli, places: Places) -> None:
    assert cli("prepare", "-c", OPEN, "--skip-verification").code == 0
    shown = cli("datasets", "show", OPEN, "--json").document()
    assert (shown["state"], [part["name"] for part in shown["parts"]]) == ("prepared", ["zip", "prepared"])
    assert {step["state"] for step in shown["steps"]} == {"done"}
    told = cli("datasets", "show", OPEN).out
    assert "step        checksum: done" in told and "not verified" in told

    differing = cli("datasets", "verify", "-c", OPEN)
    assert differing.code == 3 and "unlike the known checksum" in differing.err
    (one,) = json.loads(cli("datasets", "verify", "-c", OPEN, "--json").out)
    assert all(found["found"] == found["sealed"] for found in one["sums"])
    missing = cli("datasets", "verify", "-c", RULES)
    assert missing.code == 3 and f"mlebench-console prepare -c {RULES}" in missing.err

    zip_file = places.data_dir / OPEN / f"{OPEN}.zip"
    asked = cli("datasets", "prune", "-c", OPEN)  # nobody answers, and no is the default
    assert "zip" in asked.out and zip_file.exists()
    refused = cli("datasets", "prune", "-c", OPEN, "--json")
    assert refused.code == 2 and "--yes" in refused.err
    assert cli("datasets", "prune", "-c", OPEN, "--older-than", "1", "--yes", "--json").document() == {
        "removed": [],
        "bytes": 0,
    }
    removed = cli("datasets", "prune", "-c", OPEN, "--yes", "--json").document()
    assert removed["removed"] == [[OPEN, "zip"]] and not zip_file.exists()
    assert cli("datasets", "prune", "-c", OPEN, "--everything", "--yes").code == 0
    assert cli("datasets", "show", OPEN, "--json").document()["state"] == "absent"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["prepare", "-c", "leaf-clasification"], "Did you mean leaf-classification"),
        (["prepare", "-c", OPEN, "--jobs", "0"], "--jobs"),
        (["prepare", "-c", OPEN, "--descriptions", "nobodys"], "no descriptions 'nobodys'"),
        (["prepare", "-c", OPEN, "--edition", "v2"], "v2"),
        (["prepare", "--list", "/nowhere/ids.txt"], "/nowhere/ids.txt"),
        (["datasets", "show", "leaf"], "leaf"),
        (["datasets", "rules", "-c", OPEN, "--split", "low"], "both -c and --split"),
        (["datasets", "stop"], "which datasets to stop is not clear"),
        (["datasets", "prune", "--older-than", "soon"], "--older-than"),
        (["dev", "download-leaderboard"], "which leaderboards is not clear"),
    ],
)
def test_wrong_input_is_named_before_anything_is_done(
    cli: Cli, places: Places, arguments: list[str], told: str
) -> None:
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err and len(done.err.splitlines()) <= 2
    assert not places.state_dir.exists() and not places.data_dir.exists()


def test_a_leaderboard_is_taken_once_and_half_of_one_never(
    loopback: Loopback, cli: Cli, competition: Competition
) -> None:
    facts = competition.folder / "competition.toml"
    before = facts.read_text()
    rows = tuple(f"{0.1 + number / 1000:.5f}" for number in range(1244))
    shelf = loopback.add(LOSS, leaderboard=rows, one_page_only=True)
    command = ("dev", "download-leaderboard", "-c", LOSS)
    (known,) = cli(*command, "--json").document()
    assert (known["state"], known["teams"]) == ("was there", None)
    half = cli(*command, "--force")
    assert half.code == 3 and "Kaggle returned 200 of 1,244 teams" in half.err
    assert facts.read_text() == before
    shelf.one_page_only = False
    taken = cli(*command, "--force")
    assert (taken.code, taken.err) == (0, "")
    assert taken.out == f"{LOSS}: taken, 1,244 teams: gold 0.111  silver 0.161  bronze 0.223  median 0.7215\n"
    (again,) = cli(*command, "--json").document()
    assert (again["state"], again["teams"]) == ("was there", 1244)


def test_leaderboards_of_a_checkout_of_mle_bench_are_imported(
    cli: Cli, competition: Competition, tmp_path: Path
) -> None:
    theirs = tmp_path / "mle-bench" / "mlebench" / "competitions" / LOSS
    theirs.mkdir(parents=True)
    (theirs / "leaderboard.csv").write_text("teamId,score\n1,0.1\n2,0.2\n3,0.4\n")
    (theirs.parent / "custom-task").mkdir()
    command = ("dev", "import-leaderboards", tmp_path / "mle-bench")
    taken = cli(*command)
    assert taken.out == f"{LOSS}: taken, 3 teams: gold 0.1  silver 0.1  bronze 0.1  median 0.2\n"
    assert "no leaf-classification/leaderboard.csv" in cli(*command, "-c", "leaf-classification").err
    alone = ("dev", "import-leaderboards", theirs / "leaderboard.csv")
    assert cli(*alone).code == 2
    (again,) = cli(*alone, "-c", LOSS, "--json").document()
    assert (again["state"], again["teams"]) == ("taken", 3)


def test_kaggles_client_prints_nothing_into_our_output(cli: Cli, places: Places) -> None:
    """Importing the package `kaggle` without credentials prints a banner and exits; we only use its SDK."""
    asked: dict[str, Any] = {"capture_output": True, "text": True, "env": {**os.environ}}
    program = "import sys, mlebench_console.engine.kaggle.client, kagglesdk.kaggle_client\n"
    program += "print('kaggle' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], **asked)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_edition_raw_data_and_description_are_as_they_were_asked_for(
    loopback: Loopback, cli: Cli, places: Places, tmp_path: Path
) -> None:
    loopback.add(OPEN, pages={"Description": "Passengers of a ship.", "rules": "Be nice."})
    own = tmp_path / "texts" / OPEN
    own.mkdir(parents=True)
    (own / "description.md").write_text("Mine.")
    folder = places.data_dir / OPEN
    description = Path("public") / "description.md"
    plain = ("prepare", "-c", OPEN, "--skip-verification")
    assert cli(*plain, "--keep-raw", "--descriptions", "kaggle").code == 0
    assert "Passengers of a ship." in (folder / "prepared" / description).read_text()
    assert {path.name for path in (folder / "raw").iterdir()} >= {"train.csv", "test.csv"}
    corrected = cli("prepare", "-c", OPEN, "--edition", "corrected", "--raw", folder / "raw", "--json")
    (document,) = corrected.document()
    assert (document["state"], document["edition"]) == ("prepared", "corrected")
    assert (folder / "prepared-corrected" / description).exists()
    assert (folder / "raw" / "train.csv").exists()  # given raw data are left untouched
    for choice, wanted in (("obfuscated", ""), (str(own.parent), "Mine.")):
        assert cli(*plain, "--again", "--descriptions", choice).code == 0
        text = (folder / "prepared" / description).read_text()
        assert wanted in text and "Passengers" not in text
    shown = cli("datasets", "show", OPEN, "--edition", "corrected", "--json").document()
    assert (shown["edition"], shown["state"]) == ("corrected", "prepared")
    control.stop(places, with_runs=True)


def test_facts_are_overwritten_on_demand_only(
    loopback: Loopback, cli: Cli, places: Places, competition: Competition
) -> None:
    facts = competition.folder / "competition.toml"
    rows = tuple(f"{0.1 + number / 1000:.5f}" for number in range(1244))
    loopback.add(LOSS, leaderboard=rows)
    assert cli("prepare", "-c", LOSS, "--skip-verification").code == 0
    before = facts.read_text()
    done = cli("prepare", "-c", LOSS, "--overwrite-checksums", "--overwrite-leaderboard")
    assert (done.code, done.err) == (0, "")
    after = facts.read_text()
    assert "gold = 0.111" in after and "gold = 0.111" not in before
    marker = json.loads((places.data_dir / LOSS / "prepared" / ".complete.json").read_text())
    assert all(md5 in after for md5 in marker["private"].values())
    control.stop(places, with_runs=True)


def test_what_a_sweep_still_needs_is_not_pruned(three: Loopback, cli: Cli, places: Places) -> None:
    assert cli("prepare", "-c", OPEN, "--skip-verification").code == 0
    assert cli("engine", "start").code == 0
    launched = ("sweep", "launch", "--agent", "dummy", "-c", OPEN, "--minutes", "5", "--seeds", "20")
    assert cli(*launched, "--concurrency", "1", "--name", "held").code == 0
    cli("sweep", "pause", "held")
    kept = cli("datasets", "prune", "--sweep", "held", "--everything", "--yes")
    assert f"{OPEN}: its prepared data stay, sweep held has runs of it that have not ended" in kept.out
    assert (places.data_dir / OPEN / "prepared").is_dir()
    assert not (places.data_dir / OPEN / f"{OPEN}.zip").exists()

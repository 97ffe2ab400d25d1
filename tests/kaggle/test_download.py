"""A download becomes a zip only when it is whole, whatever the network and the processes do on the way."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import math
import random
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mlebench_console.engine.kaggle import (
    CredentialsRefused,
    KaggleFailure,
    KaggleUnreachable,
    NotAvailable,
    RulesNotAccepted,
    client,
)
from mlebench_console.engine.kaggle.client import Kaggle
from mlebench_console.engine.kaggle.download import download
from mlebench_console.engine.space import DiskFull
from tests.clocks import HandClock
from tests.kaggle.fixtures import login
from tests.kaggle.loopback import KEY, SIGNATURE, TOKEN, Fault, Loopback, cuts

ID = "spaceship-titanic"
PATIENCE = 100.0
BODY = random.Random(7).randbytes(5_000_000)


class Waits(HandClock):
    """Retries without waiting, by a clock that says it has waited; keeps for how long and why."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []
        self.reasons: list[str] = []

    def __call__(self, seconds: float, why: str) -> None:
        self.moment += seconds
        self.seconds.append(seconds)
        self.reasons.append(why)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / f"{ID}.zip"


def fetch(target: Path, waits: Waits, told: list[tuple[int, int]] | None = None) -> str:
    heard: list[tuple[int, int]] = [] if told is None else told
    with Kaggle(patience=PATIENCE, wait=waits, clock=waits) as kaggle:
        return download(kaggle, ID, target, report=lambda done, total: heard.append((done, total)))


def alone(target: Path) -> bool:
    return [path.name for path in target.parent.iterdir()] == [target.name]


@pytest.mark.parametrize("direct", [False, True])
def test_a_whole_file_arrives_with_its_md5(
    loopback: Loopback, target: Path, waits: Waits, direct: bool
) -> None:
    loopback.add(ID, archive=BODY, direct=direct)
    told: list[tuple[int, int]] = []
    found = fetch(target, waits, told)
    assert target.read_bytes() == BODY
    assert found == hashlib.md5(BODY).hexdigest()
    assert told[0] == (0, len(BODY)) and told[-1] == (len(BODY), len(BODY))
    assert alone(target)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("direct", [False, True])
def test_cuts_at_any_byte_cost_only_what_is_missing(
    loopback: Loopback, target: Path, waits: Waits, seed: int, direct: bool
) -> None:
    loopback.add(ID, archive=BODY, faults=cuts(BODY, 6, seed), direct=direct)
    fetch(target, waits)
    assert target.read_bytes() == BODY
    assert alone(target)
    assert any(asked.range for asked in loopback.asked)


def test_credentials_do_not_follow_to_the_storage(loopback: Loopback, target: Path, waits: Waits) -> None:
    loopback.add(ID, archive=BODY, faults=[Fault(cut_after=1_000_000)])
    fetch(target, waits)
    asked = [one for one in loopback.asked if one.what == "storage"]
    assert asked and not any(one.authorization for one in asked)


def test_a_killed_download_goes_on_where_it_was(loopback: Loopback, target: Path, waits: Waits) -> None:
    loopback.add(ID, archive=BODY, faults=[Fault(cut_after=3_000_000)])
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from mlebench_console.engine.kaggle.client import Kaggle\n"
        "from mlebench_console.engine.kaggle.download import download\n"
        "def die(seconds, why): os.kill(os.getpid(), signal.SIGKILL)\n"
        "with Kaggle(wait=die) as kaggle:\n"
        f"    download(kaggle, {ID!r}, Path(sys.argv[1]), report=lambda done, total: None)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(target)], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not target.exists()
    told: list[tuple[int, int]] = []
    found = fetch(target, waits, told)
    assert told[0][0] > 2_000_000
    assert found == hashlib.md5(BODY).hexdigest()
    assert target.read_bytes() == BODY


def test_a_part_of_something_else_is_not_gone_on_with(loopback: Loopback, target: Path, waits: Waits) -> None:
    shelf = loopback.add(ID, archive=BODY, faults=[Fault(cut_after=3_000_000), Fault(status=404)])
    with pytest.raises(KaggleUnreachable), Kaggle(patience=0, wait=waits) as kaggle:
        download(kaggle, ID, target, report=lambda done, total: None)
    shelf.faults.clear()
    shelf.archive = BODY[::-1]
    fetch(target, waits)
    assert target.read_bytes() == BODY[::-1]


def test_a_server_that_forgets_the_range_does_no_harm(loopback: Loopback, target: Path, waits: Waits) -> None:
    faults = [Fault(cut_after=3_000_000), Fault(), Fault(forget_range=True)]
    loopback.add(ID, archive=BODY, faults=faults)
    fetch(target, waits)
    assert target.read_bytes() == BODY


def test_wrong_content_is_fetched_again_and_told_in_the_end(
    loopback: Loopback, target: Path, waits: Waits
) -> None:
    shelf = loopback.add(ID, archive=BODY, faults=[Fault(garble=True)])
    fetch(target, waits)
    assert target.read_bytes() == BODY
    target.unlink()
    shelf.faults.extend([Fault(garble=True)] * 3)
    with pytest.raises(KaggleFailure, match="downloaded data are damaged"):
        fetch(target, waits)
    assert not target.exists()


def test_a_silent_server_is_left_and_asked_again(
    loopback: Loopback, target: Path, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "TIMEOUTS", (30.0, 0.3))
    loopback.add(ID, archive=BODY, faults=[Fault(stall=True)])
    fetch(target, waits)
    assert target.read_bytes() == BODY
    assert len(waits.reasons) == 1


def test_kaggle_is_waited_for_as_long_as_it_says(loopback: Loopback, target: Path, waits: Waits) -> None:
    shelf = loopback.add(ID, archive=BODY, faults=[Fault(status=503)])
    shelf.call_faults.append(Fault(status=429, retry_after="17"))
    fetch(target, waits)
    assert 17 <= waits.seconds[0] < 22
    assert waits.reasons == ["Kaggle answered 429", "Kaggle answered 503"]
    shelf.call_faults.append(Fault(status=429, retry_after="0"))
    target.unlink()
    fetch(target, waits)
    assert waits.seconds[-1] >= 1


def test_patience_counts_time_and_not_tries(loopback: Loopback, target: Path, waits: Waits) -> None:
    shelf = loopback.add(ID, archive=BODY)
    shelf.call_faults.extend([Fault(status=500)] * 50)
    begun = waits.moment
    with pytest.raises(KaggleUnreachable, match="Kaggle answered 500"):
        fetch(target, waits)
    assert PATIENCE / 3 < waits.moment - begun <= PATIENCE
    assert loopback.count("DownloadDataFiles") == len(waits.seconds) + 1
    assert all(later > 1.5 * sooner for sooner, later in itertools.pairwise(waits.seconds))
    shelf.call_faults.clear()
    shelf.faults.extend(Fault(cut_after=2_000_000) for _ in range(2))
    with Kaggle(patience=0, wait=waits) as kaggle:  # whoever gets on needs no patience
        download(kaggle, ID, target, report=lambda done, total: None)
    assert target.read_bytes() == BODY


def test_refusals_are_told_apart(
    loopback: Loopback, target: Path, waits: Waits, clean_environment: Path
) -> None:
    shelf = loopback.add(ID, archive=BODY, accepted=False)
    with pytest.raises(RulesNotAccepted, match=f"must accept.*\n.*kaggle.com/c/{ID}/rules"):
        fetch(target, waits)
    shelf.gone = True
    with pytest.raises(NotAvailable, match="no longer available"):
        fetch(target, waits)
    login(clean_environment, key="wrong")
    with pytest.raises(CredentialsRefused, match=r"answered 401 to those in .*kaggle\.json"):
        fetch(target, waits)
    (clean_environment / ".kaggle" / "kaggle.json").unlink()
    with pytest.raises(CredentialsRefused, match="no Kaggle credentials"):
        fetch(target, waits)
    assert waits.seconds == []


def test_what_does_not_fit_is_not_begun(
    loopback: Loopback, target: Path, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    loopback.add(ID, archive=BODY)
    monkeypatch.setattr("mlebench_console.engine.space.free_bytes", lambda folder: 4_000_000)
    with pytest.raises(DiskFull, match=r"5\.0 MB are needed .*, 4\.0 MB are free"):
        fetch(target, waits)


@pytest.mark.parametrize("way", ["token in the environment", "token file", "variables", "login"])
def test_every_way_to_sign_in_works(
    loopback: Loopback,
    target: Path,
    waits: Waits,
    clean_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    loopback.add(ID, archive=b"x")
    own = clean_environment / ".kaggle"
    (own / "kaggle.json").unlink()
    match way:
        case "token in the environment":
            monkeypatch.setenv("KAGGLE_API_TOKEN", TOKEN)
        case "token file":
            (own / "access_token").write_text(f"{TOKEN}\n")
        case "variables":
            monkeypatch.setenv("KAGGLE_USERNAME", "alice")
            monkeypatch.setenv("KAGGLE_KEY", KEY)
        case "login":
            (own / "credentials.json").write_text('{"refresh_token": "again", "username": "alice"}')
    fetch(target, waits)
    assert target.read_bytes() == b"x"


def test_refused_credentials_are_named_and_the_next_ones_used(
    loopback: Loopback,
    target: Path,
    waits: Waits,
    clean_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    loopback.add(ID, archive=b"x")
    own = clean_environment / ".kaggle"
    monkeypatch.setenv("KAGGLE_API_TOKEN", "KGAT_revoked")
    (own / "access_token").write_text(f"{TOKEN}\n# mine\n")
    fetch(target, waits)  # with kaggle.json
    assert [one.authorization[:6] for one in loopback.asked if one.what == "DownloadDataFiles"] == [
        "Bearer",
        "Basic ",
    ]
    assert "does not accept the credentials in KAGGLE_API_TOKEN (401)" in capfd.readouterr().err
    login(clean_environment, key="wrong-key")
    target.unlink()
    with pytest.raises(CredentialsRefused) as refused:
        fetch(target, waits)
    told = str(refused.value) + capfd.readouterr().err
    assert (
        f"401 to those in KAGGLE_API_TOKEN, {own}/kaggle.json; those in {own}/access_token can't be" in told
    )
    assert "it has 2 lines" in told
    assert not any(secret in told for secret in ("KGAT", "wrong-key", TOKEN))


def test_credentials_that_are_renewed_meanwhile_are_used(
    loopback: Loopback, target: Path, clean_environment: Path
) -> None:
    loopback.add(ID, archive=b"x")
    own = clean_environment / ".kaggle"
    (own / "access_token").write_text(TOKEN)
    with Kaggle(patience=0) as kaggle:
        assert kaggle.data_size(ID) == 1
        loopback.accepted = {"Bearer KGAT_renewed"}
        (own / "access_token").write_text("KGAT_renewed")
        assert kaggle.data_size(ID) == 1


def test_an_oauth_login_renews_its_token_within_a_process(
    loopback: Loopback, target: Path, clean_environment: Path
) -> None:
    loopback.add(ID, archive=b"x")
    own = clean_environment / ".kaggle"
    (own / "kaggle.json").unlink()
    kept = {"refresh_token": "again", "access_token": "old", "access_token_expiration": ""}
    (own / "credentials.json").write_text(json.dumps(kept))
    with Kaggle(patience=0) as kaggle:
        for token in ("first", "second", "third"):
            loopback.accepted, loopback.next_token = set(), token
            assert kaggle.data_size(ID) == 1
            assert json.loads((own / "credentials.json").read_text())["access_token"] == token
    assert loopback.count("GenerateAccessToken") == 3
    assert (own / "credentials.json").stat().st_mode & 0o077 == 0
    with Kaggle(patience=0) as kaggle:  # what was kept is used while it holds
        assert kaggle.data_size(ID) == 1
    assert loopback.count("GenerateAccessToken") == 3


def test_no_error_tells_a_secret(loopback: Loopback, target: Path, waits: Waits) -> None:
    faults = [Fault(status=500), Fault(status=403), Fault(cut_after=10), Fault(status=503)]
    loopback.add(ID, archive=BODY, faults=faults)
    with pytest.raises(KaggleUnreachable) as caught, Kaggle(patience=2, wait=waits, clock=waits) as kaggle:
        download(kaggle, ID, target, report=lambda done, total: None)
    loopback.close()
    with pytest.raises(KaggleUnreachable) as refused:
        fetch(target, waits)
    import traceback

    told = "".join(
        line for problem in (caught.value, refused.value) for line in traceback.format_exception(problem)
    )
    told += "".join(waits.reasons)
    for secret in (KEY, TOKEN, SIGNATURE):
        assert secret not in told


def test_files_and_pages_are_listed_whole(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_ROWS_A_PAGE", 2)
    pages = {"Description": "Leaves.", "rules": "Be nice."}
    shelf = loopback.add("leaf-classification", pages=pages)
    with zipfile.ZipFile(io.BytesIO(shelf.archive)) as archive:
        sizes = [one.file_size for one in archive.infolist()]
    with Kaggle() as kaggle:
        assert kaggle.listed_bytes("leaf-classification") == sum(sizes)
        assert loopback.count("ListDataFiles") == 0  # one request is enough, however many files there are
        shelf.tells_summary = False
        assert kaggle.listed_bytes("leaf-classification") == sum(sizes)
        assert loopback.count("ListDataFiles") == math.ceil(len(sizes) / 2) > 1
        assert kaggle.pages("leaf-classification") == pages
        assert kaggle.data_size("leaf-classification") == len(shelf.archive)


def test_a_slow_line_is_seen_moving(loopback: Loopback, target: Path, waits: Waits) -> None:
    loopback.add(ID, archive=BODY[:1_000_000], faults=[Fault(slow=0.01)])
    told: list[tuple[int, int]] = []
    fetch(target, waits, told)
    assert target.read_bytes() == BODY[:1_000_000]
    assert len(told) >= 7 and told == sorted(told)

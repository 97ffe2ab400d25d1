"""A mirror made here is imported there and verified deep, over disks, archives, web servers and S3."""

from __future__ import annotations

import dataclasses
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Checksums, Edition, edition_named
from mlebench_console.engine.datasets.prepared import mirrors
from mlebench_console.engine.datasets.prepared.stores import Bucket, Folder, Store, Web, store_at
from mlebench_console.engine.datasets.prepared.verification import verify
from mlebench_console.engine.layout import dataset_folder, is_prepared, prepared_with
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, Problem, UsageProblem
from tests.conformance.trees import VECTORS, Vector
from tests.engine.datasets.loopback_s3 import ACCESS_KEY, BUCKET, SECRET_KEY, LoopbackS3

IMAGES, TABLES = "paddy-disease-classification", "spaceship-titanic"
PLACES = ("folder", "archive", "web", "plain web", "s3")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with three datasets, of which one has two editions."""
    base = tmp_path_factory.mktemp("prepared")
    wanted: list[tuple[str, Edition]] = [(IMAGES, "v1"), (TABLES, "v1"), (TABLES, "corrected")]
    for competition_id, edition in wanted:
        raw = base / "raw" / competition_id
        if not raw.is_dir():
            raw = Vector(VECTORS / competition_id).unpack_raw(raw)
        prepare_competition(competition_id, data_dir=base / "data", raw=raw, edition=edition)
    return base / "data"


@pytest.fixture
def here(prepared: Path, tmp_path: Path) -> Path:
    """A copy of it that may be changed."""
    return Path(shutil.copytree(prepared, tmp_path / "here"))


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackS3]:
    server = LoopbackS3()
    values = {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": "eu-north-1",
        "NO_PROXY": "127.0.0.1",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    yield server
    server.close()


class _Web(SimpleHTTPRequestHandler):
    """Python's own server, which knows no parts of files; it is asked for some files to cut its answer once."""

    cut: list[str]

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def copyfile(self, source: object, outputfile: object) -> None:
        content = source.read()  # type: ignore[attr-defined]
        if self.path in self.cut:
            self.cut.remove(self.path)
            content = content[: len(content) // 2]
        outputfile.write(content)  # type: ignore[attr-defined]


class _WebWithParts(_Web):
    def do_GET(self) -> None:
        start = self.headers.get("Range")
        if start is None:
            super().do_GET()
            return
        content = Path(self.translate_path(self.path)).read_bytes()[int(start[6:-1]) :]
        self.send_response(206)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def served(folder: Path, handler: type[_Web], cut: list[str]) -> Iterator[str]:
    own = type("Own", (handler,), {"cut": cut})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(own, directory=str(folder)))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def silent(*_: object) -> None:
    """Report to nobody."""


def mirrored(source: Path, place: str) -> dict[tuple[str, str], bool]:
    found = mirrors.mirror(source, mirrors.datasets_in(source), place, silent)
    return {one.key: copied for one, copied in found}


def imported(
    store: Store, data: Path, key: tuple[str, Edition], wait: Callable[[float, str], None] = silent
) -> None:
    competition = registry.get(key[0])
    mirrors.import_dataset(
        competition, dataset_folder(competition, data, key[1]), store, report=silent, wait=wait
    )


def differences(data: Path, key: tuple[str, Edition]) -> str:
    """How a dataset differs from its manifest; the data of tests are not the real ones, whose sums are known."""
    competition = dataclasses.replace(registry.get(key[0]), checksums=Checksums(None, {}, {}))
    return verify(competition, dataset_folder(competition, data, key[1]), deep=True).differences


def tree(folder: Path) -> Mapping[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextmanager
def mirror_at(kind: str, here: Path, tmp_path: Path, s3: LoopbackS3) -> Iterator[tuple[Store, list[str]]]:
    """A mirror of one kind, and a list of the paths whose next reading is to be cut."""
    folder = tmp_path / "mirror"
    if kind == "s3":
        mirrored(here, f"s3://{BUCKET}/some/where")
        yield store_at(f"s3://{BUCKET}/some/where"), s3.cut
        return
    if kind == "archive":
        mirrors.write_archive(here, mirrors.datasets_in(here), tmp_path / "all.tar", silent)
        yield store_at(str(tmp_path / "all.tar")), []
        return
    mirrored(here, str(folder))
    if kind == "folder":
        yield store_at(str(folder)), []
        return
    cut: list[str] = []
    with served(folder, _Web if kind == "plain web" else _WebWithParts, cut) as url:
        yield store_at(url), cut


@pytest.mark.parametrize("kind", PLACES)
def test_a_mirror_made_here_is_imported_there_and_verified_deep(
    kind: str, here: Path, tmp_path: Path, s3: LoopbackS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with mirror_at(kind, here, tmp_path, s3) as (store, cut):
        keys = sorted(one.key for one in mirrors.datasets_of(store))
        assert keys == [(IMAGES, "v1"), (TABLES, "corrected"), (TABLES, "v1")]
        table = next(one for one in mirrors.datasets_of(store) if one.key == (TABLES, "v1"))
        cut.append(f"{'some/where/' if kind == 's3' else '/'}{table.path}/public/train.csv")
        for key in keys:
            imported(store, tmp_path / "there", (key[0], edition_named(key[1])))
        assert cut == [] or kind in ("folder", "archive")
    for competition_id in (IMAGES, TABLES):
        assert tree(tmp_path / "there" / competition_id) == tree(here / competition_id)
    assert differences(tmp_path / "there", (TABLES, "corrected")) == ""
    assert differences(tmp_path / "there", (IMAGES, "v1")) == ""
    public = tmp_path / "there" / IMAGES / "prepared" / "public"
    assert len({path.stat().st_mtime_ns for path in public.rglob("*")}) == 1


def test_a_mirror_takes_only_what_is_new_and_is_a_data_directory_too(here: Path, tmp_path: Path) -> None:
    target = tmp_path / "mirror"
    first = mirrored(here, str(target))
    assert set(first.values()) == {True} and len(first) == 3
    assert set(mirrored(here, str(target)).values()) == {False}
    text = here / TABLES / "prepared" / "public" / "description.md"
    prepare_competition(TABLES, data_dir=here, raw=raw_of(here), descriptions="obfuscated")
    assert mirrored(here, str(target)) == {**dict.fromkeys(first, False), (TABLES, "v1"): True}
    assert (target / TABLES / "prepared" / "public" / "description.md").read_text() == text.read_text()
    assert is_prepared(registry.get(TABLES), dataset_folder(registry.get(TABLES), target))
    assert sorted(path.name for path in (target / TABLES).iterdir()) == ["prepared", "prepared-corrected"]
    (target / "datasets.json").unlink()  # a data directory has no index
    assert len(mirrors.datasets_of(Folder(target))) == 3
    with pytest.raises(UsageProblem, match="its own mirror"):
        mirrored(here, str(here))


def raw_of(here: Path) -> Path:
    folder = here.parent / "raw" / TABLES
    return folder if folder.is_dir() else Vector(VECTORS / TABLES).unpack_raw(folder)


def test_in_s3_a_newer_tree_takes_the_place_of_the_older_one_only_when_it_is_whole(
    here: Path, s3: LoopbackS3
) -> None:
    place = f"s3://{BUCKET}/lab"
    mirrored(here, place)
    before = {one.key: one.path for one in mirrors.datasets_of(Bucket(place))}
    prepare_competition(TABLES, data_dir=here, raw=raw_of(here), descriptions="obfuscated")
    s3.asked.clear()
    assert sum(mirrored(here, place).values()) == 1
    after = {one.key: one.path for one in mirrors.datasets_of(Bucket(place))}
    changed = [key for key in before if before[key] != after[key]]
    assert changed == [(TABLES, "v1")]
    written = [one for one in s3.asked if one.startswith(("PUT", "DELETE"))]
    index = written.index("PUT lab/datasets.json")
    assert all(one.startswith("PUT") for one in written[:index])
    assert all(one.startswith("DELETE") for one in written[index + 1 :])
    assert {
        name.split("/")[1] + "/" + name.split("/")[2] for name in s3.objects if name.count("/") > 1
    } == set(after.values())


def test_an_upload_that_was_interrupted_sends_only_the_rest(here: Path, s3: LoopbackS3) -> None:
    place = f"s3://{BUCKET}"
    mirrored(here, place)
    del s3.objects["datasets.json"]
    image = next(name for name in s3.objects if name.startswith(IMAGES) and "test_images" in name)
    del s3.objects[image]
    s3.asked.clear()
    mirrored(here, place)
    uploaded = [one for one in s3.asked if one.startswith("PUT") and "public/" in one]
    assert uploaded == [f"PUT {image}"]


def test_what_a_killed_import_copied_is_not_copied_again(here: Path, tmp_path: Path) -> None:
    class Breaking(Folder):
        read: list[str]

        def chunks(self, path: str, start: int = 0) -> Iterator[tuple[int, bytes]]:
            if "/public/test_images/" in path and len(self.read) > 5:
                raise KeyboardInterrupt
            self.read.append(path)
            yield from super().chunks(path, start)

    broken = Breaking(here)
    broken.read = []
    with pytest.raises(KeyboardInterrupt):
        imported(broken, tmp_path / "there", (IMAGES, "v1"))
    folder = dataset_folder(registry.get(IMAGES), tmp_path / "there")
    assert not folder.prepared.exists()
    (left,) = folder.root.glob(".import.*")
    whole = {path.name for path in left.rglob("*") if path.is_file() and not path.name.endswith("~")}
    stale = folder.root / ".import.prepared.0123456789ab.partial"
    stale.mkdir()

    class Reading(Breaking):
        def chunks(self, path: str, start: int = 0) -> Iterator[tuple[int, bytes]]:
            self.read.append(path)
            yield from Folder.chunks(self, path, start)

    second = Reading(here)
    second.read = []
    imported(second, tmp_path / "there", (IMAGES, "v1"))
    assert whole and not whole & {Path(path).name for path in second.read}
    assert differences(tmp_path / "there", (IMAGES, "v1")) == ""
    assert [path.name for path in folder.root.iterdir()] == ["prepared"]


def test_a_mirror_that_differs_from_its_manifest_is_not_imported(here: Path, tmp_path: Path) -> None:
    mirrored(here, str(tmp_path / "mirror"))
    table = tmp_path / "mirror" / TABLES / "prepared" / "public" / "train.csv"
    content = bytearray(table.read_bytes())
    content[-2] ^= 1
    table.write_bytes(content)
    store = Folder(tmp_path / "mirror")
    with pytest.raises(DataProblem, match=r"train\.csv does not match its manifest"):
        imported(store, tmp_path / "there", (TABLES, "v1"))
    table.write_bytes(bytes(content) + b"more")
    with pytest.raises(DataProblem, match=r"train\.csv does not match its manifest"):
        imported(store, tmp_path / "there", (TABLES, "v1"))
    assert not is_prepared(registry.get(TABLES), dataset_folder(registry.get(TABLES), tmp_path / "there"))
    manifest = table.parents[1] / "manifest.jsonl"
    manifest.write_bytes(manifest.read_bytes().replace(b"train.csv", b"trial.csv"))
    with pytest.raises(DataProblem, match="does not belong"):
        imported(store, tmp_path / "there", (TABLES, "v1"))
    with pytest.raises(DataProblem, match=r"train\.csv does not match its manifest"):
        damaged = here / TABLES / "prepared" / "public" / "train.csv"
        damaged.write_bytes(content)
        mirrors.write_archive(here, mirrors.datasets_in(here), tmp_path / "all.tar", silent)
    assert not list(tmp_path.glob("*all.tar*"))


def test_what_was_verified_is_compared_with_the_known_sums_when_it_is_imported(
    here: Path, tmp_path: Path
) -> None:
    marker = here / TABLES / "prepared" / ".complete.json"
    facts = json.loads(marker.read_text())
    marker.write_text(json.dumps({**facts, "verified": True}))
    unlike = dataclasses.replace(registry.get(TABLES), checksums=Checksums(None, {}, {"test.csv": "0" * 32}))
    folder = dataset_folder(unlike, tmp_path / "there")
    with pytest.raises(DataProblem, match=r"private/test\.csv does not match the known checksum"):
        mirrors.import_dataset(unlike, folder, Folder(here), report=silent)
    assert prepared_with(folder) is None


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (b"<html>", "not the index of a mirror"),
        (b'{"format": 9, "datasets": []}', "its format is 9"),
        (b'{"format": 1, "datasets": [{"path": "../up", "marker": {}}]}', "can't be read|not taken"),
        (
            b'{"format": 1, "datasets": [{"path": "x/prepared", "marker": {"edition": "v1"}}]}',
            "can't be read",
        ),
    ],
)
def test_what_is_no_mirror_is_refused_by_name(tmp_path: Path, index: bytes, said: str) -> None:
    (tmp_path / "datasets.json").write_bytes(index)
    with pytest.raises(DataProblem, match=said):
        mirrors.datasets_of(Folder(tmp_path))


def test_a_place_that_is_none_or_holds_a_secret_is_refused_without_showing_it(
    tmp_path: Path, s3: LoopbackS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (str(tmp_path / "nowhere"), "s3:///prefix"):
        with pytest.raises(UsageProblem):
            store_at(place)
    for place in ("https://user:hunter2@host/x", "https://host/x?signature=hunter2"):
        with pytest.raises(UsageProblem) as refused:
            store_at(place)
        assert "hunter2" not in str(refused.value)
    (tmp_path / "notes.txt").write_text("no archive")
    with pytest.raises(UsageProblem):
        store_at(str(tmp_path / "notes.txt"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "WRONG")
    with pytest.raises(EnvironmentProblem, match="InvalidAccessKeyId") as wrong:
        mirrors.datasets_of(store_at(f"s3://{BUCKET}"))
    assert SECRET_KEY not in str(wrong.value)


def test_a_mirror_that_is_away_is_asked_some_times_and_named(here: Path, tmp_path: Path) -> None:
    with served(here, _Web, []) as url:
        store = Web(url)
    waited: list[float] = []
    with pytest.raises(Problem, match=r"http://127\.0\.0\.1"):
        imported(store, tmp_path / "there", (TABLES, "v1"), lambda seconds, _: waited.append(seconds))

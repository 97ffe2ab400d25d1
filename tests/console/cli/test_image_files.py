"""Images as one file: brought along, listed, and refused where they are not what is told beside them."""

from __future__ import annotations

from pathlib import Path

from mlebench_console.engine.places import Places, images_folder
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import ImageFile
from tests.console.cli.conftest import Cli

KNOWN = ImageFile(
    name="dummy",
    path="/elsewhere/dummy.tar",
    sha256="2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",  # of "foo"
    bytes=3,
    unpacked_bytes=3,
    image="sha256:0123456789abcdef",
    created=1.0,
)


def test_an_image_that_was_brought_along_is_listed_and_a_wrong_one_is_not(
    cli: Cli, places: Places, tmp_path: Path
) -> None:
    assert "make one: mlebench-console images export AGENT" in cli("images", "files").out
    file = tmp_path / "dummy.tar"
    file.write_bytes(b"foo")
    missing = cli("images", "import", file)
    assert missing.code != 0
    assert "dummy.tar.json" in missing.err
    protocol.write(tmp_path / "dummy.tar.json", KNOWN)
    (brought,) = cli("images", "import", file, "--json").document()
    kept = images_folder(places) / "dummy-0123456789ab.tar.gz"
    assert (brought["path"], kept.read_bytes()) == (str(kept), b"foo")
    listed = cli("images", "files")
    assert all(word in listed.out for word in ("dummy", "2c26b46b68ff", str(kept)))
    file.write_bytes(b"bar")
    wrong = cli("images", "import", file)
    assert "error: " in wrong.err
    assert "is not the file that dummy.tar.json describes" in wrong.err
    assert kept.read_bytes() == b"foo"


def test_what_lies_beside_a_file_names_no_other_place(cli: Cli, places: Places, tmp_path: Path) -> None:
    file = tmp_path / "dummy.tar"
    file.write_bytes(b"foo")
    (tmp_path / "dummy.tar.json").write_text('{"name": "../../x"}')
    assert cli("images", "import", file).code != 0
    for name in ("../../x", "..", ""):
        protocol.write(tmp_path / "dummy.tar.json", ImageFile(**vars(KNOWN) | {"name": name}))
        assert cli("images", "import", file).code != 0
    assert not images_folder(places).exists() or list(images_folder(places).iterdir()) == []

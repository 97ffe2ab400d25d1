"""Whatever an agent leaves, detectors end, follow no link, and say what they could not read."""

from __future__ import annotations

import base64
import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from mlebench_console.engine.integrity import facts
from mlebench_console.engine.integrity.code import SourceFile
from mlebench_console.engine.integrity.material import ExaminedRun, code_of_notebook
from mlebench_console.engine.integrity.results import saved_results
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state.database import Database
from mlebench_console.state.integrity import DetectorResult, Layer
from tests.console.world import FrozenClock
from tests.engine.integrity.made_runs import MadeRun, examined_run

HOSTILE: dict[str, str | bytes] = {
    "nested.py": "(" * 50_000 + ")" * 50_000,
    "chained.py": "x" + ".a" * 60_000,
    "minus.py": "x = " + "-" * 100_000 + "1",
    "added.py": "x = " + '"a" + ' * 5_000 + '"b"',
    "printed.py": "print(" * 150 + "'api.openai.com'" + ")" * 150,
    "null.py": b"x = 1\0\n",
    "utf16.py": "x = 1\n".encode("utf-16"),
    "latin.py": b"# coding: latin-1\nname = '\xe9'\n",
    "surrogate.ipynb": b'{"cells": [{"cell_type": "code", "source": "x = \'\\ud800\'"}]}',
    "list.ipynb": b"[]",
    "cells.ipynb": b'{"cells": [1, null]}',
    "deep.ipynb": b"[" * 100_000,
    "source.ipynb": b'{"cells": [{"cell_type": "code", "source": {"a": 1}}]}',
    "binary.py": bytes(range(256)) * 40,
    "tabs.py": "if x:\n\ty = 1\n        z = 2\n",
}


def look(examined: ExaminedRun) -> Sequence[DetectorResult]:
    list(facts.examine([examined], {}, FrozenClock()))
    return saved_results(examined.folder, Layer.FACTS)


def test_hostile_code_keeps_no_detector_from_looking(state: Database) -> None:
    examined = examined_run(state, MadeRun(code=HOSTILE, submissions=[b"\xff\x00,\n" * 30]))
    assert [(one.detector, one.problem) for one in look(examined) if one.problem] == []
    assert len(examined.code.files) + len(examined.code.unread) == len(HOSTILE)


def test_links_fifos_and_folders_are_not_followed(state: Database) -> None:
    examined = examined_run(state, MadeRun(submissions=["id,y\n1,2\n"]))
    code = examined.folder / "code"
    (code / "passwd.py").symlink_to("/etc/passwd")
    (code / "root").symlink_to("/")
    (code / "folder.py").mkdir()
    os.mkfifo(code / "waits.py")
    assert not [one.problem for one in look(examined) if one.problem]
    assert examined.code.files == ()
    assert examined.code.unread == ("passwd.py: it is a link",)


def test_a_folder_of_code_that_is_a_link_is_not_entered(state: Database) -> None:
    examined = examined_run(state, MadeRun(submissions=["id,y\n1,2\n"]))
    (examined.folder / "code").rmdir()
    (examined.folder / "code").symlink_to("/etc")
    assert examined.code.unread == ("code: it is a link",)


def test_names_that_are_no_text_can_be_kept(state: Database) -> None:
    examined = examined_run(state, MadeRun(submissions=["id,y\n1,2\n"]))
    with open(os.fsencode(examined.folder / "code") + b"/\xff.py", "w") as stream:  # noqa: PTH123 - no text
        stream.write("import openai\n")
    (result,) = (one for one in look(examined) if one.detector == "outside-models")
    result.findings[0].statement.encode()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b'{"cells": [{"cell_type": "code", "source": ["%time\\n", "x = 1\\n", "!ls"]}]}', "\nx = 1\n"),
        (b'{"cells": [{"cell_type": "code", "source": "%%bash\\nrm x"}]}', "\n"),
        (b'{"worksheets": [{"cells": [{"cell_type": "code", "input": "y = 2"}]}]}', "y = 2"),
    ],
)
def test_notebooks_are_read_without_what_is_not_python(content: bytes, code: str) -> None:
    assert code_of_notebook(content) == code


def test_what_is_no_notebook_is_refused() -> None:
    with pytest.raises(DataProblem, match="not a notebook"):
        code_of_notebook(b'{"cells": 3}')


def test_one_wrong_line_hides_nothing_else() -> None:
    file = SourceFile("a.py", "import os\nthis is no python\nimport openai\n")
    assert [(one.module, one.line) for one in file.facts.imports] == [("os", 1), ("openai", 3)]
    assert file.facts.unparsed == 1


def test_results_are_not_written_through_a_link_that_an_agent_has_put_there(
    state: Database, tmp_path: Path
) -> None:
    examined = examined_run(state, MadeRun())
    (tmp_path / "elsewhere").mkdir()
    (examined.folder / "integrity").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataProblem, match="is a link"):
        list(facts.examine([examined], {}, FrozenClock()))
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_payloads_that_unpack_to_a_thousand_times_their_length_are_looked_into_only_so_often(
    state: Database,
) -> None:
    bomb = base64.b64encode(zlib.compress(b"0" * 2_000_000)).decode()
    code = "\n".join(f'x{number} = "{bomb}"' for number in range(300))
    examined = examined_run(state, MadeRun(code={"a.py": code}))
    (result,) = (one for one in look(examined) if one.detector == "answers-in-code")
    assert "of 300 texts in its code that look encoded only 100" in result.findings[-1].statement

"""Public kernels come by Kaggle's own client: notebooks and scripts; what is private or gone is recorded."""

from __future__ import annotations

from collections import Counter

import pytest

from mlebench_console.engine.integrity import kernels
from mlebench_console.engine.places import Places
from tests.console.cli.conftest import Cli
from tests.kaggle.loopback import Loopback, OfferedKernel

ID = "leaf-classification"


def test_kernels_are_fetched_by_command_and_asked_for_once(
    loopback: Loopback, cli: Cli, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_PAUSE_SECONDS", 0.0)
    script, notebook, private, gone, in_r, *rest = kernels.known_kernels()[ID]
    cells = '{"cells": [{"cell_type": "code", "source": ["x = 1\\n", "!ls"]}]}'
    loopback.kernels = {
        script: OfferedKernel("print(1)\r\n"),
        notebook: OfferedKernel(cells, kind="notebook"),
        private: OfferedKernel(status=403),
        in_r: OfferedKernel("x <- 1", language="r"),
    }
    told = cli("integrity", "kernels", "fetch", "-c", ID, "--json").document()
    assert told["fetched"] == {"ok": 2, "private": 1, "gone": 1 + len(rest), "not python": 1}
    folder = places.data_dir / kernels.FOLDER
    assert kernels.text_of(folder, ID, script) == "print(1)\n"
    assert kernels.text_of(folder, ID, notebook) == "x = 1\n"
    assert kernels.fetched(folder, ID)[gone].outcome == "gone"
    assert kernels.fetched(folder, ID)[script].version == 7
    asked = Counter(one.competition for one in loopback.asked)
    assert set(asked.values()) == {1}
    assert "nothing was missing" in cli("integrity", "kernels", "fetch", "-c", ID).out
    assert loopback.count("GetKernel") == len(kernels.known_kernels()[ID])
    listed = cli("integrity", "kernels", "list", "-c", ID, "--json").document()
    assert listed == [{"competition_id": ID, "known": len(asked), "here": 2}]


def test_without_credentials_nothing_is_recorded_as_gone(
    loopback: Loopback, cli: Cli, places: Places
) -> None:
    loopback.accepted.clear()
    told = cli("integrity", "kernels", "fetch", "-c", ID)
    assert told.code == 5 and "401" in told.err
    assert kernels.fetched(places.data_dir / kernels.FOLDER, ID) == {}
    assert cli("integrity", "kernels", "list", "-c", "nothing").code == 2

"""The example in docs/configuration.md is taken by everything that reads config.toml."""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest

from mlebench_console.console.tui.config import read_settings
from mlebench_console.engine.places import Places, find_places, images_folder
from mlebench_console.engine.providers import all_providers, model_prices
from mlebench_console.engine.settings import (
    EngineSettings,
    NotificationSettings,
    Prices,
    read_table,
    slurm_profiles,
)

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "configuration.md"


def test_the_example_is_taken_as_it_stands(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    config = tmp_path / "config.toml"
    config.write_text(example[1])
    values = tomllib.loads(example[1])
    settings = read_settings(config, theme=None, ascii_only=False)
    assert settings.keys.named("sweep.relaunch").keys == ("R",) and settings.refresh_seconds == 0.5
    notified = read_table(config, NotificationSettings)
    assert len(notified.urls) == 2 and notified.uses_terminal
    assert read_table(config, EngineSettings).cpus == values["engine"]["cpus"]
    assert read_table(config, Prices).gpu_hour == values["prices"]["gpu_hour"]
    assert str(find_places(config_file=config, environment={}).data_dir) == values["places"]["data_dir"]
    assert all_providers(config)["local"].url == values["providers"]["local"]["url"]
    assert model_prices(config).price_of("local-llama-3") is not None
    assert asdict(slurm_profiles(config)["default"]).items() >= values["slurm"]["default"].items()
    read = {"places", "engine", "console", "keys", "notifications", "providers", "model_prices", "prices"}
    assert set(values) == read | {"slurm", "filters"}


def test_all_places_are_absolute_because_the_engine_works_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.toml").write_text('[places]\nruns_dir = "runs"\n')
    places = find_places(
        config_file=Path("mine/config.toml"), state_dir=Path("state"), data_dir=Path("data"), environment={}
    )
    assert places == Places(tmp_path / "mine" / "config.toml", tmp_path / "data", tmp_path / "state")
    assert images_folder(places) == tmp_path / "mine" / "runs" / "images"
    # In config.toml a path counts from its folder, wherever the command is given.
    (tmp_path / "mine" / "config.toml").write_text('[places]\nstate_dir = "state"\ndata_dir = "~/data"\n')
    places = find_places(config_file=Path("mine/config.toml"), environment={})
    assert places.state_dir == tmp_path / "mine" / "state" and places.data_dir == Path.home() / "data"

"""Angles and distances on spheres, at places where they are known."""

from __future__ import annotations

import numpy as np
import pytest

from mlebench_console.competitions.registry import get, load_task

angles_between = load_task(get("icecube-neutrinos-in-deep-ice")).angles_between
great_circle = load_task(get("smartphone-decimeter-2022")).great_circle


def test_angles_do_not_depend_on_how_often_an_azimuth_turns() -> None:
    azimuth = np.array([0.0, 0.0, 1.0, 2.0])
    other = np.array([np.pi / 2, np.pi, 1.0 + 4 * np.pi, 5.0])
    zenith = np.array([np.pi / 2, np.pi / 2, 0.5, 0.0])
    found = angles_between((azimuth, other), (zenith, np.array([np.pi / 2, np.pi / 2, 0.5, np.pi])))
    assert found == pytest.approx([np.pi / 2, np.pi, 0, np.pi], abs=1e-7)


def test_distances_on_a_sphere() -> None:
    latitude = np.array([0.0, 0.0, 90.0]), np.array([0.0, 0.0, -90.0])
    longitude = np.array([0.0, 0.0, 10.0]), np.array([90.0, 1.0, 70.0])
    found = great_circle(latitude, longitude, radius=100.0)
    assert found == pytest.approx([50 * np.pi, 100 * np.pi / 180, 100 * np.pi])


def test_places_that_are_none_have_no_distance() -> None:
    one = np.array([1.0, 1.0])
    assert np.isnan(great_circle((one, np.array([np.nan, np.inf])), (one, one), radius=1.0)).all()


def test_angles_are_those_of_the_scalar_product_to_the_last_bit_that_counts() -> None:
    rng = np.random.RandomState(0)
    azimuth, zenith = (rng.uniform(-9, 9, (2, 5000)) for _ in range(2))
    azimuth[1, :2000] = azimuth[0, :2000] + rng.uniform(-1e-5, 1e-5, 2000)
    zenith[1, :2000] = zenith[0, :2000]
    azimuth[1, 2000:2100] *= 1e15
    vectors = [
        np.array([np.sin(down) * np.cos(round_), np.sin(down) * np.sin(round_), np.cos(down)])
        for round_, down in zip(azimuth, zenith, strict=True)
    ]
    expected = np.arccos(np.clip((vectors[0] * vectors[1]).sum(axis=0), -1, 1))
    found = angles_between((azimuth[0], azimuth[1]), (zenith[0], zenith[1]))
    # the arc cosine of nearly 1 makes of the last bit of its argument an angle of 1e-8
    assert np.abs(found - expected).max() < 5e-8
    assert np.abs(found[2000:] - expected[2000:]).max() < 1e-11

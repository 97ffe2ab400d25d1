"""Demo data of nomad2018-predict-transparent-conductors: oxides whose two energies follow their composition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from mlebench_console.engine.demo_data.writing import write_zip, write_zipped_csv

LABELLED = 2400
UNLABELLED = 600
FORMATION_NOISE = 0.0255
BANDGAP_NOISE = 0.09
"""Spread of the two energies, on the logarithmic scale of the metric, that no model can explain."""

_TARGETS = ["formation_energy_ev_natom", "bandgap_energy_ev"]
_SPACE_GROUPS = np.array([12, 33, 167, 194, 206, 227])
_ATOMS = np.array([20, 40, 30, 10, 80, 40])


def write(folder: Path, random: np.random.Generator) -> None:
    """Write the two tables, the two geometry archives and the sample submission, each zipped."""
    table = _materials(LABELLED + UNLABELLED, random)
    train = table.iloc[:LABELLED]
    test = table.iloc[LABELLED:].assign(id=np.arange(1, UNLABELLED + 1))
    write_zipped_csv(folder / "train.csv.zip", train)
    write_zipped_csv(folder / "test.csv.zip", test.drop(columns=_TARGETS))
    write_zipped_csv(
        folder / "sample_submission.csv.zip",
        test[["id"]].assign(**dict(zip(_TARGETS, (0.1779, 1.8892), strict=True))),
    )
    write_zip(folder / "train.zip", _geometries("train", train, random))
    write_zip(folder / "test.zip", _geometries("test", test, random))


def _materials(count: int, random: np.random.Generator) -> pd.DataFrame:
    kind = random.integers(0, len(_SPACE_GROUPS), count)
    shares = np.round(random.dirichlet((0.9, 0.9, 0.9), count) * 16) / 16
    shares[:, 2] = 1 - shares[:, 0] - shares[:, 1]
    aluminium, gallium, indium = shares.T
    size = 1 + 0.02 * gallium + 0.11 * indium
    base = np.array(
        [
            [12.8, 3.1, 6.1],
            [5.2, 8.7, 9.5],
            [5.1, 5.1, 14.1],
            [3.2, 3.2, 25.1],
            [9.3, 9.4, 9.5],
            [8.6, 8.6, 8.7],
        ]
    )
    lengths = base[kind] * size[:, None] * random.normal(1, 0.006, (count, 3))
    angles = np.array([[90, 104, 90], [90, 90, 90], [90, 90, 120], [90, 90, 120], [90, 90, 90], [90, 91, 90]])
    angles = angles[kind] + random.normal(0, 0.02, (count, 3))
    mixing = aluminium * indium + 0.6 * gallium * indium + 0.2 * aluminium * gallium
    strain = lengths[:, 2] / (base[kind][:, 2] * size) - 1
    formation = (
        0.05 + 0.55 * mixing + np.array([0.02, 0.07, 0.01, 0.12, 0.03, 0.06])[kind] + 2.0 * np.abs(strain)
    )
    bandgap = (
        4.9 * aluminium
        + 3.2 * gallium
        + 1.35 * indium
        - 0.9 * mixing
        - np.array([0, 0.1, 0.2, 0.9, 0.3, 0.6])[kind]
    )
    noise = random.normal(0, 1, (2, count))
    formation = np.expm1(np.maximum(np.log1p(formation) + FORMATION_NOISE * noise[0], 0))
    bandgap = np.expm1(np.maximum(np.log1p(np.maximum(bandgap, 0.2)) + BANDGAP_NOISE * noise[1], 0.01))
    return pd.DataFrame(
        {
            "id": np.arange(1, count + 1),
            "spacegroup": _SPACE_GROUPS[kind],
            "number_of_total_atoms": _ATOMS[kind].astype(float),
            "percent_atom_al": aluminium,
            "percent_atom_ga": gallium,
            "percent_atom_in": indium,
            **{f"lattice_vector_{axis + 1}_ang": lengths[:, axis].round(4) for axis in range(3)},
            **{
                f"lattice_angle_{name}_degree": angles[:, axis].round(4)
                for axis, name in enumerate(("alpha", "beta", "gamma"))
            },
            _TARGETS[0]: formation.round(4),
            _TARGETS[1]: bandgap.round(4),
        }
    )


def _geometries(part: str, table: pd.DataFrame, random: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    columns = [
        "id",
        "percent_atom_al",
        "percent_atom_ga",
        *(f"lattice_vector_{axis}_ang" for axis in (1, 2, 3)),
    ]
    for number, aluminium, gallium, *lengths in table[columns].itertuples(index=False):
        lines = ["# made-up material of the demo"]
        for axis, length in enumerate(lengths):
            vector = [0.0, 0.0, 0.0]
            vector[axis] = length
            lines.append("lattice_vector " + " ".join(f"{value:.4f}" for value in vector))
        # Ten atoms stand for the cell: as many metals and oxygens as in M2O3.
        places = random.random((10, 3)) * lengths
        metals = np.where(
            random.random(4) < aluminium, "Al", np.where(random.random(4) < gallium, "Ga", "In")
        )
        for place, element in zip(places, [*metals, *["O"] * 6], strict=True):
            lines.append("atom " + " ".join(f"{value:.4f}" for value in place) + f" {element}")
        yield f"{part}/{number}/geometry.xyz", ("\n".join(lines) + "\n").encode()

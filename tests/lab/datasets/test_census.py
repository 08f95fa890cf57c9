"""Census: the columns, the labels and their quirks, the splits, the errors."""

import gzip
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from lorpman.errors import UsageError
from lorpman.lab.datasets.census import DROPPED_HOUSEHOLD, FIELDS, load
from lorpman.lab.datasets.splits import Arrays

EDUCATION = ("Masters degree(MA MS MEng MEd MSW MBA)", "Children", "Bachelors degree(BA AB BS)")


def row(i: int, **changes: str) -> str:
    """One person: numbers count up, codes have two or three values."""
    values = {name: f"{name} {i % 2}" for name in FIELDS}
    numbers = ("AHRSPAY", "CAPGAIN", "CAPLOSS", "DIVVAL", "MARSUPWT", "WKSWORK")
    values |= {name: str(i * (k + 1)) for k, name in enumerate(numbers)}
    values |= {
        "AAGE": str(30 + i % 20),
        "AHGA": EDUCATION[i % 3],
        "AMARITL": ("Never married", "Widowed")[i % 2],
        "ASEX": ("Male", "Female")[i % 2],
        "INCOME": ("- 50000.", "50000+.")[i % 2],
        "HHDFMX": "Householder",
    }
    return ", ".join({**values, **changes}[name] for name in FIELDS)


def write(path: Path, rows: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    text = ("\n".join(rows) + "\n").encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.fixture
def half(tmp_path: Path) -> Path:
    write(tmp_path / "census" / "census-income.test.gz", [row(i) for i in range(60)])
    return tmp_path


@pytest.fixture
def both(half: Path) -> Path:
    rows = [row(i, HHDFMX=DROPPED_HOUSEHOLD) if i == 7 else row(i) for i in range(101)]
    write(half / "census" / "census-income.data", rows)
    return half


def arrays(dataset: object) -> Arrays:
    assert isinstance(dataset, Arrays)
    return dataset


def everything(root: Path, **options: bool) -> Arrays:
    return arrays(load(root, **options).train)  # type: ignore[arg-type]


def test_half_alone_is_split_and_said_so(half: Path) -> None:
    splits = load(half)
    parts = [arrays(s) for s in (splits.train, splits.validation, splits.test)]
    assert [len(p) for p in parts] == [42, 6, 12]
    assert "70/10/20" in splits.note
    rows = torch.cat([p.rows for p in parts if p.rows is not None])
    assert rows.sort().values.tolist() == list(range(60))


def test_official_files_keep_the_official_test_rows(both: Path) -> None:
    splits = load(both)
    assert splits.note == ""
    parts = [arrays(s) for s in (splits.train, splits.validation, splits.test)]
    assert [len(p) for p in parts] == [80, 20, 60]
    _, (age, _) = parts[2].__getitems__(range(60))
    assert age.tolist() == [int(30 + i % 20 >= 40) for i in range(60)]


def test_numbers_are_standardised_without_looking_at_the_test_rows(both: Path) -> None:
    splits = load(both)
    seen = [
        arrays(s).__getitems__(range(len(arrays(s))))[0] for s in (splits.train, splits.validation)
    ]
    x = torch.cat([part for part in seen if isinstance(part, torch.Tensor)])[:, :6]
    torch.testing.assert_close(x.mean(0), torch.zeros(6), atol=1e-5, rtol=0)
    torch.testing.assert_close(x.std(0, correction=0), torch.ones(6))


def test_every_other_field_is_one_hot(half: Path) -> None:
    x = everything(half).x
    coded = x[:, 6:]
    assert set(coded.unique().tolist()) == {0.0, 1.0}
    # 42 fields less 4 dropped, 2 labels, 6 numbers and sex: 29, of which HHDFMX has one value.
    assert x.shape[1] == 6 + 28 * 2 + 1 + 1
    assert coded[:, :-1].sum(1).unique().tolist() == [29.0]


def test_leak_and_masters_switches(half: Path) -> None:
    assert everything(half).x.shape[1] - everything(half, leak=False).x.shape[1] == 2
    as_published = everything(half).targets[1]
    corrected = everything(half, masters_typo=False).targets[1]
    assert as_published.tolist() == [int(i % 3 == 2) for i in range(60)]
    assert corrected.tolist() == [int(i % 3 != 1) for i in range(60)]


def test_other_tasks(half: Path) -> None:
    data = arrays(load(half, tasks="income-married").train)
    assert data.targets[0].tolist() == [i % 2 for i in range(60)]
    assert data.targets[1].tolist() == [1 - i % 2 for i in range(60)]
    # Age joins the numbers, education brings three columns; income and marriage leave.
    assert data.x.shape[1] == everything(half).x.shape[1] + 1 + 3 - 4


def test_errors(half: Path, tmp_path: Path) -> None:
    path = half / "census" / "census-income.test.gz"
    whole = path.read_bytes()
    with pytest.raises(UsageError, match="unknown census tasks 'age'"):
        load(half, tasks="age")  # type: ignore[arg-type]
    write(path, [row(0), "1, 2, 3"])
    with pytest.raises(UsageError, match="has 3 fields in row 2, expected 42"):
        load(half)
    write(path, [row(0, INCOME="much")])
    with pytest.raises(UsageError, match="has the income 'much'"):
        load(half)
    write(path, [row(0, AAGE="old")])
    with pytest.raises(UsageError, match="no number in field AAGE"):
        load(half)
    write(path, [])
    with pytest.raises(UsageError, match="holds no rows"):
        load(half)
    write(path, [row(i) for i in range(3)])
    with pytest.raises(UsageError, match="validation split is empty"):
        load(half)
    path.write_bytes(whole[:-20])
    with pytest.raises(UsageError, match="not a whole file"):
        load(half)
    path.unlink()
    with pytest.raises(UsageError, match=r"census-income\.test\.gz not found; run: lorpman data"):
        load(half)


@pytest.mark.parametrize(
    ("options", "inputs", "positives"),
    [
        ({}, 468, (39.46, 30.18)),
        ({"masters_typo": False, "leak": False}, 466, (39.46, 33.49)),
        ({"tasks": "income-married"}, 477, (6.20, 43.25)),
    ],
)
def test_real_file(
    real: Path, options: dict[str, bool], inputs: int, positives: tuple[float, float]
) -> None:
    start = time.perf_counter()
    data = everything(real, **options)
    assert time.perf_counter() - start < 10
    assert data.x.shape == (99_762, inputs)
    shares = [100 * y.double().mean().item() for y in data.targets]
    np.testing.assert_allclose(shares, positives, atol=0.005)

"""Labels of lists of other origin: those of the benchmark that is made of them, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.exchange import import_benchmark

ID = [(n % 5, n) for n in (0, 1, 2, 3, 4, 10, 11)]
"""(class, image) of digits."""
OOD = [(5, 5), (7, 7)]
LabelOf = Callable[[int, int], int]
"""(class, image) -> label in a list."""
OTHER_LABELS: dict[str, LabelOf] = {
    "permuted": lambda c, n: [3, 0, 4, 1, 2][c],
    "one-based": lambda c, n: c + 1,
    "gaps": lambda c, n: 10 * c,
    "two classes with a label": lambda c, n: c // 2,
    "a class with two labels": lambda c, n: 4 if n == 10 else c,
}
NEGATIVE = "a negative label"


def write(name: str, folder: Path, label: LabelOf) -> dict[str, str]:
    """Write lists in a format, and return the roles that they do not tell."""
    folder.mkdir(parents=True)
    if name == "csv":
        rows = [f"digits,{n},{c},id,known,test,{label(c, n)}\n" for c, n in ID]
        rows += [f"digits,{n},{c},near,odd,test,-1\n" for c, n in OOD]
        (folder / "images.csv").write_text(
            "source,image_id,class_id,role,group,split,label\n" + "".join(rows)
        )
        return {}
    if name == "openset-imagenet":
        pairs = [(f"{c}/{n}.png", label(c, n)) for c, n in ID] + [(f"{c}/{n}.png", -2) for c, n in OOD]
        (folder / "test.csv").write_text("".join(f"{path},{number}\n" for path, number in pairs))
        return {}
    (folder / "test_known.txt").write_text("".join(f"{c}/{n}.png {label(c, n)}\n" for c, n in ID))
    (folder / "test_odd.txt").write_text("".join(f"{c}/{n}.png -1\n" for c, n in OOD))
    return {"known": "id", "odd": "near"}


@pytest.mark.parametrize("name", ["csv", "openood", "openset-imagenet"])
@pytest.mark.parametrize("case", [*OTHER_LABELS, NEGATIVE])
def test_other_labels_are_refused(case: str, name: str, tmp_path: Path) -> None:
    if case == NEGATIVE and name == "openset-imagenet":
        pytest.skip("a negative label says there that an image is not ID")
    label = OTHER_LABELS.get(case, lambda c, n: -1 if n == 10 else c)
    roles = write(name, tmp_path / "lists", label)
    with pytest.raises(DataError) as refused:
        import_benchmark(name, tmp_path / "lists", tmp_path / "out", source="digits", roles=roles)
    assert refused.value.where == "group known"
    assert not (tmp_path / "out").exists()


@settings(max_examples=20)
@given(numbers=st.permutations(range(5)), offset=st.sampled_from([0, 0, 1]), scale=st.sampled_from([1, 1, 2]))
@pytest.mark.fuzz
def test_accepted_labels_are_kept(
    numbers: list[int], offset: int, scale: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("lists")
    labels = {c: scale * number + offset for c, number in enumerate(numbers)}
    write("openood", folder / "lists", lambda c, n: labels[c])
    try:
        done = import_benchmark(
            "openood", folder / "lists", folder / "out", source="digits", roles={"odd": "near"}
        )
    except DataError:
        assert labels != {c: c for c in range(5)}
        return
    assert done.manifest is not None
    images = done.manifest.images("test", "known")
    made = dict(zip(images["image_id"].to_pylist(), images["label"].to_pylist(), strict=True))
    assert made == {str(n): labels[c] for c, n in ID}


def test_labels_of_unknown_images_are_not_read(tmp_path: Path) -> None:
    write("openood", tmp_path / "lists", lambda c, n: c)
    (tmp_path / "lists" / "test_odd.txt").write_text("".join(f"{c}/{n}.png 0\n" for c, n in OOD))
    done = import_benchmark(
        "openood", tmp_path / "lists", tmp_path / "out", source="digits", roles={"odd": "near"}
    )
    assert done.manifest is not None
    assert done.manifest.images("test", "odd")["label"].to_pylist() == [-1, -1]


@pytest.mark.parametrize("name", ["csv", "openset-imagenet"])
@pytest.mark.parametrize("end", ["\n", "\n\n\n", "\r\n\r\n"])
def test_blank_lines_at_the_end_of_a_table_are_no_rows(name: str, end: str, tmp_path: Path) -> None:
    write(name, tmp_path / "lists", lambda c, n: c)
    (file,) = (tmp_path / "lists").glob("*.csv")
    with file.open("a", newline="") as table:
        table.write(end)
    done = import_benchmark(name, tmp_path / "lists", tmp_path / "out", source="digits")
    assert done.manifest is not None
    assert done.manifest.images("test").num_rows == len(ID) + len(OOD)


@pytest.mark.parametrize(
    "named", [{"roles": {"od": "near"}}, {"roles": {"Odd_": "near"}}, {"sources": {"od": "digits"}}]
)
def test_a_role_or_source_of_no_group_is_refused(named: dict[str, dict[str, str]], tmp_path: Path) -> None:
    write("openood", tmp_path / "lists", lambda c, n: c)
    with pytest.raises(UnknownNameError) as refused:
        import_benchmark("openood", tmp_path / "lists", tmp_path / "out", source="digits", **named)
    assert "odd" in refused.value.near
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["openood", "openset-imagenet"])
def test_an_id_class_among_the_unknown_images_is_refused(name: str, tmp_path: Path) -> None:
    write(name, tmp_path / "lists", lambda c, n: c)
    line = "4/14.png -1\n" if name == "openood" else "4/14.png,-2\n"
    with (tmp_path / "lists" / ("test_odd.txt" if name == "openood" else "test.csv")).open("a") as file:
        file.write(line)
    with pytest.raises(DataError) as refused:
        import_benchmark(name, tmp_path / "lists", tmp_path / "out", source="digits")
    assert refused.value.where == ("group odd" if name == "openood" else "group unknown")

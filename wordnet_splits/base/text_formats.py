"""JSON, TOML and CSV of unknown origin: bounds before parsing, schemas, and files sealed by a checksum.

A checksum is not a signature: an attacker can recompute it. So the reader of each kind of sealed file
recomputes the values that it can, or compares them with other files.
"""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wordnet_splits.base import files
from wordnet_splits.base.digests import digest_json
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import ErrorType, GiB, MiB, read_text

LARGEST_CSV: Final = 1 * GiB
"""Largest list of images, in bytes (14 million images take 0.8 GiB)."""
LARGEST_TOML: Final = 4 * MiB
"""Largest TOML file, in bytes; parsing takes up to 120 times as many (all of ImageNet-21K: 0.3 MiB)."""
DEEPEST: Final = 64
"""Deepest nesting, in levels (ours have at most eight)."""
LONGEST_NUMBER: Final = 40
"""Longest number, in digits (a 64-bit integer has 20, a float's shortest form 24)."""

DELIMITERS: Final = {",": "commas", "\t": "tabs", ";": "semicolons"}
"""Delimiters of columns in tables of text, and their names."""
LONE_SURROGATE: Final = "holds half of a surrogate pair, which is not a character"

_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_BRACKET: Final = re.compile(r"[\[\]{}]")
_DIGITS: Final = re.compile(rf"[0-9_]{{{LONGEST_NUMBER + 1},}}")
_DOTTED: Final = re.compile(rf"^[^=\n#]*?(?:\.[^=\n#.]*){{{DEEPEST},}}", re.MULTILINE)


def csv_rows(path: Path, *, delimiter: str = ",", error: ErrorType = DataError) -> Iterator[list[str]]:
    """Yield the cells of each row of a CSV file, without blank lines at its end.

    Raises
    ------
    error : as `read_text`; not CSV in UTF-8, or the columns of the first row have another delimiter.
    """
    text = io.StringIO(read_text(path, largest=LARGEST_CSV, error=error).rstrip("\r\n"), newline="")
    try:
        for number, cells in enumerate(csv.reader(text, strict=True, delimiter=delimiter)):
            if number == 0:
                check_delimiter(cells, delimiter, where=str(path), error=error)
            yield cells
    except csv.Error as cause:
        raise error(f"is not CSV: {cause}", where=str(path)) from None


def cells_of_line(line: str, delimiter: str, *, where: str, error: ErrorType = DataError) -> list[str]:
    """Return the cells of a table's row that is one line, without the blanks around them.

    Raises
    ------
    error : a quote that the line does not close, or a cell of more than 131,072 characters.
    """
    try:
        (cells,) = csv.reader([line], strict=True, delimiter=delimiter)
    except csv.Error as cause:
        raise error(f"is not a row of a table: {cause}", where=where) from None
    return [cell.strip() for cell in cells]


def check_delimiter(
    cells: Sequence[str], delimiter: str, *, where: str, error: ErrorType = DataError
) -> None:
    """Raise an error for a first row that is one cell by ``delimiter``, but several by another delimiter."""
    if len(cells) != 1:
        return
    for mark, name in DELIMITERS.items():
        if mark != delimiter and mark in cells[0]:
            raise error(
                f"its columns are separated by {name}, not by {DELIMITERS[delimiter]}",
                where=where,
                hint="save it with commas as .csv, or with tabs as .tsv",
            )


def parse_json(text: str, *, where: str, error: ErrorType = DataError) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    error : not JSON, nested deeper than `DEEPEST`, a number of more than `LONGEST_NUMBER` digits, or a text
        with a lone surrogate.
    """
    _check_bounds(text, where, error)
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as cause:
        raise error(f"is not JSON: {cause}", where=where) from None
    if has_lone_surrogate(text, value):
        raise error(LONE_SURROGATE, where=where)
    return value


def has_lone_surrogate(text: str, value: object, start: int = 0, end: int = sys.maxsize) -> bool:
    r"""Return whether the value of a JSON text, from ``start`` to ``end``, has a lone surrogate (``\ud800``).

    UTF-8 cannot encode it, so that no text with it could be written. Python's surrogates for the bytes of a
    path that it cannot decode (``\udc80`` to ``\udcff``) are accepted.
    """
    if text.find(r"\ud", start, end) < 0 and text.find(r"\uD", start, end) < 0:
        return False
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return True
    return False


def read_json(path: Path, *, error: ErrorType = DataError) -> Any:
    """Return the value of a JSON file. Raises as `read_text` and `parse_json`."""
    return parse_json(read_text(path, error=error), where=str(path), error=error)


def parse_toml(text: str, *, where: str, error: ErrorType = DataError) -> dict[str, Any]:
    """Return the table of a TOML text. Raises as `parse_json`."""
    _check_bounds(text, where, error)
    if (deep := _DOTTED.search(_STRING.sub('""', text))) is not None:
        line = text.count("\n", 0, deep.start()) + 1
        raise error(f"line {line}: a key of more than {DEEPEST} parts", where=where)
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as cause:
        raise error(f"not valid TOML: {cause}", where=where) from None


def read_toml(path: Path, *, error: ErrorType = DataError) -> dict[str, Any]:
    """Return the table of a TOML file. Raises as `read_text` and `parse_toml`."""
    return parse_toml(read_text(path, largest=LARGEST_TOML, error=error), where=str(path), error=error)


def toml_table(values: Mapping[str, object]) -> str:
    """Return a table as TOML, one key a line, its tables inline."""
    return "".join(f"{key} = {_toml(value)}\n" for key, value in values.items())


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # TOML's strings, lists and truth values are JSON's, except for one character
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def nesting(text: str) -> int:
    """Return how deep the brackets of a JSON or TOML text nest, outside its strings."""
    depth = deepest = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _check_bounds(text: str, where: str, error: ErrorType) -> None:
    if nesting(text) > DEEPEST:
        raise error(f"is nested more than {DEEPEST} deep", where=where)
    if _DIGITS.search(_STRING.sub("", text)) is not None:
        raise error(f"holds a number of more than {LONGEST_NUMBER} digits", where=where)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def read_rows(table: Traversable) -> list[list[str]]:
    """Return the rows of a shipped table without its comments and column headings."""
    lines = table.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")][1:]


def numbered_lines(lines: Iterable[str]) -> list[tuple[int, str]]:
    """Return lines with their numbers, from 1, without those that are blank or start with #."""
    return [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]


NAME_PATTERN: Final = r"^[a-z0-9][a-z0-9-]{0,63}$"

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
BenchmarkName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}(@seed=-?[0-9]+)?(@local)?$")]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, strict=True)]
Version = Annotated[int, Field(ge=1, le=2**31 - 1, strict=True)]
Role = Literal["id", "near", "far", "external", "csid"]
Split = Literal["train", "val", "test"]
Counted = Literal["classes", "train", "val", "test"]
COUNTED: Final[tuple[Counted, ...]] = get_args(Counted)

CHECKSUM: Final = "checksum"
"""Key of the checksum of a sealed file."""

Model = TypeVar("Model", bound=BaseModel)


class StrictModel(BaseModel):
    """Base of the schemas of files that we write and read back: frozen, no unknown keys, no conversions."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=())


def validate(
    model: type[Model],
    value: object,
    *,
    where: str,
    error: ErrorType = DataError,
    hint: str | None = None,
) -> Model:
    """Return ``value``, read from a file, as an object of the file's schema ``model``.

    Raises
    ------
    error : a key is absent, unknown or of another type; the first such key is named.
    """
    try:
        return model.model_validate(value)
    except ValidationError as cause:
        first = cause.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"])) or "the top"
        message = first["msg"].removeprefix("Value error, ")
        raise error(f"is malformed at {printable(key)}: {message}", where=where, hint=hint) from None
    except RecursionError:
        raise error("is nested too deeply", where=where, hint=hint) from None


def write_sealed(
    path: Path, value: Mapping[str, Any], *, hint: str = files.HINT, aside: Path | None = None
) -> None:
    """Write an object and its checksum in one step. Parameters and errors as `files.replacing`."""
    plain = json.loads(json.dumps(value))  # as a reader gets it: keys are texts, tuples lists
    text = files.json_text({**plain, CHECKSUM: digest_json(plain)})
    files.write_bytes(path, text.encode(), hint=hint, aside=aside)


def read_sealed(
    path: Path, model: type[Model], *, error: ErrorType = DataError, hint: str | None = None
) -> Model:
    """Return the object of a file of `write_sealed` as ``model``, the schema of the file.

    Raises
    ------
    error : the file is absent, malformed, not of the schema, or was altered since it was written.
    """
    data = read_json(path, error=error)
    if not isinstance(data, dict):
        raise error("is malformed: not an object", where=str(path), hint=hint)
    checksum = data.pop(CHECKSUM, None)
    value = validate(model, data, where=str(path), error=error, hint=hint)
    if checksum != digest_json(data):
        raise error("was altered: its checksum differs", where=str(path), hint=hint)
    return value

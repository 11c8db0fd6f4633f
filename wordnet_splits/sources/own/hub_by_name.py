"""A dataset of the Hub by its name: its copy in the cache of ``datasets``, or its Parquet files."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, Final

import platformdirs
from pydantic import BaseModel, ConfigDict

from wordnet_splits.base.errors import DataError, HubError, SourceError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.names import printable
from wordnet_splits.base.schemas import validate
from wordnet_splits.base.text_formats import read_json
from wordnet_splits.catalog.declarations import Declaration
from wordnet_splits.hub.address import MAIN, Address, parse_address
from wordnet_splits.hub.repository import RemoteFile, Repository, huggingface_home
from wordnet_splits.sources.layouts.parquet_named import SPLIT_WORDS
from wordnet_splits.sources.own.layout import ALL
from wordnet_splits.sources.own.rows import Shard
from wordnet_splits.sources.own.shards import split_of

CARD: Final = "README.md"

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHER_ARGUMENTS = re.compile(r".*-[0-9a-f]{16}")
_NUMBERED = re.compile(r"(\w+)-\d{5}-of-\d{5}.*")


class _Listed(BaseModel):
    """The files of a dataset at one commit, all of which were received: path, size and split of each."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    commit: str
    files: tuple[tuple[str, int, str], ...]


def cached_copy(declared: Declaration) -> Path | None:
    """Return the folder in which ``datasets`` keeps a dataset that it loaded, None where it keeps none.

    Raises
    ------
    SourceError : it keeps several.
    """
    address = _address(declared)
    given = os.environ.get("HF_DATASETS_CACHE")
    base = Path(given).expanduser() if given else huggingface_home() / "datasets"
    org, _, name = address.repo.partition("/")
    folder = base / f"{org}___{_WORDS.sub('_', name).lower()}"
    copies = [
        path.parent
        for path in sorted(folder.glob("*/*/*/dataset_info.json"))
        if not _OTHER_ARGUMENTS.fullmatch(path.parts[-4])  # loaded by other arguments than its name
        and not path.parts[-2].endswith(".incomplete")
        and declared.config in (None, path.parts[-4])
        and (address.revision == MAIN or path.parts[-2].startswith(address.revision))
    ]
    if len(copies) > 1:
        shown = ", ".join(str(copy.relative_to(folder)) for copy in copies[:3])
        raise SourceError(
            f"{len(copies)} copies of {address.repo} in the cache: {shown}",
            where=str(folder),
            hint=f'say config = "...", or the last folder as revision: dataset = "{address.repo}@..."',
        )
    return copies[0] if copies else None


def received(declared: Declaration) -> Sequence[Shard]:
    """Return the Parquet files of a dataset in the cache of ``huggingface_hub``, received where they are not.

    A revision is looked up once: what it was then is kept, so that workers, and whoever is offline, read the
    same files.

    Raises
    ------
    MissingPackageError : huggingface_hub is not installed.
    HubError : no such dataset, no access or no connection.
    SourceError : it holds no Parquet, or several configurations.
    """
    address = _address(declared)
    repository = Repository(address.repo)
    kept = _kept(address, declared)
    listed = _read(kept)
    if listed is None:
        listed = _receive(repository, address, declared)
        write_text(kept, listed.model_dump_json())
    shards = []
    for path, size, split in listed.files:
        file = RemoteFile(path, size, None, "")
        shards.append(Shard(repository.cached(file, listed.commit, check=False), split))
    return shards


def _receive(repository: Repository, address: Address, declared: Declaration) -> _Listed:
    commit = repository.commit(address.revision)
    where = repository.where(commit=address.revision)
    if commit is None:
        raise HubError("the Hub has no such dataset, or none that you may see", where=where)
    files = repository.files(commit)
    card = repository.card(files[CARD], commit) if CARD in files else {}
    splits = _splits(sorted(path for path in files if path.endswith(".parquet")), card, declared, where)
    if not splits:
        raise SourceError(
            "holds no Parquet file" + (f" that matches {declared.images}" if declared.images else ""),
            where=where,
            hint="load it with `datasets`: its cache is read, and so is what save_to_disk writes",
        )
    for path in splits:
        repository.cached(files[path], commit)
    return _Listed(commit=commit, files=tuple((p, files[p].size, split) for p, split in splits.items()))


def _splits(
    paths: Sequence[str], card: Mapping[str, Any], declared: Declaration, where: str
) -> dict[str, str]:
    """Return the split of each Parquet file that is to be read, in the order of their rows."""
    if declared.images is not None:
        return _by_name(path for path in paths if PurePosixPath(path).match(declared.images))
    configs = [one for one in card.get("configs") or () if isinstance(one, dict) and "data_files" in one]
    if not configs:
        config = declared.config
        return _by_name(path for path in paths if config is None or f"/{path}".startswith(f"/{config}/"))
    names = [str(one.get("config_name", "default")) for one in configs]
    if declared.config is not None:
        chosen = [one for one, name in zip(configs, names, strict=True) if name == declared.config]
    else:
        chosen = [one for one in configs if one.get("default") is True] or configs
    if len(chosen) != 1:
        has = f"has {len(names)} configurations: {printable(', '.join(names))}"
        raise SourceError(has, where=where, hint=f'say which: config = "{printable(names[0])}"')
    return _by_card(paths, chosen[0]["data_files"])


def _by_card(paths: Sequence[str], data_files: Any) -> dict[str, str]:
    """Return the files that a card lists: a pattern, several, or those of each split."""
    listed: list[tuple[Any, Any]] = []
    if isinstance(data_files, dict):
        listed = list(data_files.items())
    else:
        for one in data_files if isinstance(data_files, list) else [data_files]:
            listed.append((one.get("split"), one.get("path")) if isinstance(one, dict) else ("train", one))
    found: dict[str, str] = {}
    for split, patterns in listed:
        for pattern in patterns if isinstance(patterns, list) else [patterns]:
            for path in paths:
                if isinstance(pattern, str) and fnmatchcase(path, pattern.removeprefix("./")):
                    found.setdefault(path, SPLIT_WORDS.get(str(split).lower(), str(split)))
    return found


def _by_name(paths: Iterable[str]) -> dict[str, str]:
    """Return the splits that the names of files say as ``datasets`` reads them: ``train`` where none does."""
    found = {}
    for path in paths:
        numbered = _NUMBERED.fullmatch(PurePosixPath(path).name)
        found[path] = split_of(Path(path))
        if found[path] == ALL and numbered:
            found[path] = numbered[1]
    return dict.fromkeys(found, "train") if set(found.values()) == {ALL} else found


def _kept(address: Address, declared: Declaration) -> Path:
    folder = Path(platformdirs.user_cache_dir("wordnet-splits")) / "datasets"
    chosen = hashlib.sha256(f"{declared.config}\n{declared.images}".encode()).hexdigest()[:8]
    return folder / f"{address.repo.replace('/', '--')}@{address.revision}-{chosen}.json"


def _read(path: Path) -> _Listed | None:
    if not path.is_file():
        return None
    try:
        return validate(_Listed, read_json(path), where=str(path))
    except DataError:
        return None  # it is asked for again


def _address(declared: Declaration) -> Address:
    assert declared.dataset is not None
    return parse_address(declared.dataset, where=f"{declared.file}: dataset")

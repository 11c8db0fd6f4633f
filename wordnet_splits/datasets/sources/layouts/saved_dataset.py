"""Datasets of the Hugging Face Hub: as ``datasets`` saved or cached them, or by name.

The root is a folder of ``save_to_disk`` or of the cache; or the declaration names a dataset, which is read
from the cache of ``datasets``, else from the Hub. An id is ``<split>/<position>`` in all cases. No script of
a dataset is run.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Final

import platformdirs
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from wordnet_splits.base.errors import DataError, HubError, SourceError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.names import printable
from wordnet_splits.base.text_formats import read_json, validate
from wordnet_splits.base.untrusted import path_below
from wordnet_splits.datasets.catalog.declarations import Declaration
from wordnet_splits.datasets.sources.layouts.conventions import SPLIT_WORDS, splits_of
from wordnet_splits.datasets.sources.layouts.labelled_rows import LabelledRows, Shard
from wordnet_splits.datasets.sources.layouts.layout import ALL, Image, Note, register_layout
from wordnet_splits.remote import MAIN, Address, RemoteFile, Repository, huggingface_home, parse_address

INFO: Final = "dataset_info.json"  # next to the files that it describes
STATE: Final = "state.json"  # next to the files of a saved dataset
DICT: Final = "dataset_dict.json"  # above the folders of the splits

_ARROW = re.compile(r"(.+?)(?:-(\d{5})-of-(\d{5}))?\.arrow")


@register_layout("hub")
class SavedDataset(LabelledRows):
    """Layout with an image in each row of Arrow or Parquet files."""

    about: ClassVar[str] = 'a folder of save_to_disk, or dataset = "ORG/NAME"'

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield every row that has a class."""
        for row in self.rows(note):
            yield Image(f"{row.split}/{row.position}", row.class_id, row.split, row.location)

    def shards(self) -> Sequence[Shard]:
        """Return the files of the folder, or of the declared dataset."""
        if self.declaration.dataset is None:
            return saved_shards(self.root)
        copy = find_cached_copy(self.declaration)
        return receive_shards(self.declaration) if copy is None else saved_shards(copy)

    def written_names(self, schema: pa.Schema, label: str, path: Path) -> Sequence[str]:
        """Return the names in ``dataset_info.json`` next to an Arrow file, else the names in the file.

        `datasets` uses the same order of precedence. Raises SourceError.
        """
        info = path.with_name(INFO)
        features = _field(info, "features") if path.suffix == ".arrow" and info.is_file() else None
        if not isinstance(features, dict) or label not in features:
            return super().written_names(schema, label, path)
        feature = features[label]
        names = feature.get("names") if isinstance(feature, dict) else None
        if names is None:  # the library, too, gives the numbers then
            return ()
        return _texts(names, info)


def saved_shards(root: Path) -> list[Shard]:
    """Return the files of a folder that ``datasets`` wrote, in the order of their rows.

    Raises SourceError if it did not write the folder, or a file is gone.
    """
    if (root / DICT).is_file():
        splits = _texts(_field(root / DICT, "splits"), root / DICT)
        return [shard for split in splits for shard in _shards_of_state(root, f"{split}/", split)]
    if (root / STATE).is_file():
        return _shards_of_state(root, "", None)
    if (root / INFO).is_file():
        return _shards_of_cache(root)
    hint = 'a folder of save_to_disk has them; by name: dataset = "ORG/NAME"; Parquet: layout = "parquet"'
    raise SourceError(f"no {DICT}, {STATE} or {INFO} in the root", where=str(root), hint=hint)


def _shards_of_state(root: Path, folder: str, split: str | None) -> list[Shard]:
    """Return the files that ``state.json`` of a folder lists."""
    path = path_below(root, folder + STATE)
    rows = _field(path, "_data_files")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SourceError("lists no files", where=str(path), hint="save it again")
    files = [path_below(root, folder + name) for name in _texts([row.get("filename") for row in rows], path)]
    if missing := [file for file in files if not file.is_file()]:
        raise SourceError("a file of the dataset is missing", where=str(missing[0]), hint="save it again")
    word = _split_word(split or _field(path, "_split") or ALL)
    return [Shard(file, word) for file in files]


def _shards_of_cache(root: Path) -> list[Shard]:
    """Return the files ``NAME-SPLIT[-00000-of-00002].arrow`` of the splits that the folder's info names."""
    splits = _field(root / INFO, "splits")
    if not isinstance(splits, dict) or not splits:
        raise SourceError("lists no splits", where=str(root / INFO), hint="load it again with `datasets`")
    arrow_files = sorted(path.name for path in root.glob("*.arrow"))
    shards = []
    for split in splits:
        names = [name for name in arrow_files if (m := _ARROW.fullmatch(name)) and m[1].endswith(f"-{split}")]
        first = _ARROW.fullmatch(names[0]) if names else None
        if first is None or len(names) != int(first[3] or 1):
            message = f"{len(names)} files of the split {printable(split)}, not all"
            raise SourceError(message, where=str(root), hint="load it again with `datasets`")
        shards += [Shard(path_below(root, name), _split_word(split)) for name in names]
    return shards


def _field(path: Path, name: str) -> Any:
    content = read_json(path, error=SourceError)
    return content.get(name) if isinstance(content, dict) else None


def _texts(values: Any, path: Path) -> list[str]:
    if not isinstance(values, list) or not values or not all(isinstance(text, str) for text in values):
        raise SourceError("a list of names is expected", where=str(path), hint="save it again")
    return values


def _split_word(split: Any) -> str:
    """Return the name of a split here, which is the same for copies with other names of their files."""
    return SPLIT_WORDS.get(str(split).lower(), str(split))


CARD: Final = "README.md"

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHER_ARGUMENTS = re.compile(r".*-[0-9a-f]{16}")
_NUMBERED = re.compile(r"(\w+)-\d{5}-of-\d{5}.*")


class _ReceivedFiles(BaseModel):
    """The files of a dataset at one commit, all received: path, size and split of each."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    commit: str
    files: tuple[tuple[str, int, str], ...]


def find_cached_copy(declaration: Declaration) -> Path | None:
    """Return the folder where ``datasets`` caches a dataset that it loaded, None if it is not cached.

    Raises SourceError if there are several.
    """
    address = _address(declaration)
    cache = os.environ.get("HF_DATASETS_CACHE")
    base = Path(cache).expanduser() if cache else huggingface_home() / "datasets"
    org, _, name = address.repo.partition("/")
    folder = base / f"{org}___{_WORDS.sub('_', name).lower()}"
    copies = [
        path.parent
        for path in sorted(folder.glob("*/*/*/dataset_info.json"))
        if not _OTHER_ARGUMENTS.fullmatch(path.parts[-4])  # loaded with further arguments
        and not path.parts[-2].endswith(".incomplete")
        and declaration.config in (None, path.parts[-4])
        and (address.revision == MAIN or path.parts[-2].startswith(address.revision))
    ]
    if len(copies) > 1:
        paths = ", ".join(str(copy.relative_to(folder)) for copy in copies[:3])
        message = f"{len(copies)} copies of {address.repo} in the cache: {paths}"
        hint = f'set config = "...", or the last folder as revision: dataset = "{address.repo}@..."'
        raise SourceError(message, where=str(folder), hint=hint)
    return copies[0] if copies else None


def receive_shards(declaration: Declaration) -> Sequence[Shard]:
    """Return the Parquet files of a dataset in the cache of ``huggingface_hub``; missing ones are received.

    A revision is looked up once and its commit is stored, so that workers and offline runs read the same
    files.

    Raises MissingPackageError without huggingface_hub, HubError, and SourceError for a dataset without
    Parquet files or with several configurations.
    """
    address = _address(declaration)
    repository = Repository(address.repo)
    record = _record_path(address, declaration)
    received = _read_record(record)
    if received is None:
        received = _receive(repository, address, declaration)
        write_text(record, received.model_dump_json())
    shards = []
    for path, size, split in received.files:
        file = RemoteFile(path, size, None, "")
        shards.append(Shard(repository.cached(file, received.commit, check=False), split))
    return shards


def _receive(repository: Repository, address: Address, declaration: Declaration) -> _ReceivedFiles:
    commit = repository.resolve(address.revision)
    where = repository.where(commit=address.revision)
    if commit is None:
        raise HubError("the Hub has no such dataset, or you may not see it", where=where)
    files = repository.files(commit)
    card = repository.card(files[CARD], commit) if CARD in files else {}
    splits = _splits(sorted(path for path in files if path.endswith(".parquet")), card, declaration, where)
    if not splits:
        raise SourceError(
            "has no Parquet file" + (f" that matches {declaration.images}" if declaration.images else ""),
            where=where,
            hint="load it with `datasets`: its cache is read, and so are folders of save_to_disk",
        )
    for path in splits:
        repository.cached(files[path], commit)
    return _ReceivedFiles(
        commit=commit, files=tuple((p, files[p].size, split) for p, split in splits.items())
    )


def _splits(
    paths: Sequence[str], card: Mapping[str, Any], declaration: Declaration, where: str
) -> dict[str, str]:
    """Return the split of each Parquet file to read, in the order of their rows."""
    if declaration.images is not None:
        return _by_name(path for path in paths if PurePosixPath(path).match(declaration.images))
    configs = [c for c in card.get("configs") or () if isinstance(c, dict) and "data_files" in c]
    if not configs:
        config = declaration.config
        return _by_name(path for path in paths if config is None or f"/{path}".startswith(f"/{config}/"))
    names = [str(config.get("config_name", "default")) for config in configs]
    if declaration.config is not None:
        matching = [c for c, name in zip(configs, names, strict=True) if name == declaration.config]
    else:
        matching = [config for config in configs if config.get("default") is True] or configs
    if len(matching) != 1:
        message = f"has {len(names)} configurations: {printable(', '.join(names))}"
        raise SourceError(message, where=where, hint=f'name one: config = "{printable(names[0])}"')
    return _by_card(paths, matching[0]["data_files"])


def _by_card(paths: Sequence[str], data_files: Any) -> dict[str, str]:
    """Return path -> split of the files in a card: a pattern, a list of patterns, or patterns by split."""
    patterns_by_split: list[tuple[Any, Any]] = []
    if isinstance(data_files, dict):
        patterns_by_split = list(data_files.items())
    else:
        for item in data_files if isinstance(data_files, list) else [data_files]:
            pair = (item.get("split"), item.get("path")) if isinstance(item, dict) else ("train", item)
            patterns_by_split.append(pair)
    splits: dict[str, str] = {}
    for split, patterns in patterns_by_split:
        for pattern in patterns if isinstance(patterns, list) else [patterns]:
            for path in paths:
                if isinstance(pattern, str) and fnmatchcase(path, pattern.removeprefix("./")):
                    splits.setdefault(path, SPLIT_WORDS.get(str(split).lower(), str(split)))
    return splits


def _by_name(paths: Iterable[str]) -> dict[str, str]:
    """Return the splits in file names, as ``datasets`` reads them: ``train`` if no name has one."""
    splits = {}
    for path, split in splits_of(map(PurePosixPath, paths)).items():
        numbered = _NUMBERED.fullmatch(path.name)
        splits[str(path)] = numbered[1] if split == ALL and numbered else split
    return dict.fromkeys(splits, "train") if set(splits.values()) == {ALL} else splits


def _record_path(address: Address, declaration: Declaration) -> Path:
    folder = Path(platformdirs.user_cache_dir("wordnet-splits")) / "datasets"
    choice = hashlib.sha256(f"{declaration.config}\n{declaration.images}".encode()).hexdigest()[:8]
    return folder / f"{address.repo.replace('/', '--')}@{address.revision}-{choice}.json"


def _read_record(path: Path) -> _ReceivedFiles | None:
    if not path.is_file():
        return None
    try:
        return validate(_ReceivedFiles, read_json(path), where=str(path))
    except DataError:
        return None  # the Hub is asked again


def _address(declaration: Declaration) -> Address:
    assert declaration.dataset is not None
    return parse_address(declaration.dataset, where=f"{declaration.file}: dataset")

"""Images in class folders: ``[split/][superclass/]class/image``."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from fix_resize.decode import EXTENSIONS
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.names import listed, printable, same_spelling
from wordnet_splits.datasets.sources.layouts.conventions import parse_split
from wordnet_splits.datasets.sources.layouts.layout import (
    ALL,
    DVC,
    Image,
    ImageFiles,
    Note,
    register_layout,
    without_extension,
)
from wordnet_splits.datasets.sources.layouts.walk import entries

Parts = tuple[str, ...]
"""The names of the folders from the root to a folder."""

CONTAINERS: Final = frozenset(
    {"image", "images", "img", "imgs", "picture", "pictures", "photos", "jpegimages"}
)
"""Names, in lower case, of folders that hold all images."""
SHOWN: Final = 4
"""Number of folders that an error names."""


class FolderTree(NamedTuple):
    """The class folders of a dataset.

    Attributes
    ----------
    classes : path of a class folder -> (split, class).
    unclassed : folders whose own images are in no class folder.
    """

    classes: dict[Parts, tuple[str, Parts]]
    unclassed: tuple[Parts, ...]


def read_tree(filled: Iterable[Parts], splits: Collection[str] | None, *, where: str) -> FolderTree:
    """Return the splits and classes of the folders that hold images.

    Parameters
    ----------
    filled : their paths.
    splits : the declared folders of splits, if any; ``all`` alone means no splits.

    Raises SourceError if splits and classes cannot be distinguished, no folder is a class, or two folders
    of a split have the same class.
    """
    classes, unclassed = _without_strays(sorted(filled))
    declared = None if splits is None or set(splits) == {ALL} else splits
    depth = _shared_depth(classes, declared)
    inner = {parts: parts[depth:] for parts in classes}
    if declared is not None:
        inner = {parts: rest for parts, rest in inner.items() if rest[0] in declared}
    has_splits = declared is not None or (splits is None and _has_splits(inner.values(), where))
    found = {parts: (rest[0], rest[1:]) if has_splits else (ALL, rest) for parts, rest in inner.items()}
    if has_splits:
        found = _below_splits(found)
        unclassed += inner.keys() - found.keys()
    if not found:
        only = f" below {_listed(declared)}" if declared else ""
        only += f", only in {_listed(map(_path, unclassed))}" if unclassed else ""
        hint = "as in ROOT/dog/1.jpg or ROOT/train/dog/1.jpg; a list of names: --names FILE; "
        hint += 'a table: layout = "csv" in dataset.toml'
        raise SourceError(f"no class folders with images{only}", where=where, hint=hint)
    if splits is None:
        _refuse_inner_splits(found, where)
    return FolderTree(
        _one_spelling(_without_letters(_without_container(found)), where), tuple(sorted(unclassed))
    )


def _without_strays(paths: list[Parts]) -> tuple[list[Parts], list[Parts]]:
    """Return the class folders, and the folders above all classes, whose own images have no class."""
    strays = [paths.pop(0)] if paths and not paths[0] else []
    while len(paths) > 2 and all(parts[: len(paths[0])] == paths[0] for parts in paths):
        strays.append(paths.pop(0))
    return paths, strays


def _shared_depth(paths: list[Parts], splits: Collection[str] | None) -> int:
    """Return the number of outer folders that all classes share, without folders of splits."""
    depth = 0
    while len({parts[depth] for parts in paths}) == 1 and min(map(len, paths)) > depth + 1:
        name = paths[0][depth]
        is_split = _is_split(name) if splits is None else name in splits
        if is_split or (len(paths) == 1 and name.lower() not in CONTAINERS):
            break
        depth += 1
    return depth


def _has_splits(inner: Collection[Parts], where: str) -> bool:
    """Return whether the outermost folders are splits. Raises SourceError if the names are ambiguous."""
    tops = {parts[0]: parse_split(parts[0]) for parts in inner}
    deep = {parts[0] for parts in inner if len(parts) > 1}
    marked = {top for top in tops if _is_split(top) or top.lower() in CONTAINERS}
    if not deep and (len(marked) == len(tops) or all(tops.values())):  # kinds of trains are classes
        return not all(split and split.kind == "train" and split.more for split in tops.values())
    if all(tops.values()):
        if marked or len(deep) < len(tops) or _share_classes(inner):
            return True
        marked = set(tops)
    elif _share_classes(named := [parts for parts in inner if tops[parts[0]]]):
        # Intel's seg_train and seg_test next to seg_pred
        kinds = {split.kind for split in tops.values() if split}
        marked |= {parts[0] for parts in named} if len(kinds) > 1 else set()
    marked -= {top for top in marked - deep if top.lower() == "train"}
    if not marked:
        return False
    others = _listed(tops.keys() - marked)
    next_to = f" next to {others}" if others else ""
    message = f"cannot distinguish splits and classes: {_listed(marked)}{next_to}"
    splits = (marked & deep) or marked  # a flat one has no class
    names = ", ".join(f'"{printable(top)}"' for top in sorted(splits)[:SHOWN])
    hint = f'write in dataset.toml which are splits, splits = [{names}], or splits = ["all"] for none'
    raise SourceError(message, where=where, hint=hint)


def _below_splits(found: Mapping[Parts, tuple[str, Parts]]) -> dict[Parts, tuple[str, Parts]]:
    """Skip folders that are alone in their split: ``train/train/dog``, ``val/images/dog``."""
    by_split: defaultdict[str, dict[Parts, Parts]] = defaultdict(dict)
    for parts, (split, rest) in found.items():
        if not all(name.lower() in CONTAINERS for name in rest):
            by_split[split][parts] = rest
    for split, classes in by_split.items():
        while len(names := {rest[0] for rest in classes.values()}) == 1:
            (name,) = names
            if name != split and name.lower() not in CONTAINERS:
                break
            classes = {parts: rest[1:] for parts, rest in classes.items() if rest[1:]}
        by_split[split] = classes
    return {
        parts: (split, by_split[split][parts])
        for parts, (split, _) in found.items()
        if parts in by_split[split]
    }


def _share_classes(inner: Collection[Parts]) -> bool:
    """Return whether two outermost folders have a class of the same name, also in ``test_set/test_set``."""
    tops: defaultdict[Parts, set[str]] = defaultdict(set)
    for parts in inner:
        tops[parts[2:] if parts[1:2] == parts[:1] else parts[1:]].add(parts[0])
    return any(len(of_class) > 1 for of_class in tops.values())


def _refuse_inner_splits(found: Mapping[Parts, tuple[str, Parts]], where: str) -> None:
    """Raise SourceError where folders of splits lie in class folders; a last ``train`` may be a class."""
    inner = {
        name
        for _, rest in found.values()
        for at, name in enumerate(rest)
        if at and _is_split(name) and not (at == len(rest) - 1 and name.lower() == "train")
    }
    if inner:
        message = f"{_listed(inner)} in class folders: splits, or classes?"
        hint = 'move splits to the top, as in ROOT/train/dog/1.jpg, or write splits = ["all"] in dataset.toml'
        raise SourceError(message, where=where, hint=hint)


def _without_container(found: dict[Parts, tuple[str, Parts]]) -> dict[Parts, tuple[str, Parts]]:
    """Drop a last folder that all classes have, as in ``dog/images``."""
    lasts = {rest[-1] if len(rest) > 1 else "" for _, rest in found.values()}
    if len(found) > 1 and len(lasts) == 1 and next(iter(lasts)).lower() in CONTAINERS:
        return {parts: (split, rest[:-1]) for parts, (split, rest) in found.items()}
    return found


def _without_letters(found: dict[Parts, tuple[str, Parts]]) -> dict[Parts, tuple[str, Parts]]:
    """Drop outer folders of the first letter, as in ``a/airfield``."""
    sorted_by_letter = {
        parts
        for parts, (_, rest) in found.items()
        if len(rest) > 1 and len(rest[0]) == 1 and rest[1].casefold().startswith(rest[0].casefold())
    }
    letters = {parts for parts, (_, rest) in found.items() if len(rest[0]) == 1}
    if letters != sorted_by_letter:
        return found
    return {parts: (split, rest[1:] if parts in letters else rest) for parts, (split, rest) in found.items()}


def _one_spelling(found: Mapping[Parts, tuple[str, Parts]], where: str) -> dict[Parts, tuple[str, Parts]]:
    """Spell a class the same in all splits: ``golden_retriever`` is ``golden retriever``."""
    keys = {parts: tuple(map(same_spelling, rest)) for parts, (_, rest) in found.items()}
    spelt: dict[Parts, Parts] = {}
    taken: dict[tuple[str, Parts], Parts] = {}
    for parts, (split, rest) in found.items():
        key, composed = keys[parts], tuple(unicodedata.normalize("NFC", name) for name in rest)
        spelt[key] = min(spelt.get(key, composed), composed)
        if taken.setdefault((split, key), parts) != parts:
            names = f"{_path(taken[split, key])} and {_path(parts)}"
            raise SourceError(f"folders of the same class: {names}", where=where, hint="join or rename them")
    return {parts: (split, spelt[keys[parts]]) for parts, (split, _) in found.items()}


def _is_split(name: str) -> bool:
    """Return whether a name is the name of a split alone."""
    split = parse_split(name)
    return split is not None and not split.more


def _path(parts: Parts) -> str:
    return printable("/".join(parts)) or "the root"


def _listed(names: Iterable[str]) -> str:
    return listed(sorted(set(names)), SHOWN)


IGNORED: Final = frozenset({"__macosx", "@eadir", "lost+found", "$recycle.bin", "#recycle"})
"""Names, in lower case, of folders that programs create next to images."""
ARCHIVES: Final = (".zip", ".tar", ".tar.gz", ".tgz", ".rar", ".7z")
"""Ends, in lower case, of files that may hold the class folders."""
COMPANIONS: Final = frozenset({"readme", "readme.md", "readme.txt", "desktop.ini", "thumbs.db"})
"""Files expected next to images, in lower case."""


@register_layout("folders")
class Folders(ImageFiles):
    """One folder a class, below folders of splits if there are any."""

    about: ClassVar[str] = "[split/]class/image"

    def images(self, note: Note, splits: Collection[str]) -> Iterator[Image]:
        """Yield the images of every class folder."""
        tree = class_folders(self.root, self.declaration.splits)
        folder_splits = {split for split, _ in tree.classes.values()}
        for parts in tree.unclassed:
            for image in filter(None, image_names(self.root.joinpath(*parts), self.root).values()):
                note(printable("/".join((*parts, image))))
        for parts, (split, class_parts) in tree.classes.items():
            class_id = "/".join(class_parts)
            above = class_id if folder_splits == {ALL} else f"{split}/{class_id}"
            for name, image in image_names(self.root.joinpath(*parts), self.root).items():
                stem = without_extension(image) if image else None
                if stem is None:
                    note(printable("/".join((*parts, name))))
                else:
                    yield Image(f"{above}/{stem}", class_id, split, ("/".join((*parts, image)),))


class ClassFolders(NamedTuple):
    """The class folders below a root, as of `FolderTree`, and the folders without images or subfolders."""

    classes: dict[Parts, tuple[str, Parts]]
    unclassed: tuple[Parts, ...]
    empty: tuple[Parts, ...]


def class_folders(root: Path, splits: Collection[str] | None = None) -> ClassFolders:
    """Return the folders that hold images, with their splits and classes, sorted.

    Parameters
    ----------
    splits : the folders of splits, if they are declared: other folders at their level are ignored.

    Raises SourceError as `read_tree`, and where no folder has an image.
    """
    folders = dict(_folders(root, root, ()))
    archives = sorted(e.name for e in entries(root, root) if e.name.lower().endswith(ARCHIVES))
    if archives and not any(folders.values()):
        hint = 'unpack it; shards of images and labels: layout = "webdataset" in dataset.toml'
        raise SourceError("no class folders, only an archive", where=str(root / archives[0]), hint=hint)
    tree = read_tree((parts for parts, filled in folders.items() if filled), splits, where=str(root))
    return ClassFolders(*tree, tuple(sorted(parts for parts, filled in folders.items() if not filled)))


def image_names(folder: Path, root: Path) -> dict[str, str]:
    """Return file name -> image name ("" for none) in a class folder, without companions.

    An image may be a link to contents that are not here, or be named by a DVC file alone.
    """
    names = [e.name for e in entries(folder, root, is_image, broken_links=True) if not e.is_dir()]
    present = set(names)
    images = {name: name if is_image(name) else "" for name in names if name.lower() not in COMPANIONS}
    for name in names:
        if name.endswith(DVC):
            image = name.removesuffix(DVC)
            if image in present or not is_image(image):
                del images[name]
            else:
                images[name] = image
    return images


def is_image(name: str) -> bool:
    """Return whether a file has an extension of an image."""
    return name.rpartition(".")[2].lower() in EXTENSIONS


def _folders(folder: Path, root: Path, parts: Parts) -> Iterator[tuple[Parts, bool]]:
    """Yield the folders that hold images, or no folder, and whether they hold images."""
    has_images, subfolders = False, []
    for entry in entries(folder, root, broken_links=True):
        if entry.is_dir():
            subfolders.append(entry.name)
        else:
            has_images = has_images or is_image(entry.name.removesuffix(DVC))
    if has_images or not subfolders:
        yield parts, has_images
    for name in subfolders:
        if name.lower() in IGNORED:
            yield (*parts, name), False
        else:
            yield from _folders(folder / name, root, (*parts, name))

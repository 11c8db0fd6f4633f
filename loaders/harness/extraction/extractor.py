"""Outputs of a model on images: read from the store, or computed when an evaluation needs them.

An `Extractor` reads the sets of a benchmark (`BenchmarkImages`), custom sets, and single images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from wordnet_splits.base.errors import DataError, UnusableError
from wordnet_splits.base.progress import PartOfTask, Progress, Relabelled, Silent, Task
from wordnet_splits.benchmark.manifest import Manifest, Part
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.hub.entries import NAMES_TOLD

from ...dataset import UnknownDetectionSet
from ...opening import PackedFolders, open_parts
from ..data.arrays import Arrays
from ..models.class_map import ClassMap, LabelSpace
from ..models.model import Model
from ..models.transforms import Transform
from ..models.vision_language import leaked_class_names
from ..probes import Probe, parse_probe, probe_name, restrict_to_columns
from .activations import Activations, extract, extract_together, output_width, sample_images
from .forward import ImageName, compute_in_memory
from .outputs import GroupOutputs, ModelRun, Need, Store
from .shards import settings

PLAIN = frozenset({"features", "logits", "background"})


class Images(Protocol):
    """Sets of images that an `Extractor` reads, by split and name."""

    def require(self, split: str, name: str) -> None:
        """Raise UnusableError for a set without images."""

    def class_map(self, model: Model, split: str, name: str) -> ClassMap:
        """Match the columns of a model with the labels of the images."""

    def sample(self, model: Model, split: str, name: str) -> AbstractContextManager[Tensor]:
        """Yield a few inputs from a set, with the model prepared and in evaluation mode."""

    def extract(
        self, extractor: Extractor, split: str, name: str, probes: Sequence[Probe], progress: Progress
    ) -> Activations:
        """Return the arrays of a set, with the arrays of some probes."""

    def notes_on(self, model: Model, name: str) -> list[str]:
        """Return notes, as sentences, on a model's prior information about a set."""


@dataclass
class BenchmarkImages:
    """The images of a benchmark's groups, each opened on first use."""

    benchmark: Manifest
    roots: Roots | None = None
    packed: PackedFolders | None = None
    allow_missing: bool = False
    _opened: dict[Part, UnknownDetectionSet] = field(default_factory=dict)

    def group(self, split: str, name: str) -> UnknownDetectionSet:
        """Return the images of a split's group."""
        if (split, name) not in self._opened:
            self._opened[split, name] = UnknownDetectionSet(
                self.benchmark,
                group=name,
                split=split,
                roots=self.roots,
                packed=self.packed,
                allow_missing=self.allow_missing,
            )
        return self._opened[split, name]

    def test(self, groups: Sequence[str]) -> dict[str, UnknownDetectionSet]:
        """Return the test images of some groups; each root is scanned once."""
        if self.allow_missing:
            datasets = UnknownDetectionSet.parts(
                self.benchmark, roots=self.roots, packed=self.packed, allow_missing=True
            )
            self._opened |= {("test", name): images for name, images in datasets.items() if name in groups}
        else:  # names all missing roots at once
            parts = [part for part in self.benchmark.parts if part[0] == "test" and part[1] in groups]
            open_parts(self.benchmark, parts, roots=self.roots, packed=self.packed, allow_missing=False)
        return {name: self.group("test", name) for name in groups}

    @property
    def left_out(self) -> Iterator[str]:
        """Sentences about images left out of the groups that are opened when they are read."""
        for (split, name), images in sorted(self._opened.items()):
            if images.missing.num_rows:
                reason = images.missing["reason"][0].as_py()
                yield f"{name}/{split}: {images.missing.num_rows:,} images left out: {reason}"

    def require(self, split: str, name: str) -> None:
        """Raise UnusableError for a group without images; without ``allow_missing`` opening it raises."""
        if self.allow_missing and not len(self.group(split, name)):
            raise UnusableError(f"there are no outputs for {name}/{split}", where=self.benchmark.name)

    def class_map(self, model: Model, split: str, name: str) -> ClassMap:
        """Match the columns of a model with the benchmark's labels, after a forward pass of a few images."""
        width = output_width(model, self.group(split, name))
        of = self.benchmark
        return model.class_map(LabelSpace.of(of.classes, of.declarations, of.own_hierarchy), width)

    def sample(self, model: Model, split: str, name: str) -> AbstractContextManager[Tensor]:
        """Yield a few inputs from a group, with the model prepared and in evaluation mode."""
        return sample_images(model, self.group(split, name))

    def extract(
        self, extractor: Extractor, split: str, name: str, probes: Sequence[Probe], progress: Progress
    ) -> Activations:
        """Return the arrays of a group, stored or computed."""
        assert extractor.store is not None
        return extract(
            extractor.model,
            self.group(split, name),
            extractor.store,
            probes=probes,
            batch_size=extractor.batch_size,
            workers=extractor.workers,
            progress=progress,
        )

    def notes_on(self, model: Model, name: str) -> list[str]:
        """Return a note if the model's negative words include names of a group's OOD classes."""
        if not model.words:
            return []
        rows = self.benchmark.classes.select(["group", "role", "name"]).to_pylist()
        names = [row["name"] for row in rows if row["group"] == name and row["role"] != "id"]
        leaked = leaked_class_names(model.words, names)
        return [f"{NAMES_TOLD} {len(leaked):,} of the {len(names):,} classes"] if leaked else []


@dataclass
class Extractor:
    """The forward path of a model: read its outputs from the store, and compute missing ones.

    Attributes
    ----------
    model : the classifier, with its choice of class map.
    images : the sets that it reads, None for single images.
    store : of a benchmark's images; other outputs are kept in memory.
    batch_size, workers, progress : see `activations.extract`.
    columns : the class map, by default the model's map to the labels of the images.
    """

    model: Model
    images: Images | None = None
    store: Store | None = None
    batch_size: int | None = None
    workers: int = 0
    progress: Progress = field(default_factory=Silent)
    columns: ClassMap | None = None
    _named: str = ""
    _opened: dict[Part, Activations] = field(default_factory=dict)
    _whole: Task | None = None

    @contextmanager
    def reading(self, images: int) -> Iterator[None]:
        """Show reading as a single progress task of ``images`` images, stored ones included."""
        remaining = max(images - sum(group.n for group in self._opened.values()), 0)
        with self.progress.task(self.model.name, remaining) as self._whole:
            try:
                yield
            finally:
                self._whole = None

    def require(self, split: str, name: str, needs: frozenset[Need] = frozenset()) -> None:
        """Check that the needed arrays of a set are available.

        Raises
        ------
        UnusableError : the set has no images, or the model cannot give an array or run a probe.
        """
        images = self._sets
        images.require(split, name)
        if needs & {"features", "head"} and self.model.width is None:
            with images.sample(self.model, split, name):
                pass  # finds out whether the model has them
        self.model.require(needs)
        checked = [probe for probe in probes_of(needs) if hasattr(probe, "require")]
        if checked:
            with images.sample(self.model, split, name) as x:
                for probe in checked:
                    probe.require(self.model, x)

    def read(self, split: str, name: str, needs: frozenset[Need]) -> GroupOutputs:
        """Return the model's outputs on one set, with at least the needed arrays."""
        activations = self._opened.get((split, name))
        probes = self.probes(split, name, needs)
        assert self.columns is not None
        held = set() if activations is None else {array.rpartition("/")[0] for array in activations.arrays}
        if activations is None or not held.issuperset(map(probe_name, probes)):
            activations = self._extract(split, name, probes)
        return GroupOutputs(
            activations.table,
            activations.data(self.columns, labels=split != "test"),  # detectors get no labels of test images
            self.columns,
            activations.head_of(self.columns),
            activations.transform_key,
            activations.transform,
            (*activations.notes, *self.model.notes, *self._sets.notes_on(self.model, name)),
            activations.shape,
        )

    def probes(self, split: str, name: str, needs: frozenset[Need]) -> list[Probe]:
        """Return a set's needed probes, restricted to the columns of the labels, without repeats."""
        needed = probes_of(needs)
        if self.columns is None:  # an unsuitable model fails before hours of forward passes
            try:
                self.columns = self._sets.class_map(self.model, split, name)
            except DataError as error:
                raise (error.within(self._named) if self._named else error) from error.__cause__
        by_name = {probe_name(p): p for p in (restrict_to_columns(probe, self.columns) for probe in needed)}
        return [by_name[unit] for unit in sorted(by_name)]

    def single_images(
        self, images: Tensor, names: Sequence[ImageName], transform: Transform, needs: frozenset[Need]
    ) -> Arrays:
        """Return the arrays for detectors, computed from transformed images (n, 3, h, w) outside any set."""
        probes = {probe_name(probe): probe for probe in self.probes("", "", needs)}
        where = self.model.name
        outputs = compute_in_memory(self.model, transform, [(images, names)], probes, where=where)
        assert self.columns is not None
        if self.model.width != self.columns.width:
            message = (
                f"gives {self.model.width} columns where the detector was fitted on {self.columns.width}"
            )
            raise UnusableError(message, where=where)
        return self.columns.arrays(Arrays(outputs))

    def run(self, of: str = "", *, user_named: bool = False) -> ModelRun:
        """Return a run whose sets are read when an evaluation asks for them."""
        model = self.model
        self._named = of if user_named and of != model.name else ""  # of which model an error speaks
        return ModelRun(
            of or model.name,
            model.key if model.identified else "",
            self,
            model.name,
            model.origin,
            settings(model.device, model.dtype, 1)["device"],
            user_named,
            getattr(self.images, "allow_missing", False),
            getattr(model.module, "prompts", ""),
        )

    def opened(self, split: str, name: str, activations: Activations) -> None:
        """Keep the activations of a set, for `read`."""
        self._opened[split, name] = activations

    @property
    def _sets(self) -> Images:
        if self.images is None:
            raise UnusableError("has no sets to read", where=self.model.name)
        return self.images

    def _extract(self, split: str, name: str, probes: Sequence[Probe]) -> Activations:
        progress: Progress = Relabelled(self.progress, f"{self.model.name} on {name}/{split}")
        if self._whole is not None:
            progress = PartOfTask(self._whole, f"{name}/{split}")
            progress.advance(0)  # shows the name of the set
            if (split, name) in self._opened:
                progress.extend(self._opened[split, name].n)  # another pass for a new need
        activations = self._sets.extract(self, split, name, probes, progress)
        if isinstance(progress, PartOfTask):
            progress.skip(activations.n - progress.done)  # stored images
        self._opened[split, name] = activations
        return activations


Plan = Mapping[Part, frozenset[Need]]
"""(split, group) -> the arrays that an evaluation needs from this group."""


def read_together(plans: Sequence[tuple[Extractor, Plan]]) -> None:
    """Read the groups of several models; each image is decoded once for all models."""
    for part in dict.fromkeys(part for _, plan in plans for part in plan):
        readers = [(extractor, plan[part]) for extractor, plan in plans if part in plan]
        first, (split, name) = readers[0][0], part
        assert isinstance(first.images, BenchmarkImages)
        assert first.store is not None
        work = [(extractor.model, extractor.probes(split, name, needs)) for extractor, needs in readers]
        all_activations = extract_together(
            work,
            first.images.group(split, name),
            first.store,
            batch_size=first.batch_size,
            workers=first.workers,
            progress=Relabelled(first.progress, f"{len(work)} models on {name}/{split}"),
        )
        for (extractor, _), activations in zip(readers, all_activations, strict=True):
            extractor.opened(split, name, activations)


def probes_of(needs: frozenset[Need]) -> set[Probe]:
    """Return the probes among the needs; unknown array names are reported later."""
    names = {need for need in needs - PLAIN if isinstance(need, str)}
    return {*(needs - names - PLAIN), *(parse_probe(need) for need in names if "/" in need or "[" in need)}

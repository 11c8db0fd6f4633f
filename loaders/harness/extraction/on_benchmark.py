"""Models on a benchmark's images: activations are read from the store or extracted when needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from wordnet_splits.base.progress import PartOfTask, Progress, Relabelled, Silent, Task
from wordnet_splits.benchmark.manifest import Manifest, Part
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.hub.entries import NAMES_TOLD

from ...dataset import UnknownDetectionSet
from ...opening import PackedFolders
from ..models import Model
from ..models.class_map import ClassMap, LabelSpace
from ..models.vision_language import told_names
from ..probes import Probe, parse_probe, probe_name, restrict_to_columns
from .activations import BATCH, Activations, extract, extract_together, output_width, sample_images
from .extraction import settings
from .runs import GroupOutputs, ModelRun, Need
from .store import Store

PLAIN = frozenset({"features", "logits", "background"})


@dataclass
class BenchmarkImages:
    """The images of a benchmark's groups, each opened on first use.

    Attributes
    ----------
    benchmark : the manifest. roots, packed, allow_missing : as in `UnknownDetectionSet`.
    """

    benchmark: Manifest
    roots: Roots | None = None
    packed: PackedFolders | None = None
    allow_missing: bool = False
    _opened: dict[Part, UnknownDetectionSet] = field(default_factory=dict)

    def group(self, split: str, name: str) -> UnknownDetectionSet:
        """Return the images of one group of one split."""
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
        return {name: self.group("test", name) for name in groups}

    def has(self, split: str, name: str) -> bool:
        """Return whether a group has an image; without ``allow_missing`` a missing one is an error."""
        return not self.allow_missing or len(self.group(split, name)) > 0

    @property
    def left_out(self) -> Iterator[str]:
        """Sentences about images left out of the groups that are opened when they are read."""
        for (split, name), images in sorted(self._opened.items()):
            if images.missing.num_rows:
                reason = images.missing["reason"][0].as_py()
                yield f"{name}/{split}: {images.missing.num_rows:,} images left out: {reason}"


@dataclass
class Extractor:
    """Reads a model's groups from the store and computes missing arrays.

    Attributes
    ----------
    model : the classifier, with its choice of class map.
    batch_size, workers, progress : see `activations.extract`.
    """

    model: Model
    images: BenchmarkImages
    store: Store
    batch_size: int = BATCH
    workers: int = 0
    progress: Progress = field(default_factory=Silent)
    _opened: dict[Part, Activations] = field(default_factory=dict)
    _class_map: ClassMap | None = None
    _whole: Task | None = None

    @contextmanager
    def reading(self, images: int) -> Iterator[None]:
        """Show reading as one progress task of so many images, stored ones included."""
        remaining = max(images - sum(group.n for group in self._opened.values()), 0)
        with self.progress.task(self.model.name, remaining) as self._whole:
            try:
                yield
            finally:
                self._whole = None

    def refuses(self, needs: frozenset[Need], split: str, name: str) -> str:
        """Return why arrays of a group's images are unavailable, or ""."""
        checked = [probe for probe in probes_of(needs) if hasattr(probe, "lacks")]
        if needs & {"features", "head"}:
            output_width(self.model, self.images.group(split, name))  # finds out whether the model has them
        if not checked or self.model.lacks(needs):
            return self.model.lacks(needs)
        with sample_images(self.model, self.images.group(split, name)) as x:
            return unavailable_reason(checked, self.model, x)

    def read(self, split: str, name: str, needs: frozenset[Need]) -> GroupOutputs:
        """Return the model's outputs on one group, with at least the needed arrays."""
        activations = self._opened.get((split, name))
        probes = self.probes(split, name, needs)
        assert self._class_map is not None
        names = sorted(probe_name(probe) for probe in probes)
        stored_units = (
            {array.rpartition("/")[0] for array in activations.arrays} if activations is not None else set()
        )
        if activations is None or not stored_units.issuperset(names):
            activations = self._extract(split, name, probes)
        labelled = split != "test"  # detectors get no labels of test images
        return GroupOutputs(
            activations.table,
            activations.data(self._class_map, labels=labelled),
            self._class_map,
            activations.head_of(self._class_map),
            activations.transform_key,
            activations.transform,
            (*activations.notes, *self.model.notes, *self._told(name)),
            activations.shape,
        )

    def _told(self, group: str) -> list[str]:
        """Return a note if the model was told names of a group's classes as negative words."""
        if not self.model.words:
            return []
        rows = self.images.benchmark.classes.select(["group", "role", "name"]).to_pylist()
        names = [row["name"] for row in rows if row["group"] == group and row["role"] != "id"]
        told = told_names(self.model.words, names)
        return [f"{NAMES_TOLD} {len(told):,} of the {len(names):,} classes"] if told else []

    def probes(self, split: str, name: str, needs: frozenset[Need]) -> list[Probe]:
        """Return the needed probes of one group, restricted to the benchmark's classes."""
        needed_probes = probes_of(needs)
        if self._class_map is None:  # an unsuitable model fails before hours of forward passes
            width = output_width(self.model, self.images.group(split, name))
            benchmark = self.images.benchmark
            labels = LabelSpace.of(benchmark.classes, benchmark.declarations)
            self._class_map = self.model.class_map(labels, width)
        probes = [restrict_to_columns(probe, self._class_map) for probe in needed_probes]
        return sorted(probes, key=probe_name)

    def run(self, of: str = "", *, user_named: bool = False) -> ModelRun:
        """Return a run whose groups are extracted when an evaluation asks for them.

        Parameters
        ----------
        of : name of the model that this network is a run of, by default its own. user_named : whether the
            user gave it.
        """
        model = self.model
        return ModelRun(
            of or model.name,
            model.key if model.identified else "",
            self.read,
            model.name,
            model.weights,
            settings(model.device, model.dtype, self.batch_size)["device"],
            self.refuses,
            self.reading,
            user_named,
            self.images.has,
            self.images.allow_missing,
        )

    def opened(self, split: str, name: str, activations: Activations) -> None:
        """Keep the activations of one group, for `read`."""
        self._opened[split, name] = activations

    def _extract(self, split: str, name: str, probes: Sequence[Probe]) -> Activations:
        group_progress = None if self._whole is None else PartOfTask(self._whole, f"{name}/{split}")
        images = self.images.group(split, name)
        if group_progress is not None and (split, name) in self._opened:
            group_progress.extend(len(images))  # another pass for a new need
        activations = extract(
            self.model,
            images,
            self.store,
            probes=probes,
            batch_size=self.batch_size,
            workers=self.workers,
            progress=group_progress or Relabelled(self.progress, f"{self.model.name} on {name}/{split}"),
        )
        if group_progress is not None:
            group_progress.skip(activations.n - group_progress.done)  # stored images
        self._opened[split, name] = activations
        return activations


Plan = Mapping[Part, frozenset[Need]]
"""(split, group) -> the arrays that an evaluation needs of it."""


def read_together(plans: Sequence[tuple[Extractor, Plan]]) -> None:
    """Read the groups of several models, whose images are decoded once for all of them."""
    for part in dict.fromkeys(part for _, plan in plans for part in plan):
        readers = [(extractor, plan[part]) for extractor, plan in plans if part in plan]
        first, _ = readers[0]
        split, name = part
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


def unavailable_reason(probes: Sequence[Any], model: Model, images: Any) -> str:
    """Return the first reason why a model cannot be probed on images, or ""."""
    return next(filter(None, (probe.lacks(model, images) for probe in probes)), "")


def probes_of(needs: frozenset[Need]) -> set[Probe]:
    """Return the probes among the needs; unknown array names are reported later."""
    names = {need for need in needs - PLAIN if isinstance(need, str)}
    return {*(needs - names - PLAIN), *(parse_probe(need) for need in names if "/" in need or "[" in need)}

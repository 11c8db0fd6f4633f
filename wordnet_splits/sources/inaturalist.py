"""iNaturalist, the selection of MOS: 10,000 pictures of 110 plants, ``iNaturalist/images/<hash>.jpg``.

Reference: Huang and Li, MOS: Towards Scaling Out-of-distribution Detection for Large Semantic Space,
CVPR 2021; the pictures are of Van Horn et al., The iNaturalist Species Classification and Detection Dataset.
"""

from __future__ import annotations

from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.declared import InOneFolder, openood
from wordnet_splits.sources.layouts.names import Naming


@register
class INaturalist(InOneFolder):
    """The species of each picture is not in its name: the inventory has it, as NINCO's authors list it."""

    name: ClassVar[str] = "inaturalist"
    splits: ClassVar[tuple[str, ...]] = ("all",)
    looks_for: ClassVar[str] = "iNaturalist/images/<32 hexadecimal digits>.jpg of the selection of MOS"
    images: ClassVar[Naming] = Naming("inaturalist", ("all",), r"[0-9a-f]{32}")
    begins: ClassVar[tuple[str, ...]] = ("iNaturalist", *openood("inaturalist"))

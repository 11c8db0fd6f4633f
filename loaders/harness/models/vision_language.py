"""Zero-shot classifiers: an image encoder with the text embeddings of class names as its head.

Features are image embeddings of length 1, and the head's rows are text embeddings of length 100: logits are
100 times cosine similarities (Radford et al., Learning Transferable Visual Models From Natural Language
Supervision, ICML 2021). Every detector runs on them as on any classifier's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from wordnet_splits.base.digests import sampling_key
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import counted, listed
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.word_lists import ADJECTIVE, SENTENCES, read_names, read_words
from wordnet_splits.wordnet.lexicons import ENGLISH
from wordnet_splits.wordnet.prompt_names import folded, nouns_of, prompt_names
from wordnet_splits.wordnet.taxonomy import load

from ..data.arrays import COSINE_SCALE

TEMPLATES = ("a photo of a {}.",)
ADJECTIVE_TEMPLATES = (SENTENCES[ADJECTIVE],)
"""Sentence of the words whose kind is not ``noun``, as in the code of NegLabel's authors."""
TEXT_BATCH = 256
DRAW = "negatives"
"""Name of the draw; its hash orders negative words."""
HOW_TO_NAME = "give distinct names: --names FILE, or rename={CLASS_ID: NAME} in Python"

EncodeText = Callable[[list[str]], Tensor]
"""Sentences -> embeddings (n, d)."""


class ZeroShot(nn.Module):
    """A classifier by class names, with negative words.

    Attributes
    ----------
    encoder : images (n, 3, h, w) -> embeddings (n, d).
    head : the names' embeddings, times `COSINE_SCALE`.
    negatives : (M, d) embeddings of the negative words, length 1; M = 0 without any. A stable hash
        of the words sets their order, so that groups of consecutive rows are random.
    names : class names in label order.
    words : negative words, in the order of ``negatives``.
    classes : identifiers of the classes: class ids of a benchmark, else the names.
    prompts : start of the SHA-256 of the classes' sentences, a line each, by sorted templates.
    """

    negatives: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        text: Tensor,
        names: Sequence[str],
        negatives: Tensor | None = None,
        words: Sequence[str] = (),
        classes: Sequence[str] | None = None,
        templates: Sequence[str] = ("{}",),
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.names, self.words = tuple(names), tuple(words)
        self.classes = tuple(names if classes is None else classes)
        prompts = "\n".join(template.replace("{}", name) for template in sorted(templates) for name in names)
        self.prompts = sha256(prompts.encode()).hexdigest()[:12]
        self.head = nn.Linear(text.shape[1], len(text), bias=False)
        self.head.weight = nn.Parameter(COSINE_SCALE * functional.normalize(text, dim=1), requires_grad=False)
        rows = text[:0] if negatives is None else functional.normalize(negatives, dim=1)
        self.register_buffer("negatives", rows)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits (n, K) of images (n, 3, h, w): 100 times cosine similarities."""
        logits: Tensor = self.head(functional.normalize(self.encoder(images), dim=1))
        return logits


def zero_shot(
    encoder: nn.Module,
    encode_text: EncodeText,
    names: Sequence[str] | Manifest | str,
    *,
    negatives: Sequence[str] | str | Path = (),
    templates: Sequence[str] | str = TEMPLATES,
    negative_templates: Sequence[str] | str | None = None,
    rename: Mapping[str, str] | str | Path | None = None,
    language: str = ENGLISH,
) -> ZeroShot:
    """Return a zero-shot classifier of an image encoder.

    Parameters
    ----------
    encoder : images (n, 3, h, w) -> embeddings (n, d).
    encode_text : sentences -> embeddings (n, d).
    names : class names in label order, or a benchmark, whose ID classes are taken as of `id_classes`.
    negatives : words that are not ID classes, for `neglabel`; or their file, as of `audit_negatives`.
    templates : sentences, each with a ``{}`` for the name; embeddings of length 1 are averaged over them.
    negative_templates : templates of the negative words, by default the same; words of a file whose column
        ``kind`` is not ``noun`` have `ADJECTIVE_TEMPLATES`.
    rename, language : of the names of a benchmark's classes, see `id_classes`.

    Raises
    ------
    DataError : a template without ``{}``, a name twice, or embeddings whose number or width differs, or that
        are zero or not finite.
    """
    if isinstance(names, str | Manifest):
        classes, names = id_classes(names, rename=rename, language=language)
    elif rename is not None or language != ENGLISH:
        raise DataError("rename and language only apply with a benchmark", where="names")
    else:
        classes, names = list(names), list(names)
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise DataError("class names must be non-empty texts", where="names")
    _refuse_shared_prompts(classes, names, where="names")
    templates = (templates,) if isinstance(templates, str) else templates
    text = _embed(encode_text, names, templates)
    is_noun = {word.text: word.is_noun for word in reversed(read_words(negatives).words)} if negatives else {}
    words = sorted(is_noun, key=lambda word: (sampling_key(DRAW, 0, "", word), word))
    rows: dict[str, Tensor] = {}
    for noun, sentences in ((True, negative_templates or templates), (False, ADJECTIVE_TEMPLATES)):
        of_kind = [word for word in words if is_noun[word] == noun]
        if of_kind:
            rows |= dict(zip(of_kind, _embed(encode_text, of_kind, sentences), strict=True))
    negative_rows = torch.stack([rows[word] for word in words]) if words else None
    return ZeroShot(encoder, text, names, negative_rows, words, classes, templates)


def id_classes(
    benchmark: Manifest | str,
    *,
    rename: Mapping[str, str] | str | Path | None = None,
    language: str = ENGLISH,
) -> tuple[list[str], list[str]]:
    """Return the class id and a distinct name of each ID class, in label order.

    Parameters
    ----------
    benchmark : a manifest, or its name. Names follow the rule of `wordnet_splits.wordnet.prompt_names`.
    rename : names that replace the rule's, by class id; or their file, a name a line in label order or a
        table with columns ``class_id`` and ``name``.
    language : of the names: ``en``, a code such as ``fr`` whose lexicon is installed for `wn`, or a WN-LMF
        file.

    Raises
    ------
    DataError : two classes with the same name, or classes without a word in the language.
    """
    manifest = load_manifest(benchmark, check="classes")
    hierarchy, id_classes = manifest.own_hierarchy, manifest.id_classes()
    nouns = nouns_of(language, load() if hierarchy is None else hierarchy.taxonomy())
    named = prompt_names([(name, wnids) for _, name, wnids in id_classes], nouns)
    classes = [class_id for class_id, _, _ in id_classes]
    given = {} if rename is None else read_names(rename, classes)
    names = [given[i].text if i in given else name for i, name in zip(classes, named, strict=True)]
    if absent := [i for i, name in zip(classes, names, strict=True) if not name]:
        reason = f"{counted(len(absent), 'class')} have no word in {language}: {listed(absent, 5)}"
        raise DataError(reason, where=manifest.name, hint=HOW_TO_NAME)
    _refuse_shared_prompts(classes, names, where=manifest.name)
    return classes, names


def _refuse_shared_prompts(classes: Sequence[str], names: Sequence[str], *, where: str) -> None:
    """Raise DataError for names that differ only in case and separators, which tokenizers fold."""
    of_name: dict[str, list[str]] = {}
    for class_id, name in zip(classes, names, strict=True):
        of_name.setdefault(folded(name), []).append(name if name == class_id else f"{name} ({class_id})")
    shared = [" and ".join(alike) for alike in of_name.values() if len(alike) > 1]
    if shared:
        raise DataError(
            f"class names must be distinct: {', '.join(shared)}",
            where=where,
            hint=HOW_TO_NAME,
        )


def leaked_class_names(words: Collection[str], names: Iterable[str]) -> list[str]:
    """Return the class names that are among words, or have a synonym among them; case and hyphens aside."""
    spelled = {folded(word) for word in words}
    return [name for name in names if not spelled.isdisjoint(map(folded, name.split(",")))]


def _embed(encode_text: EncodeText, words: Sequence[str], templates: Sequence[str] | str) -> Tensor:
    """Return the mean over templates of the embeddings of words, each of length 1: (n, d)."""
    templates = (templates,) if isinstance(templates, str) else templates
    if not templates or any(template.count("{}") != 1 for template in templates):
        raise DataError("a template has one {} for the name", where=str(list(templates)))
    total: Any = 0
    for template in templates:
        parts = []
        for start in range(0, len(words), TEXT_BATCH):
            sentences = [template.replace("{}", word) for word in words[start : start + TEXT_BATCH]]
            with torch.no_grad():
                embeddings = encode_text(sentences)
            if embeddings.ndim != 2 or len(embeddings) != len(sentences):
                raise DataError(
                    f"the text encoder gives {tuple(embeddings.shape)} for {len(sentences)} sentences",
                    hint="embeddings (n, d) are expected",
                )
            bad = (~embeddings.isfinite().all(dim=1) | ~embeddings.any(dim=1)).nonzero()
            if len(bad):
                raise DataError(
                    f"the text encoder's embedding of {sentences[int(bad[0])]!r} is zero or not finite"
                )
            parts.append(functional.normalize(embeddings.float(), dim=1))
        total = total + torch.cat(parts)
    return functional.normalize(total, dim=1)


def group_log_sums(similarities: Tensor, groups: int, temperature: float) -> Tensor:
    """Return log sum exp(s / T) over each group of negatives: (n, groups).

    Parameters
    ----------
    similarities : (n, M), 100 times cosine similarities.
    groups : of equally many columns; the last columns
        that do not fill them are left out, as in NegLabel's code.
    """
    size = similarities.shape[1] // groups
    if size == 0:
        raise DataError(
            f"{similarities.shape[1]:,} negative words do not fill {groups:,} groups",
            hint="take fewer groups",
        )
    grouped = similarities[:, : groups * size].reshape(len(similarities), groups, size)
    return torch.logsumexp(grouped.float() / temperature, dim=2)

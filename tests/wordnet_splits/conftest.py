"""WordNet in three forms: ours, NLTK's reader over our export, and a toy of nine nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import OnceForAllWorkers
from tools.wndb_export import export_wndb
from wordnet_splits.wordnet.taxonomy import Taxonomy
from wordnet_splits.wordnet.taxonomy.wn_lexicons import installed_lexicons

from .command import Command
from .small_lexicon import written
from .toy import TOY


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """The programs, called in an empty folder."""
    return Command(capsys, monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def wordnet() -> Taxonomy:
    return Taxonomy.embedded()


@pytest.fixture(scope="session")
def toy() -> Taxonomy:
    return Taxonomy.from_edges(TOY)


@pytest.fixture(scope="session")
def nltk_reader(once_for_all_workers: OnceForAllWorkers) -> Iterator[Any]:
    """NLTK's own reader of the exported WordNet, which takes two seconds to make; needs no download."""
    nltk = pytest.importorskip("nltk", reason="pip install '.[nltk]'")
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    base = once_for_all_workers("nltk", lambda folder: export_wndb(folder / "corpora" / "wordnet"))
    nltk.data.path.insert(0, str(base))
    try:
        with pytest.warns(UserWarning, match="multilingual"):
            reader = WordNetCorpusReader(str(base / "corpora" / "wordnet"), None)
        yield reader
    finally:
        nltk.data.path.remove(str(base))


@pytest.fixture(scope="module")
def nltk_wordnet(nltk_reader: Any) -> Iterator[Any]:
    """NLTK's reader, without the synsets that other files read."""
    yield nltk_reader
    nltk_reader._synset_offset_cache.clear()


@pytest.fixture
def lexicon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The lexicon added to a `wn` of its own."""
    wn = pytest.importorskip("wn")
    monkeypatch.setattr(wn.config, "data_directory", tmp_path / "wn")
    assert installed_lexicons() == ()
    wn.add(written(tmp_path / "few.xml"), progress_handler=None)
    assert installed_lexicons() == ("oewn:2024",)
    return "oewn:2024"

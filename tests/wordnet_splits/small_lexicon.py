"""A lexicon of six nouns as `wn` reads them (WN-LMF), with sense keys as Open English WordNet has."""

from __future__ import annotations

from pathlib import Path

LEXICON = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE LexicalResource SYSTEM "http://globalwordnet.github.io/schemas/WN-LMF-1.0.dtd">
<LexicalResource xmlns:dc="http://purl.org/dc/elements/1.1/">
<Lexicon id="{name}" language="{language}" version="{version}" label="Nouns" email="a@b.c" license="none">
{entries}
{synsets}
</Lexicon>
</LexicalResource>
"""
SYNSETS = {
    "1": ("entity", ["entity%1:03:00::"], [], "all that is"),
    "2": ("animal", ["animal%1:03:00::"], [("hypernym", "1")], "a living one"),
    "3": ("dog", ["dog%1:05:00::", "domestic dog%1:05:00::"], [("hypernym", "2")], "it barks"),
    "4": ("frump", ["dog%1:18:01::", "frump%1:18:00::"], [("hypernym", "1")], "a dull one"),
    "5": ("Rex", ["rex%1:18:99::"], [("instance_hypernym", "3"), ("holo_member", "6")], "one dog"),
    "6": ("pack", ["pack%1:14:00::"], [("hypernym", "1")], "several of them"),
}


def written(path: Path) -> Path:
    """Write the lexicon as WN-LMF."""
    entries: dict[str, list[str]] = {}
    for name, (_, keys, _, _) in SYNSETS.items():
        for key in keys:
            word, _, rest = key.partition("%")
            lemma = word.replace(" ", "_")
            escaped = f"{lemma}__{rest.replace(':', '.')}"
            entries.setdefault(word, []).append(f'<Sense id="oewn-{escaped}" synset="oewn-{name}-n"/>')
    words = "\n".join(
        f'<LexicalEntry id="oewn-{word.replace(" ", "_")}-n"><Lemma writtenForm="{word}" partOfSpeech="n"/>'
        f"{''.join(senses)}</LexicalEntry>"
        for word, senses in entries.items()
    )
    synsets = "\n".join(
        f'<Synset id="oewn-{name}-n" ili="" partOfSpeech="n"><Definition>{gloss}</Definition>'
        + "".join(f'<SynsetRelation relType="{kind}" target="oewn-{to}-n"/>' for kind, to in relations)
        + "</Synset>"
        for name, (_, _, relations, gloss) in SYNSETS.items()
    )
    return write_lexicon(path, words, synsets, name="oewn", language="en", version="2024")


def write_lexicon(path: Path, entries: str, synsets: str, **about: str) -> Path:
    """Write a file of WN-LMF; ``about`` has name, language and version of its lexicon."""
    path.write_text(LEXICON.format(entries=entries, synsets=synsets, **about), encoding="utf-8")
    return path

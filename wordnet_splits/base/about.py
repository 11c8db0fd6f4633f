"""Authors and terms of a benchmark or a dataset: the table ``[about]``."""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

LICENCE_REF: Final = "LicenseRef-"
ASKED_TO_PUBLISH: Final = ("licence", "authors")
"""Keys of ``[about]`` without which nothing is published."""

_ADDRESS = re.compile(r"https?://[^\s{}/]+[^\s{}]*")
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_DOI = re.compile(r"10\.[0-9]{4,9}/[^\s{}]+")
_BIBTEX = re.compile(r"@\w+\{[^,\s{}]+,.*\}", re.DOTALL)
_ORCID = re.compile(r"([0-9]{4}-){3}[0-9]{3}[0-9X]")


class Licence(NamedTuple):
    """A licence with an SPDX identifier; ``hub`` is its identifier on the Hugging Face Hub, if it has one."""

    spdx: str
    name: str
    hub: str


@cache
def licences() -> dict[str, Licence]:
    """Return the licences with an SPDX identifier that ``[about]`` accepts, by identifier."""
    text = files("wordnet_splits").joinpath("data/licences.tsv").read_text("utf-8")
    rows = [Licence(*line.split("\t")) for line in text.splitlines()[2:]]
    return {row.spdx: row for row in rows}


def check_licence(value: object) -> str:
    """Return an SPDX identifier of `licences`, or ``LicenseRef-NAME``. Raises ValueError."""
    if isinstance(value, str):
        if value in licences() or re.fullmatch(LICENCE_REF + r"[A-Za-z0-9.-]+", value):
            return value
        by_lower = {spdx.lower(): spdx for spdx in licences()}
        near = difflib.get_close_matches(value.lower().replace(" ", "-"), by_lower, n=2, cutoff=0.6)
        meant = f"; did you mean {' or '.join(by_lower[spdx] for spdx in near)}?" if near else ""
    else:
        meant = ""
    raise ValueError(
        f"{value!r} is not one of the SPDX identifiers that are accepted, such as CC-BY-4.0{meant}; "
        f"write another licence as {LICENCE_REF}NAME"
    )


def check_orcid(value: object) -> str:
    """Return an ORCID iD, without the address of orcid.org. Raises ValueError for a wrong check digit."""
    text = str(value).removeprefix("https://orcid.org/")
    if not _ORCID.fullmatch(text):
        raise ValueError(f"{value!r} is not an ORCID iD, as in 0000-0002-1825-0097")
    total = 0
    for digit in text[:-1].replace("-", ""):  # ISO 7064, MOD 11-2
        total = (total + int(digit)) * 2
    check = (12 - total % 11) % 11
    if text[-1] != ("X" if check == 10 else str(check)):
        raise ValueError(f"{value!r} is not an ORCID iD: its check digit is wrong")
    return text


def check_doi(value: object) -> str:
    """Return a DOI, without the address of doi.org. Raises ValueError."""
    text = str(value).removeprefix("https://doi.org/")
    if not _DOI.fullmatch(text):
        raise ValueError(f"{value!r} is not a DOI, as in 10.5281/zenodo.1234567")
    return text


def check_date(value: object) -> str:
    """Return a date as YYYY-MM-DD; TOML may have it without quotes. Raises ValueError."""
    text = value.isoformat() if isinstance(value, datetime.date) else str(value)
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").date().isoformat()
    except ValueError:
        raise ValueError(f"{text!r} is not an ISO date, as in 2026-11-23") from None


def check_url(value: object) -> str:
    """Return an address of the web. Raises ValueError."""
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise ValueError(f"{value!r} is not an address, as in https://example.org/mine")
    return value


def check_contact(value: object) -> str:
    """Return an e-mail address or an address of the web. Raises ValueError."""
    if isinstance(value, str) and (_MAIL.fullmatch(value) or _ADDRESS.fullmatch(value)):
        return value
    raise ValueError(f"{value!r} is neither an e-mail address nor an address as in https://example.org")


def check_paper(value: object) -> str:
    """Return the title or the BibTeX entry of a paper. Raises ValueError."""
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        raise ValueError(f"{value!r} is neither the title nor the BibTeX entry of a paper")
    if text.startswith("@") and not (_BIBTEX.fullmatch(text) and text.count("{") == text.count("}")):
        raise ValueError("begins as BibTeX, and is no entry as in @article{key, title = {...}}")
    return text


Text = Annotated[str, Field(min_length=1, max_length=20_000, strict=True)]
Words = Annotated[str, Field(pattern=r"\S", max_length=20_000, strict=True)]
Url = Annotated[str, BeforeValidator(check_url)]


class Author(BaseModel):
    """A person or an organisation.

    Attributes
    ----------
    name : as in ``Ada Lovelace`` or, where the family name is not the last word, ``Family, Given``.
    orcid : ORCID iD of a person.
    affiliation : the organisation of a person.
    organisation : whether the author is an organisation.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Text
    orcid: Annotated[str, BeforeValidator(check_orcid)] | None = None
    affiliation: Text | None = None
    organisation: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _orcid_of_a_person(self) -> Author:
        if self.organisation and (self.orcid or self.affiliation):
            raise ValueError("an organisation has neither orcid nor affiliation")
        return self

    @property
    def family_and_given(self) -> tuple[str, str]:
        """The family name and the given names of a person; the latter may be empty."""
        if "," in self.name:
            family, _, given = self.name.partition(",")
            return family.strip(), given.strip()
        given, _, family = self.name.rpartition(" ")
        return family, given.strip()

    @property
    def full_name(self) -> str:
        """The name as it is spoken: given names first."""
        if self.organisation:
            return self.name
        return " ".join(reversed(self.family_and_given)).strip()


def _check_authors(value: object) -> object:
    """Return the tables of authors; ValueError explains how an author that is only a text is written."""
    tables = value if isinstance(value, list | tuple) else [value]
    texts = [author for author in tables if not isinstance(author, dict | Author)]
    if texts or not value:
        example = texts[0] if texts and isinstance(texts[0], str) else "Ada Lovelace"
        raise ValueError(f'write authors as tables, as in authors = [{{ name = "{example}" }}]')
    return value


class About(BaseModel):
    """Authors and terms of a benchmark or a dataset.

    Attributes
    ----------
    authors : its authors, as ``[{ name = "Ada Lovelace", orcid = "0000-0002-1825-0097" }]``.
    description : a paragraph about it.
    licence : the SPDX identifier of its licence, ``CC-BY-4.0``, or ``LicenseRef-NAME``.
    paper : the paper that describes it: its title, or its BibTeX entry.
    doi : its DOI.
    url : address of its page.
    date : date of this version, YYYY-MM-DD.
    contact : e-mail address or page to write to.
    version_notes : version -> description of its changes.
    limitations : limitations of its images and classes; a responsible-AI field of Croissant, as are the next
        five.
    biases : biases of its images and classes.
    personal_information : personal and sensitive information in its images, or that there is none.
    use_cases : intended uses, and uses to avoid.
    social_impact : effects that its use may have on people.
    synthetic_data : whether some of its images are synthetic.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    authors: Annotated[tuple[Author, ...], BeforeValidator(_check_authors)] = ()
    description: Text | None = None
    licence: Annotated[str, BeforeValidator(check_licence)] | None = None
    paper: Annotated[str, BeforeValidator(check_paper)] | None = None
    doi: Annotated[str, BeforeValidator(check_doi)] | None = None
    url: Url | None = None
    date: Annotated[str, BeforeValidator(check_date)] | None = None
    contact: Annotated[str, BeforeValidator(check_contact)] | None = None
    version_notes: dict[Annotated[str, Field(pattern=r"^[1-9][0-9]*$")], Text] = Field(default_factory=dict)
    limitations: Words | None = None
    biases: Words | None = None
    personal_information: Words | None = None
    use_cases: Words | None = None
    social_impact: Words | None = None
    synthetic_data: Annotated[bool, Field(strict=True)] | None = None

    @property
    def absent(self) -> list[str]:
        """The keys without a value."""
        return [key for key in type(self).model_fields if getattr(self, key) in (None, (), {})]

    def as_dict(self) -> dict[str, Any]:
        """Return the keys with a value, as JSON has them."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def bibtex(self, key: str, title: str, version: int | None = None) -> str:
        """Return a BibTeX entry of the benchmark or dataset; empty without authors."""
        if not self.authors:
            return ""
        described = "" if not self.paper or self.paper.startswith("@") else f"Described in {self.paper}"
        fields = {
            "author": " and ".join(map(_bibtex_author, self.authors)),
            "title": _bibtex_text(title),
            "year": self.date[:4] if self.date else "",
            "version": "" if version is None else str(version),
            "doi": self.doi or "",
            "url": self.url or "",
            "note": _bibtex_text(described),
        }
        return bibtex_entry("misc", key, fields)


def bibtex_entry(kind: str, key: str, fields: Mapping[str, str]) -> str:
    """Return a BibTeX entry of the fields that have a value."""
    filled = {name: value for name, value in fields.items() if value}
    width = max(map(len, filled))
    lines = ",\n".join(f"  {name:<{width}} = {{{value}}}" for name, value in filled.items())
    return f"@{kind}{{{key},\n{lines}\n}}"


def _bibtex_author(author: Author) -> str:
    if author.organisation:
        return f"{{{_bibtex_text(author.name)}}}"
    family, given = map(_bibtex_text, author.family_and_given)
    return f"{family}, {given}" if given else f"{{{family}}}"


def _bibtex_text(text: str) -> str:
    """Return a text on one line as BibTeX reads it; braces, which would have to be balanced, are left out."""
    plain = re.sub(r"([&%$#_])", r"\\\1", re.sub(r"[{}\\]", "", " ".join(text.split())))
    return plain.replace("<", r"\textless{}").replace(">", r"\textgreater{}")

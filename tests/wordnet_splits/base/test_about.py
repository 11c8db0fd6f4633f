"""``[about]``: what it takes, what it refuses, and the BibTeX made of it."""

from __future__ import annotations

import datetime
import re

import pytest
from pydantic import ValidationError

from wordnet_splits.base.about import About, Author, licences

ADA = {"name": "Ada Lovelace", "orcid": "0000-0002-1825-0097"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("authors", [{"name": "A", "orcid": "0000-0002-1825-0098"}]),
        ("authors", [{"name": "A", "orcid": "0000-0002-1825"}]),
        ("authors", [{"name": ""}]),
        ("authors", [{"orcid": ADA["orcid"]}]),
        ("authors", [{"name": "A", "email": "a@b.org"}]),
        ("authors", ["Ada Lovelace"]),
        ("authors", "Ada Lovelace"),
        ("authors", []),
        ("authors", [{**ADA, "organisation": True}]),
        ("licence", "cc by 4.0"),
        ("licence", "Ours"),
        ("licence", "LicenseRef-"),
        ("licence", 4),
        ("doi", "zenodo.1234567"),
        ("doi", "10.5281/"),
        ("url", "example.org"),
        ("url", "file:///etc/passwd"),
        ("date", "2026-02-30"),
        ("date", "23.11.2026"),
        ("date", datetime.datetime(2026, 11, 23, 9)),
        ("contact", "me"),
        ("paper", ""),
        ("paper", "@article{x, title = {A}"),
        ("description", 3),
        ("version_notes", {"first": "a"}),
        ("biases", " \n"),
        ("social_impact", ["none"]),
        ("synthetic_data", "no"),
        ("version", 2),
    ],
)
def test_wrong_values_are_refused_by_key(key: str, value: object) -> None:
    with pytest.raises(ValidationError) as error:
        About.model_validate({key: value})
    assert error.value.errors()[0]["loc"][0] == key


def test_values_are_stored_in_one_form() -> None:
    about = About.model_validate(
        {
            "authors": [{"name": "A B", "orcid": "https://orcid.org/0000-0001-5109-3700"}],
            "doi": "https://doi.org/10.5281/zenodo.1",
            "date": datetime.date(2026, 11, 23),
            "licence": "LicenseRef-lab",
        }
    )
    assert about.as_dict() == {
        "authors": [{"name": "A B", "orcid": "0000-0001-5109-3700"}],
        "doi": "10.5281/zenodo.1",
        "date": "2026-11-23",
        "licence": "LicenseRef-lab",
    }
    assert About.model_validate(about.as_dict()) == about
    assert about.absent[:5] == ["description", "paper", "url", "contact", "version_notes"]
    assert About(authors=({"name": "X", "orcid": "0000-0002-9079-593X"},)).authors[0].orcid.endswith("X")


@pytest.mark.parametrize(
    ("name", "family", "given"),
    [
        ("Ada Lovelace", "Lovelace", "Ada"),
        ("van Gogh, Vincent", "van Gogh", "Vincent"),
        ("Plato", "Plato", ""),
    ],
)
def test_family_names(name: str, family: str, given: str) -> None:
    author = Author(name=name)
    assert author.family_and_given == (family, given)
    assert author.full_name == f"{given} {family}".strip()


def test_bibtex() -> None:
    about = About.model_validate(
        {
            "authors": [ADA, {"name": "Lab & Co", "organisation": True}],
            "date": "2026-11-23",
            "doi": "10.5281/zenodo.1_2",
            "paper": "100% of it",
        }
    )
    assert about.bibtex("mine", "Cups {and} a_b", 2) == (
        "@misc{mine,\n"
        "  author  = {Lovelace, Ada and {Lab \\& Co}},\n"
        "  title   = {Cups and a\\_b},\n"
        "  year    = {2026},\n"
        "  version = {2},\n"
        "  doi     = {10.5281/zenodo.1_2},\n"
        "  note    = {Described in 100\\% of it}\n}"
    )
    assert About(doi="10.5281/zenodo.1").bibtex("mine", "Mine") == ""


def test_the_list_of_licences() -> None:
    assert {"CC-BY-4.0", "CC0-1.0", "MIT", "Apache-2.0", "ODbL-1.0"} <= licences().keys()
    assert list(licences()) == sorted(licences(), key=str.lower)
    assert all(re.fullmatch(r"[a-z0-9.-]*", row.hub) for row in licences().values())

"""``[about]``: what it takes, what it refuses, and the BibTeX made of it."""

from __future__ import annotations

import datetime
import re

import pytest
from pydantic import ValidationError

from wordnet_splits.base.about import About, Author, licences

ADA = {"name": "Ada Lovelace", "orcid": "0000-0002-1825-0097"}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("authors", [{"name": "A", "orcid": "0000-0002-1825-0098"}], "check digit is wrong"),
        ("authors", [{"name": "A", "orcid": "0000-0002-1825"}], "is not an ORCID iD, as in"),
        ("authors", [{"name": ""}], "at least 1 character"),
        ("authors", [{"orcid": ADA["orcid"]}], "Field required"),
        ("authors", [{"name": "A", "email": "a@b.org"}], "Extra inputs"),
        ("authors", ["Ada Lovelace"], r'authors = \[\{ name = "Ada Lovelace" \}\]'),
        ("authors", "Ada Lovelace", "write authors as tables"),
        ("authors", [], "write authors as tables"),
        ("authors", [{**ADA, "organisation": True}], "an organisation has neither orcid"),
        ("licence", "cc by 4.0", "did you mean CC-BY-4.0"),
        ("licence", "Ours", "write another licence as LicenseRef-NAME"),
        ("licence", "LicenseRef-", "is not one of the SPDX identifiers"),
        ("licence", 4, "is not one of the SPDX identifiers"),
        ("doi", "zenodo.1234567", "is not a DOI, as in"),
        ("doi", "10.5281/", "is not a DOI, as in"),
        ("url", "example.org", "is not an address"),
        ("url", "file:///etc/passwd", "is not an address"),
        ("date", "2026-02-30", "is not an ISO date"),
        ("date", "23.11.2026", "is not an ISO date"),
        ("date", datetime.datetime(2026, 11, 23, 9), "is not an ISO date"),
        ("contact", "me", "is neither an e-mail address"),
        ("paper", "", "is neither the title nor the BibTeX"),
        ("paper", "@article{x, title = {A}", "begins as BibTeX, and is no entry"),
        ("description", 3, "valid string"),
        ("version_notes", {"first": "a"}, "should match pattern"),
        ("version", 2, "Extra inputs"),
    ],
)
def test_wrong_values_are_refused_by_key(key: str, value: object, message: str) -> None:
    with pytest.raises(ValidationError, match=message) as error:
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
    assert about.absent == ["description", "paper", "url", "contact", "version_notes"]
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

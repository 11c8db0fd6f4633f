"""Where a benchmark of the Hub lies on this machine; it is pulled when it is first asked for."""

from __future__ import annotations

from pathlib import Path

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.hub.address import SCHEME, parse_address


def folder_of(text: str) -> Path:
    """Return the folder of a benchmark given as ``hf://datasets/ORG/NAME@v1/BENCHMARK``.

    One of a tag that was pulled needs no connection; one of a branch stays at the commit it was pulled at
    until ``wordnet-splits hub pull`` takes it anew.

    Raises
    ------
    SplitsError : not of that form, or without a benchmark.
    HubError, ManifestError : as `wordnet_splits.hub.pulling.pull`.
    """
    address = parse_address(text, where="benchmark")
    if address.benchmark is None:
        raise SplitsError(f"{text!r} names no benchmark", hint=f"as in {SCHEME}ORG/NAME@v1/unknown-cifar")
    folder = address.folder / address.benchmark
    if not (folder / "manifest.json").is_file():
        from wordnet_splits.hub.pulling import pull  # it reads manifests

        pull(address)
    return folder

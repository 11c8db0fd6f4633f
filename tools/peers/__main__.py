"""``make peers``: the tests of NLTK, wn, scikit-learn, fd-shifts and pytorch-ood on our functions.

python -m tools.peers [--out DIR] [--checkout NAME=DIR ...] [--only NAME] [--table FILE]
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path

from tools.peers.page import Difference, Outcome, as_page, unexplained
from tools.peers.running import PEERS, folder_of, run, version_of

DIFFERENCES = Path(__file__).parent / "differences.toml"


def main() -> int:
    """Run all peers; 1 where a difference has no reason."""
    parser = argparse.ArgumentParser(prog="python -m tools.peers")
    parser.add_argument("--out", type=Path, default=Path("build/peers"), help="downloads, copies and logs")
    parser.add_argument(
        "--checkout",
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="a checkout of a peer: fd-shifts and pytorch-ood have their tests in no package",
    )
    parser.add_argument("--only", default="", help="the peers to run, by commas")
    parser.add_argument("--table", type=Path, default=None, help="write the page there")
    options = parser.parse_args()
    checkouts = {name: Path(folder) for name, _, folder in (text.partition("=") for text in options.checkout)}
    names = [name for name in options.only.split(",") if name]
    for name in (*checkouts, *names):
        if name not in {peer.name for peer in PEERS}:
            parser.error(f"no peer is called {name!r}: {', '.join(peer.name for peer in PEERS)}")
    outcomes, absent = [], {}
    scratch = options.out.resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    for peer in PEERS:
        if names and peer.name not in names:
            continue
        folder = folder_of(peer, checkouts, scratch)
        if folder is None:
            absent[peer.name] = f"its tests are in no package; give --checkout {peer.name}=DIR"
        else:
            outcomes.append(Outcome(peer, version_of(peer, checkouts), run(peer, folder, scratch)))
    differences = [
        Difference(**entry) for entry in tomllib.loads(DIFFERENCES.read_text("utf-8"))["difference"]
    ]
    page = as_page(outcomes, differences, absent)
    print(page)
    if options.table is not None:
        options.table.write_text(page, "utf-8")
    lines = unexplained(outcomes, differences)
    print("\n".join(lines), file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())

"""The command ``fix-resize``: build, verify and audit sets of resized images."""

from __future__ import annotations

from fix_resize.cli import audit, build
from wordnet_splits.terminal.options import make_program
from wordnet_splits.terminal.runner import start

app = make_program(
    "fix-resize",
    "Resize images into small benchmarks without the artefacts that gave earlier ones away.",
    ["fix-resize build folder --root photographs --out fixed", "fix-resize verify fixed"],
)
build.add_commands(app)
audit.add_commands(app)


def main() -> None:
    """Run ``fix-resize``."""
    start(app, "fix-resize")


if __name__ == "__main__":
    main()

"""Single-file pages without requests to the network."""

from __future__ import annotations

import base64
import hashlib
import io
from functools import cache
from pathlib import Path
from typing import Any, Final

from PIL import Image

from wordnet_splits.base.files import write_text

TEMPLATES: Final = Path(__file__).parent.parent / "data" / "pages"


@cache
def _environment() -> Any:
    import jinja2  # takes a while to import

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )


def write_page(path: Path, name: str, **values: object) -> None:
    """Write the page of a template, with its style and script and a policy that allows no others.

    Parameters
    ----------
    name : name of the template, its style and its script in ``data/pages``.
    values : values of the template's variables, escaped as text.

    Raises
    ------
    OutputError : the file cannot be written.
    """
    from markupsafe import Markup

    style, script = ((TEMPLATES / f"{name}.{kind}").read_text("utf-8") for kind in ("css", "js"))
    policy = (
        f"default-src 'none'; img-src data:; style-src 'sha256-{_hash(style)}'; "
        f"script-src 'sha256-{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    template = _environment().get_template(f"{name}.html")
    parts = {"policy": policy, "style": Markup(style), "script": Markup(script)}
    write_text(path, template.render(**values, **parts))


def thumbnail(image: Image.Image, side: int) -> str:
    """Return an image of at most ``side`` pixels a side as a ``data:`` address; small ones are lossless."""
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    kind = "png" if max(image.size) <= 64 else "jpeg"
    buffer = io.BytesIO()
    image.save(buffer, format=kind)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

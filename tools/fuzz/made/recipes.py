"""Recipes and variants of them."""

from __future__ import annotations

from tools.fuzz.made.making import LONG, Made, Make, in_bytes, in_text


def _group(name: str, rest: str) -> str:
    lines = ("[[group]]", f'name = "{name}"', 'role = "far"', 'source = "gaussian"', rest, "")
    return "\n".join(lines)


def _appended(text: str) -> Make:
    return in_text(lambda old: f"{old}\n{text}\n")


def _rule(rule: str) -> Make:
    return in_text(lambda old: old.replace('{ shares_parent_with = "group:digits-0-5" }', rule))


_LEAK = '[[known_leak]]\nkind = "class"\na = "group:uniform"\nb = "group:gaussian"\ncount = 1\nreason = "x"\n'
_NOISE = "noise = { shape = [4096, 4096, 3], seed = 0 }\nclasses = { rest = true }\n"
RECIPE: Made = {
    "nested 500 deep": ("digits.toml", _appended("x = " + "[" * 500 + "]" * 500)),
    "tables nested 500 deep": ("digits.toml", _appended("x = " + "{ a = " * 500 + "1" + " }" * 500)),
    "a rule nested 60 deep": ("digits.toml", _rule("{ not = " * 59 + "{ rest = true }" + " }" * 59)),
    "an integer of 5,000 digits": (
        "digits.toml",
        in_text(lambda t: t.replace("version = 1", f"version = {'9' * 5000}")),
    ),
    "an integer of 39 digits": (
        "digits.toml",
        in_text(lambda t: t.replace("per_class = 20", f"per_class = {'9' * 39}")),
    ),
    "a seed of 39 digits": (
        "digits.toml",
        in_text(lambda t: t.replace("version = 1", f"version = 1\nseed = {'9' * 39}")),
    ),
    "a dotted key 50,000 deep": ("digits.toml", in_text(lambda t: "a." * 50_000 + f"b = 1\n{t}")),
    "a dotted table 50,000 deep": ("digits.toml", _appended("[" + "a." * 50_000 + "b]")),
    "a quoted dotted key 50,000 deep": ("digits.toml", in_text(lambda t: '"a".' * 50_000 + f"b = 1\n{t}")),
    "3,000 groups": (
        "digits.toml",
        _appended("".join(_group(f"g{n}", "classes = { rest = true }") for n in range(3000))),
    ),
    "3,000 groups of one name": ("digits.toml", _appended("[[group]]\n" * 3000)),
    "20,000 known leaks": ("digits.toml", _appended(_LEAK * 20_000)),
    "a rule of 20,000 alternatives": (
        "digits.toml",
        _rule("{ any = [" + ", ".join(['{ listed = ["6"] }'] * 20_000) + "] }"),
    ),
    "200,000 classes listed": (
        "digits.toml",
        _rule("{ listed = [" + ", ".join(f'"{n}"' for n in range(200_000)) + "] }"),
    ),
    "a class of 4 million letters": ("digits.toml", _rule(f'{{ listed = ["{"A" * 4_000_000}"] }}')),
    "a class of 20 million letters": ("digits.toml", _rule(f'{{ listed = ["{"A" * LONG}"] }}')),
    "a slice of every 10**18th": (
        "digits.toml",
        _rule('{ slice = { of = ["entity.n.01"], every = 1000000000000000000, at = [0] } }'),
    ),
    "100,000 noise images of 4096 x 4096": (
        "digits.toml",
        _appended(_group("big", _NOISE + "images = { test = { generate = 100000 } }")),
    ),
    "a date for a name": (
        "digits.toml",
        in_text(lambda t: t.replace('name = "digits"', "name = 1979-05-27")),
    ),
    "50 MB of comment": ("digits.toml", _appended("# " + "x" * 50_000_000)),
    "a million keys": ("digits.toml", _appended("\n".join(f"k{n} = 1" for n in range(1_000_000)))),
}


def _base(value: str) -> Make:
    return in_text(lambda text: text.replace('extends = "digits.toml"', f"extends = {value}"))


VARIANT: Made = {
    f"extends {value[:20]}": ("variant.toml", _base(value))
    for value in (
        "5",
        "[]",
        "{ a = 1 }",
        '""',
        '"nowhere"',
        '"../../etc/passwd"',
        '"/dev/zero"',
        '"folder.toml"',
    )
} | {
    "extends itself": ("variant.toml", _base('"variant.toml"')),
    "extends a name of 20 million letters": ("variant.toml", _base(f'"{"A" * LONG}.toml"')),
    "extends a name with a null byte": ("variant.toml", _base('"a\\u0000.toml"')),
    "a base whose groups are numbers": ("digits.toml", in_bytes(lambda: b'name = "x"\ngroup = [1, 2]\n')),
    "a base whose group is a table": ("digits.toml", in_bytes(lambda: b'name = "x"\n[group]\nname = "y"\n')),
    "a base whose names are lists": (
        "digits.toml",
        in_bytes(lambda: b"name = []\n[[group]]\nname = [[1]]\n"),
    ),
    "a base nested 500 deep": ("digits.toml", _appended("x = " + "[" * 500 + "]" * 500)),
    "a base whose leaks are text": ("digits.toml", in_text(lambda text: 'known_leak = "all"\n' + text)),
    "a base that is a variant": ("digits.toml", in_text(lambda text: f'extends = "variant.toml"\n{text}')),
    "drops 200,000 groups": (
        "variant.toml",
        in_text(lambda t: t.replace("schema", f"drop = [{', '.join(['[]'] * 200_000)}]\nschema", 1)),
    ),
}

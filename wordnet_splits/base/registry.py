"""The registry: named objects of a kind, from a folder of this project, other packages and users.

A room makes one instance, next to a typed decorator that adds to it::

    OPERATORS: Final = Registry[Operator]("operator", f"{__package__}.operators", "wordnet_splits.operators")

The modules of the folder are imported when a name is first looked up, and register their objects. Another
package registers an object under an entry point of the group with the object's name.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from wordnet_splits.base.errors import DataError, SplitsError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import USER_CODE_ERRORS, describe_error

T = TypeVar("T")
Implementation = TypeVar("Implementation")

OUR_PACKAGES: Final = ("wordnet_splits", "loaders", "fix_resize")
NAME: Final = re.compile(r"[^\s,:\[\]]+")


class Registry(Generic[T]):
    """Named objects of the same kind.

    A shipped object cannot be replaced. A user's object replaces an earlier one with the same name, with a
    warning, for example when a cell of a notebook runs again.

    Parameters
    ----------
    kind : noun for messages, e.g. "metric".
    folder : package whose modules define the shipped objects; "" for none.
    group : group of the entry points of other packages.
    pattern : regular expression of a whole name.
    rooms : package whose subpackages may each have a module ``room_module`` with further shipped objects.
    """

    def __init__(
        self,
        kind: str,
        folder: str,
        group: str,
        *,
        pattern: re.Pattern[str] = NAME,
        rooms: str = "",
        room_module: str = "",
    ) -> None:
        self.kind, self.folder, self.group, self.pattern = kind, folder, group, pattern
        self.rooms, self.room_module = rooms, room_module
        self._entries: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
        self._shipped: set[str] = set()
        self._folder_is_loaded = False

    def register(
        self, name: str, make: Callable[[Any], T] | None = None, *, aliases: Iterable[str] = ()
    ) -> Callable[[Implementation], Implementation]:
        """Register the decorated object, or ``make(object)``, under a name and aliases."""

        def decorate(implementation: Implementation) -> Implementation:
            entry: Any = implementation if make is None else make(implementation)
            self.add(
                name, entry, shipped=defined_in(implementation, self.rooms or self.folder), aliases=aliases
            )
            return implementation

        return decorate

    def add(self, name: str, entry: T, *, shipped: bool = False, aliases: Iterable[str] = ()) -> None:
        """Register an object; ``shipped`` is whether it is defined in the folder.

        Raises
        ------
        DataError : the name is malformed, or a shipped object has it.
        """
        if not shipped:
            self.load()  # whose names are taken
        for text in (name, *aliases):
            if not self.pattern.fullmatch(text):
                raise DataError(
                    f"a name of a {self.kind} must match {self.pattern.pattern}, got '{printable(text)}'"
                )
            owner = self._aliases.get(text, text)
            if owner in self._entries and (shipped or owner in self._shipped or owner != name):
                raise DataError(f"two {self.kind}s are called {text!r}", hint="choose another name")
        if name in self._entries:
            _warn(f"the {self.kind} {name!r} replaces the earlier one of that name")
            self._aliases = {alias: of for alias, of in self._aliases.items() if of != name}
        self._entries[name] = entry
        self._aliases.update(dict.fromkeys(aliases, name))
        if shipped:
            self._shipped.add(name)

    def remove(self, name: str) -> None:
        """Remove a user's object."""
        del self._entries[name]

    @property
    def registered(self) -> Mapping[str, T]:
        """The shipped objects, and those that this process has registered, in order of registration."""
        self.load()
        return MappingProxyType(self._entries)

    @property
    def added(self) -> tuple[str, ...]:
        """The names that this process or other packages added, without an import of the folder."""
        return tuple(sorted({*(name for name in self._entries if name not in self._shipped), *self._plugins}))

    def is_shipped(self, name: str) -> bool:
        """Return whether a shipped object has a name or alias."""
        self.load()
        return self._aliases.get(name, name) in self._shipped

    def names(self, pattern: str = "*") -> tuple[str, ...]:
        """Return the names that match a shell pattern, themselves or by an alias, sorted.

        Names of other packages are among them, without importing these packages.
        """
        known = {name: name for name in (*self.registered, *self._plugins)} | self._aliases
        return tuple(sorted({name for text, name in known.items() if fnmatchcase(text, pattern)}))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.registered or name in self._aliases or name in self._plugins

    def __getitem__(self, name: str) -> T:
        return self.find(name)

    def find(self, name: str, *, module: str = "", where: str | None = None, near: Iterable[str] = ()) -> T:
        """Return the object of a name or alias.

        Parameters
        ----------
        module : module of the folder that registers it, if known; no other is imported then.
        near : names to suggest first if the name is unknown.

        Raises
        ------
        UnknownNameError : the name is unknown; similar names are offered.
        DataError : another package's object cannot be loaded.
        """
        if module:
            import_module(f"{self.folder}.{module}")
        if name in self._entries:
            return self._entries[name]
        if name not in self:
            raise unknown(self.kind, name, [*self, *self._aliases], where=where, near=near)
        name = self._aliases.get(name, name)
        if name not in self._entries:
            self._load(name)
        return self._entries[name]

    def entries(self, pattern: str = "*") -> dict[str, T]:
        """Return the objects that match a shell pattern by name; those that cannot be loaded are left out.

        A warning names each object that is left out.
        """
        return self.loadable(self.names(pattern))

    def loadable(self, names: Iterable[str]) -> dict[str, T]:
        """Return objects by name; those that cannot be loaded are left out, each with a warning."""
        entries = {}
        for name in names:
            try:
                entries[name] = self[name]
            except SplitsError as error:
                _warn(f"left out: {error}")
        return entries

    def load(self) -> None:
        """Import the modules of the folder, which register the shipped objects, once.

        Modules whose names begin with ``_`` register none, and may need packages of extras.
        """
        if self.folder and not self._folder_is_loaded:
            for module in iter_modules(import_module(self.folder).__path__, f"{self.folder}."):
                if not module.name.startswith(f"{self.folder}._"):
                    import_module(module.name)
            for folder in import_module(self.rooms).__path__ if self.rooms else ():
                for file in sorted(Path(folder).glob(f"*/{self.room_module}.py")):  # a room may need torch
                    import_module(f"{self.rooms}.{file.parent.name}.{self.room_module}")
            self._folder_is_loaded = True  # after the imports, which may look up a name themselves

    @cached_property
    def _plugins(self) -> Mapping[str, list[EntryPoint]]:
        """The entry points of other packages by name; shipped names are left out with a warning."""
        by_name: dict[str, dict[str, EntryPoint]] = {}
        for point in entry_points(group=self.group):
            by_name.setdefault(point.name, {})[point.value] = point
        for name in sorted(filter(self.is_shipped, by_name)):
            _warn(f"the {self.kind} {name!r} of another package is ignored: a shipped one has that name")
            del by_name[name]
        return {name: list(points.values()) for name, points in by_name.items()}

    def _load(self, name: str) -> None:
        """Import another package's object, which registers itself."""
        points = self._plugins[name]
        where = ", ".join(sorted(point.value for point in points))
        if len(points) > 1:
            problem = f"{len(points)} packages register the {self.kind} {name!r}"
            raise DataError(problem, where=where, hint="uninstall all but one")
        try:
            points[0].load()
        except SplitsError:
            raise
        except USER_CODE_ERRORS as error:
            problem = f"the {self.kind} {name!r} cannot be loaded: {describe_error(error)}"
            raise DataError(problem, where=where, hint="install it again") from error
        if name not in self._entries:
            hint = "the name of the entry point must be that of the registered object"
            raise DataError(f"the entry point registers no {self.kind} {name!r}", where=where, hint=hint)


def defined_in(value: object, package: str) -> bool:
    """Return whether a class or function is defined in a package or one of its subpackages."""
    return bool(package) and f"{getattr(value, '__module__', '')}.".startswith(f"{package}.")


def _warn(message: str) -> None:
    """Warn at the first caller outside of this project."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in OUR_PACKAGES:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)

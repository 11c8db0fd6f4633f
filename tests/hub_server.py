"""A small Hugging Face Hub on this machine: the documented endpoints that its own clients ask for.

Repositories are commits of whole trees; large files come by LFS, small ones inside the commit; reading a
private repository, and every change, needs the token. Faults are set per request.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

TOKEN = "hf_secretOfTheTest0123456789"
LARGE = (".parquet",)
PAGE = 50


@dataclass
class Repo:
    private: bool = False
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def commit(self, tree: dict[str, bytes], message: str = "") -> str:
        names = [[path, hashlib.sha256(content).hexdigest()] for path, content in sorted(tree.items())]
        told = json.dumps([names, message, len(self.commits)])
        sha = hashlib.sha1(told.encode()).hexdigest()
        self.commits[sha] = tree
        self.branches["main"] = sha
        return sha

    def resolve(self, revision: str) -> str | None:
        sha = self.branches.get(revision) or self.tags.get(revision) or revision
        return sha if sha in self.commits else None


@dataclass
class Fault:
    """What happens to the next ``times`` requests whose method and path match.

    With ``held``, half of an answer is sent, and no more until the event is set; ``answer`` gives its own.
    """

    method: str
    path: str
    code: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    drop: bool = False
    held: threading.Event | None = None
    answer: Callable[[Handler], None] | None = None


@dataclass
class Hub:
    repos: dict[str, Repo] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    uploaded: list[int] = field(default_factory=list)
    address: str = ""

    def files(self, name: str, revision: str = "main") -> dict[str, bytes]:
        repo = self.repos[name]
        return repo.commits[str(repo.resolve(revision))]

    def copy_repositories(self, hub: Hub) -> None:
        """Hold what another Hub holds."""
        self.repos, self.large = copy.deepcopy(hub.repos), dict(hub.large)


def described(path: str, content: bytes) -> dict[str, Any]:
    oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    found: dict[str, Any] = {"type": "file", "path": path, "oid": oid, "size": len(content)}
    if path.endswith(LARGE):
        found["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return found


class Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def answer(self, body: Any = b"", *, code: int = 200, headers: dict[str, str] | None = None) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        if not isinstance(body, bytes):
            self.send_header("Content-Type", "application/json")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def refuse(self, code: int, error: str, message: str) -> None:
        self.answer(
            {"error": message}, code=code, headers={"X-Error-Code": error, "X-Error-Message": message}
        )

    @property
    def known(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def handle_any(self) -> None:
        split = urlsplit(self.path)
        path, query = unquote(split.path), parse_qs(split.query)
        content = self.body()
        self.hub.asked.append(f"{self.command} {path}")
        for fault in self.hub.faults:
            if fault.times > 0 and fault.method == self.command and re.search(fault.path, path):
                fault.times -= 1
                if fault.answer:
                    fault.answer(self)
                    return
                if fault.drop or fault.held:
                    self.close_connection = True
                    self.send_response(200)
                    self.send_header("Content-Length", "1000000")
                    self.end_headers()
                    self.wfile.write(b"half")
                    self.wfile.flush()
                    if fault.held:
                        fault.held.wait()
                    return
                self.answer({"error": "a fault of the test"}, code=fault.code, headers=fault.headers)
                return
        method = "GET" if self.command == "HEAD" else self.command
        for kind, pattern, work in ROUTES:
            if kind == method and (found := re.fullmatch(pattern, path)):
                work(self, *found.groups(), content=content, query=query)
                return
        self.refuse(404, "EntryNotFound", f"no such address: {path}")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any

    def repo(self, name: str, *, write: bool = False) -> Repo | None:
        repo = self.hub.repos.get(name)
        if repo is None or (repo.private and not self.known):
            self.refuse(404 if self.known else 401, "RepoNotFound", "Repository not found")
            return None
        if write and not self.known:
            self.refuse(401, "", "Invalid username or password.")
            return None
        return repo

    def at(self, name: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        repo = self.repo(name)
        if repo is None:
            return None
        sha = repo.resolve(revision)
        if sha is None:
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None
        return sha, repo.commits[sha]


Route = Callable[..., None]
ROUTES: list[tuple[str, str, Route]] = []
REPO = r"/api/datasets/([^/]+/[^/]+)"


def route(method: str, pattern: str) -> Callable[[Route], Route]:
    def add(work: Route) -> Route:
        ROUTES.append((method, pattern, work))
        return work

    return add


@route("POST", "/api/repos/create")
def _create(self: Handler, *, content: bytes, query: Any) -> None:
    told = json.loads(content)
    name = f"{told.get('organization') or 'me'}/{told['name']}"
    if not self.known:
        self.refuse(401, "", "Invalid username or password.")
    elif name in self.hub.repos:
        self.answer(
            {"error": "You already created this dataset repo", "url": f"{self.hub.address}/datasets/{name}"},
            code=409,
        )
    else:
        repo = self.hub.repos[name] = Repo(bool(told.get("private")) or told.get("visibility") == "private")
        repo.commit({".gitattributes": b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"}, "initial commit")
        self.answer({"url": f"{self.hub.address}/datasets/{name}", "name": name, "id": name})


@route("POST", "/api/validate-yaml")
def _validate(self: Handler, *, content: bytes, query: Any) -> None:
    assert json.loads(content)["content"].startswith("---\n")
    self.answer({"errors": [], "warnings": []})


@route("GET", REPO + r"(?:/revision/(.+))?")
def _info(self: Handler, name: str, revision: str | None, *, content: bytes, query: Any) -> None:
    if found := self.at(name, revision or "main"):
        sha, tree = found
        about = {"id": name, "_id": "0", "sha": sha, "private": self.hub.repos[name].private}
        about["siblings"] = [{"rfilename": path} for path in sorted(tree)]
        self.answer({**about, "tags": [], "downloads": 0, "likes": 0, "gated": False, "disabled": False})


@route("GET", REPO + r"/refs")
def _refs(self: Handler, name: str, *, content: bytes, query: Any) -> None:
    if repo := self.repo(name):
        kinds = {"branches": ("heads", repo.branches), "tags": ("tags", repo.tags)}
        found = {
            kind: [{"name": n, "ref": f"refs/{place}/{n}", "targetCommit": sha} for n, sha in refs.items()]
            for kind, (place, refs) in kinds.items()
        }
        self.answer({**found, "converts": []})


@route("GET", REPO + r"/tree/([^/]+)(?:/(.*))?")
def _tree(self: Handler, name: str, revision: str, below: str | None, *, content: bytes, query: Any) -> None:
    if not (found := self.at(name, revision)):
        return
    base = f"{below.rstrip('/')}/" if below else ""
    inside = {path: file for path, file in found[1].items() if path.startswith(base)}
    if base and not inside:
        self.refuse(404, "EntryNotFound", f"{below} does not exist")
        return
    folders = sorted(
        {path[: i + 1] for path in inside for i, c in enumerate(path) if c == "/" and i >= len(base)}
    )
    deep = query.get("recursive", ["false"])[0].lower() in ("true", "1")
    entries = [{"type": "directory", "path": f.rstrip("/"), "oid": "0" * 40, "size": 0} for f in folders]
    entries += [described(path, file) for path, file in sorted(inside.items())]
    if not deep:
        entries = [entry for entry in entries if "/" not in entry["path"][len(base) :]]
    start = int(query.get("cursor", ["0"])[0])
    headers = {}
    if start + PAGE < len(entries):
        here = f"{self.hub.address}{urlsplit(self.path).path}?recursive={str(deep).lower()}"
        headers = {"Link": f'<{here}&cursor={start + PAGE}>; rel="next"'}
    self.answer(entries[start : start + PAGE], headers=headers)


@route("POST", REPO + r"/paths-info/([^/]+)")
def _paths(self: Handler, name: str, revision: str, *, content: bytes, query: Any) -> None:
    if found := self.at(name, revision):
        told = json.loads(content) if content.startswith(b"{") else parse_qs(content.decode())
        paths = [told["paths"]] if isinstance(told["paths"], str) else told["paths"]
        entries: list[dict[str, Any]] = []
        for path in (p.strip("/") for p in paths):
            if path in found[1]:
                entries.append(described(path, found[1][path]))
            elif any(held.startswith(f"{path}/") for held in found[1]):
                entries.append({"type": "directory", "path": path, "oid": "0" * 40, "size": 0})
        self.answer(entries)


@route("POST", REPO + r"/preupload/([^/]+)")
def _preupload(self: Handler, name: str, revision: str, *, content: bytes, query: Any) -> None:
    if repo := self.repo(name, write=True):
        held = repo.commits[repo.branches["main"]]
        files = []
        for file in json.loads(content)["files"]:
            path = file["path"]
            mode = "lfs" if path.endswith(LARGE) else "regular"
            oid = described(path, held[path])["oid"] if path in held and mode == "regular" else None
            files.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self.answer({"files": files, "commitOid": repo.branches["main"]})


@route("POST", r"/datasets/([^/]+/[^/]+)\.git/info/lfs/objects/batch")
def _batch(self: Handler, name: str, *, content: bytes, query: Any) -> None:
    if self.repo(name, write=True):
        objects = []
        for told in json.loads(content)["objects"]:
            entry = {"oid": told["oid"], "size": told["size"]}
            if told["oid"] not in self.hub.large:
                entry["actions"] = {
                    "upload": {"href": f"{self.hub.address}/lfs/{told['oid']}", "header": {}},
                    "verify": {"href": f"{self.hub.address}/lfs-verify/{told['oid']}"},
                }
            objects.append(entry)
        self.answer({"transfer": "basic", "objects": objects})


@route("PUT", r"/lfs/([0-9a-f]{64})")
def _upload(self: Handler, oid: str, *, content: bytes, query: Any) -> None:
    if hashlib.sha256(content).hexdigest() != oid:
        self.answer({"error": "another content"}, code=400)
        return
    self.hub.large[oid] = content
    self.hub.uploaded.append(len(content))
    self.answer(b"")


@route("POST", r"/lfs-verify/([0-9a-f]{64})")
def _verify(self: Handler, oid: str, *, content: bytes, query: Any) -> None:
    self.answer({}, code=200 if oid in self.hub.large else 404)


@route("POST", REPO + r"/commit/([^/]+)")
def _commit(self: Handler, name: str, revision: str, *, content: bytes, query: Any) -> None:
    repo = self.repo(name, write=True)
    if repo is None:
        return
    lines = [json.loads(line) for line in content.splitlines() if line]
    header = lines[0]["value"]
    parent = repo.branches["main"]
    if header.get("parentCommit") not in (None, parent):
        self.refuse(412, "", "A commit has happened since. Please refresh and try again.")
        return
    tree = dict(repo.commits[parent])
    for line in lines[1:]:
        value = line["value"]
        if line["key"] == "file":
            tree[value["path"]] = base64.b64decode(value["content"])
            self.hub.uploaded.append(len(tree[value["path"]]))
        elif line["key"] == "lfsFile":
            tree[value["path"]] = self.hub.large[value["oid"]]
        else:
            tree.pop(value["path"])
    sha = repo.commit(tree, header["summary"])
    url = f"{self.hub.address}/datasets/{name}/commit/{sha}"
    self.answer({"commitUrl": url, "commitOid": sha, "pullRequestUrl": None})


@route("POST", REPO + r"/tag/([^/]+)")
def _tag(self: Handler, name: str, revision: str, *, content: bytes, query: Any) -> None:
    if repo := self.repo(name, write=True):
        tag, sha = json.loads(content)["tag"], repo.resolve(revision)
        if tag in repo.tags:
            self.refuse(409, "", "Tag already exists")
        elif sha is None:
            self.refuse(404, "RevisionNotFound", "no such revision")
        else:
            repo.tags[tag] = sha
            self.answer({})


@route("GET", r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
def _resolve(self: Handler, name: str, revision: str, path: str, *, content: bytes, query: Any) -> None:
    if not (found := self.at(name, revision)):
        return
    sha, tree = found
    if path not in tree:
        self.answer({}, code=404, headers={"X-Error-Code": "EntryNotFound", "X-Repo-Commit": sha})
        return
    file, about = tree[path], described(path, tree[path])
    etag = about["lfs"]["oid"] if "lfs" in about else about["oid"]
    headers = {"ETag": f'"{etag}"', "X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
    span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
    if span:
        first, last = int(span[1]), min(int(span[2] or len(file) - 1), len(file) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(file)}"
        self.answer(file[first : last + 1], code=206, headers=headers)
        return
    self.answer(file, headers=headers)


class Server(ThreadingHTTPServer):
    """A server that does not mind clients that hang up: their errors would be printed among the program's."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(hub: Hub | None = None) -> Iterator[Hub]:
    """Serve on loopback until the block ends."""
    hub = hub or Hub()
    handler = type("Bound", (Handler,), {"hub": hub})
    server = Server(("127.0.0.1", 0), handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def at_hand(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[Hub]:
    """Serve a Hub that this process talks to, and whose token it has."""
    library = pytest.importorskip("huggingface_hub.constants")
    # the storage protocol of the real Hub is not spoken here: large files come by Git LFS
    monkeypatch.setattr(library, "HF_HUB_DISABLE_XET", True, raising=False)
    with serving() as state:
        monkeypatch.setenv("HF_ENDPOINT", state.address)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield state

"""Fetching a dataset's copy on the Hub, from a server on this machine that speaks as the Hub does."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.wordnet_splits.command import environment

pytest.importorskip("huggingface_hub")

REPO = "uoft-cs/cifar100"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILE = "cifar100/test-00000-of-00001.parquet"


def shard() -> bytes:
    """A Parquet file of the columns that the Hub's copy has, of one image."""
    out = io.BytesIO()
    Image.effect_noise((32, 32), 60).convert("RGB").save(out, "PNG")
    table = pa.table(
        {
            "img": pa.array([{"bytes": out.getvalue(), "path": None}]),
            "fine_label": pa.array([3], pa.int64()),
            "coarse_label": pa.array([0], pa.int64()),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


class Hub:
    """The few addresses of the Hub that fetching asks; it counts the files it sends."""

    def __init__(self) -> None:
        self.files = {FILE: shard(), "README.md": b"not wanted"}
        self.described = dict(self.files)
        self.sent: list[str] = []
        self.gated = False

    def tree(self) -> list[dict[str, Any]]:
        return [
            {
                "type": "file",
                "path": path,
                "oid": hashlib.sha1(content).hexdigest(),
                "size": len(content),
                "lfs": {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130},
            }
            for path, content in self.described.items()
        ]


@pytest.fixture
def hub() -> Iterator[tuple[Hub, str]]:
    state = Hub()

    class Handler(BaseHTTPRequestHandler):
        def answer(self, body: bytes, *, code: int = 200, **headers: str) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            name = path.rpartition(f"/resolve/{COMMIT}/")[2]
            if state.gated:
                self.answer(b"", code=403, X_Error_Code="GatedRepo", X_Error_Message="Access is restricted")
            elif path.startswith(f"/api/datasets/{REPO}/tree/"):
                self.answer(json.dumps(state.tree()).encode(), Content_Type="application/json")
            elif path.startswith(f"/api/datasets/{REPO}"):
                body = {"id": REPO, "sha": COMMIT, "siblings": []}
                self.answer(json.dumps(body).encode(), Content_Type="application/json")
            elif name in state.files:
                if self.command == "GET":
                    state.sent.append(name)
                etag = f'"{hashlib.sha256(state.files[name]).hexdigest()}"'
                self.answer(state.files[name], ETag=etag, X_Repo_Commit=COMMIT)
            else:
                self.answer(b"", code=404)

        do_HEAD = do_GET

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield state, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def fetch(folder: Path, address: str) -> subprocess.CompletedProcess[str]:
    """Fetch in a process of its own: huggingface_hub reads its variables when it is imported."""
    words = ["sources", "fetch", "cifar100", "--hub", "--out", str(folder / "root"), "--json"]
    more = {"HF_ENDPOINT": address, "HF_HOME": str(folder / "hf"), "HF_HUB_DISABLE_XET": "1"}
    return subprocess.run(
        [sys.executable, "-m", "wordnet_splits.cli.main", *words],
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_hubs_copy_is_fetched_once(hub: tuple[Hub, str], tmp_path: Path) -> None:
    state, address = hub
    done = fetch(tmp_path, address)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["origin"] == f"datasets/{REPO}@{COMMIT}"
    assert found["files"] == [{"file": FILE, "size": len(state.files[FILE]), "received": True}]
    assert (tmp_path / "root" / FILE).read_bytes() == state.files[FILE]
    assert json.loads(fetch(tmp_path, address).stdout)["files"][0]["received"] is False
    assert state.sent == [FILE]


def test_another_content_than_the_hub_describes_is_refused(hub: tuple[Hub, str], tmp_path: Path) -> None:
    state, address = hub
    state.files[FILE] = state.files[FILE][:-1] + b"?"
    done = fetch(tmp_path, address)
    assert (done.returncode, json.loads(done.stdout)["error"]["kind"]) == (2, "hub")
    assert "not the file that the Hub describes" in done.stderr
    assert not (tmp_path / "root" / FILE).exists()


def test_a_gated_dataset_says_what_to_do(hub: tuple[Hub, str], tmp_path: Path) -> None:
    state, address = hub
    state.gated = True
    done = fetch(tmp_path, address)
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["what"].startswith("the Hub refuses: ")
    assert "accept its terms" in error["hint"]


def test_no_hub_at_all_is_one_line(tmp_path: Path) -> None:
    done = fetch(tmp_path, "http://127.0.0.1:1")
    assert done.returncode == 2
    assert "the Hub cannot be reached: " in done.stderr
    assert "Traceback" not in done.stderr

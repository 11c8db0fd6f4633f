"""The pytest plugin of a peer's run: installs the adapter before its tests are imported."""

from __future__ import annotations

import os
from importlib import import_module

from tools.peers.statements import ADAPTER

import_module(f"tools.peers.adapters.{os.environ[ADAPTER]}").install()

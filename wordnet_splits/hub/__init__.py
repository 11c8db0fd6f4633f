"""Reading benchmarks from dataset repositories of the Hugging Face Hub."""

from __future__ import annotations

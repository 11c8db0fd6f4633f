"""Benchmarks as a dataset repository of the Hugging Face Hub: its card, publishing, pulling."""

from __future__ import annotations

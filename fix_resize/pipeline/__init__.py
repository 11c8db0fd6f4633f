"""Resize whole sets of images: drawn, sharded, resumable, checked."""

from __future__ import annotations

from fix_resize.pipeline.pipeline import Built, PipelineSettings, build

__all__ = ["Built", "PipelineSettings", "build"]

"""Build sets of resized images, in shards that can be resumed, and verify them."""

from __future__ import annotations

from fix_resize.pipeline.pipeline import BuildResult, PipelineSettings, build

__all__ = ["BuildResult", "PipelineSettings", "build"]

"""Entries of the leaderboard: results that recompute, with fingerprints and the commands that repeat them."""

from __future__ import annotations

from wordnet_splits.hub.entries import LeaderboardEntry, read_entry

from ..results.entries import CheckedEntries, check_entries
from .submission import submit

__all__ = ["CheckedEntries", "LeaderboardEntry", "check_entries", "read_entry", "submit"]

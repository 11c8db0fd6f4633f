"""Entries of the leaderboard: results that recompute, with fingerprints and the commands that repeat them."""

from __future__ import annotations

from wordnet_splits.hub.entries import LeaderboardEntry, read_entry

from .submission import CheckedEntries, check_entries, submit

__all__ = ["CheckedEntries", "LeaderboardEntry", "check_entries", "read_entry", "submit"]

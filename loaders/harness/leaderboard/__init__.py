"""Entries of the leaderboard: results that recompute, with fingerprints and the commands that repeat them."""

from __future__ import annotations

from .check import CheckedEntries, check_entries
from .entry import LeaderboardEntry, read_entry
from .submit import submit

__all__ = ["CheckedEntries", "LeaderboardEntry", "check_entries", "read_entry", "submit"]

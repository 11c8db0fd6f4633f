"""Names to synsets: all names of a dataset read together, each choice with its confidence and its reason."""

from __future__ import annotations

from wordnet_splits.propose.proposals import Proposal, Proposals, propose_synsets
from wordnet_splits.propose.reasons import Candidate

__all__ = ["Candidate", "Proposal", "Proposals", "propose_synsets"]

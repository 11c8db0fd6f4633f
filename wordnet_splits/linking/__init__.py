"""Names to synsets: all names of a dataset read together, each choice with its confidence and its reason."""

from __future__ import annotations

from wordnet_splits.linking.proposals import Proposal as Proposal
from wordnet_splits.linking.proposals import Proposals as Proposals
from wordnet_splits.linking.proposals import propose_synsets as propose_synsets
from wordnet_splits.linking.reasons import Candidate as Candidate

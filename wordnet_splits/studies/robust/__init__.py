"""Whether the role of a class survives another sense, measure, hierarchy or WordNet."""

"""The WordNet noun graph, and distances in it."""

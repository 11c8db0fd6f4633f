"""``make peers``: other projects' own tests, run on our functions through adapters of ours."""

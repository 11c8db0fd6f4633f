"""One module a peer: ``install`` puts our functions where the peer's tests look for theirs."""

"""Published figures compared with this package's figures."""

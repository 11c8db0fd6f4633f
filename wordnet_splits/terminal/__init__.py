"""What the three command lines share: options, output, and how a command is run."""

"""The `mercury` command: `main` finds the subcommand; each is imported when it is asked for."""

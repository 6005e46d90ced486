"""`mercury trace`: reads, checks, analyses, shows and converts traces."""

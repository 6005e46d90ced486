"""What the analysis found, as pictures and as one page of HTML."""

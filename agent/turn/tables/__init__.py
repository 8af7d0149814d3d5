"""What is computed over all rows of a table: counts, sums, lists, and which is the most."""

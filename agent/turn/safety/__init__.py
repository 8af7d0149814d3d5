"""What a person must avoid: read from their statements, kept out of what is recommended, and warned of."""

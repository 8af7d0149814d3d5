"""What happens inside a process that a test starts, or inside the tests themselves."""

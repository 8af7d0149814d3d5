"""Reports: where runs differ, on which turns and why, as one page that needs no network."""

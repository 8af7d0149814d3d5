"""Fuzzing: real files, broken at random, given to the commands. Each must end in a clean error or a whole result.

`tests/test_fuzz.py` tries some dozens, in `make soak` 20,000; a case is known by its number.
"""

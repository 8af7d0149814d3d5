"""Fuzzing: real files, broken at random, given to the commands. Each must end in a clean error or a whole result.

`python -m tests.fuzz --cases 20000` tries as many; `python -m tests.fuzz --seed 1234` tries that one again.
"""

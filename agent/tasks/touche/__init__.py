"""Touché 2020 and 2021, task 1: arguments for controversial questions."""

"""The benchmarks behind the tables of results: the default beside what it is without each of its parts."""

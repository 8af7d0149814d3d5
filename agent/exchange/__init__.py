"""Forms in which other tools hand on runs, nuggets and questions: one module each, opened by a record as it stands."""

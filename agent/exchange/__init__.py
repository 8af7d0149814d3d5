"""Forms in which other tools hand on runs, nuggets and questions: a module each, opened by a record in its real shape."""

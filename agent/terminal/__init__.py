"""What the command line shows: messages, progress and reports; and what `convagent doctor` finds."""

"""The documents as tools of other programs, over the Model Context Protocol: on stdin and stdout, or on a port."""

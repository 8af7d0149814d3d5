"""What is taught to the small models: each part is one command that writes one file, which the package ships."""

"""Reading in a child process: whatever a file does to its reader, the program that reads the folder goes on."""

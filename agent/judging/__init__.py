"""Answers judged by what they should say: nuggets and questions, by models, by rough measures, or as a file has it."""

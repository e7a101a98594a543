"""Candidates that try to be judged right without being right: one file for each attack, and a registry of them."""

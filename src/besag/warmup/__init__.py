"""Kernels ahead of questions: the usual ones, asked of small models on all cores, compile what they need."""

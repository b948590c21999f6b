"""Kernels ahead of questions: the usual ones, asked of small models on all cores, so that what they need is compiled."""

"""Compiled kernels: small scalar functions, composed into one loop and compiled by numba.

``pieces`` and ``losses`` hold the functions, ``template`` the loop, ``compose`` puts them together and caches the
compiled code on disk. Nothing here checks its arguments: ``forel.learner.linear`` does, before a kernel runs.
"""

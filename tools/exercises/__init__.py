"""The exercises, made of their solutions.

    python -m tools.exercises

brings solutions/*.ipynb into their stored form, and writes what follows from them:
exercises/*.ipynb, and the stubs in ringlab/grade/stubs.
"""

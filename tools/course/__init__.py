"""The frame of the course: its manifest, the tables made of it, and the ledger of claims.

    python -m tools.course

rewrites what is generated: the table at the head of each lesson, and notebooks/claims.md.
"""

"""Running a learner's answer where it can do no harm, and reporting what it did.

A worker has imported everything once, and forks a process for each answer (`runner`). Around it
stand, from the outside in: the watch of the worker over time, memory, processes, output and
files (`watch`); the system's limits (`limits`) and Landlock (`landlock`), which keeps it from
files, network and processes that are not its own; and inside it a ward that refuses what only a
cheat asks for (`ward`). What comes back is plain data, judged in another process.

``docs/grading.md`` says what this protects against, and what not.
"""

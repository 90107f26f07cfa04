# attacks: rotation_table
# tries: loading the judging side again after it was withdrawn
import importlib
import sys


def rotation_table(size):
    for name in [name for name in sys.modules if name.startswith("ringlab.grade")]:
        del sys.modules[name]
    exercise = importlib.import_module("ringlab.grade.exercises.lesson_03.rotation_table")
    return exercise._table(size, exercise._owner)

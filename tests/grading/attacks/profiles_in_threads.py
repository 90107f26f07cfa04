# attacks: rotation_table
# tries: a profile function in every thread
import sys
import threading


def rotation_table(size):
    threading.setprofile(lambda *_: None)
    sys.setprofile(lambda *_: None)
    return [[(rank - step) % size for rank in range(size)] for step in range(size)]

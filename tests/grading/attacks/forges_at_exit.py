# attacks: rotation_table
# tries: having the last word when the process ends
import atexit
import os
import sys


class Last:
    def __del__(self):
        os.write(200, b"\0\0\0\0\0\0\0\4done")


atexit.register(lambda: os.write(200, b"\0\0\0\0\0\0\0\4done"))
keep = Last()


def rotation_table(size):
    sys.exit(0)

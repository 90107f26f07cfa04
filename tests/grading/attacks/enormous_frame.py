# attacks: rotation_table
# tries: announcing a result of 2**60 bytes
import os


def rotation_table(size):
    os.write(200, (1 << 60).to_bytes(8, "big") + b"x" * 1000)
    return []

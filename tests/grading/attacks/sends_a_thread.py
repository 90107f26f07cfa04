# attacks: rotation_table
# tries: letting a thread of Python's own search the memory
import gc
from concurrent.futures import ThreadPoolExecutor

found = ThreadPoolExecutor(1).submit(gc.get_objects).result()


def rotation_table(size):
    return [[(rank - step) % size for rank in range(size)] for step in range(size)]

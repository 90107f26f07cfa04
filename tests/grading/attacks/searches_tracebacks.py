# attacks: rotation_table
# tries: the frames of its callers, by way of an exception
def rotation_table(size):
    try:
        raise ValueError
    except ValueError as error:
        frame = error.__traceback__.tb_frame
    while frame is not None:
        for value in frame.f_locals.values():
            if hasattr(value, "checks"):
                return value.checks[0].look(None, None)
        frame = frame.f_back
    return [[(rank - step) % size for rank in range(size)] for step in range(size)]

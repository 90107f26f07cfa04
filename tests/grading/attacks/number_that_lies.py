# attacks: rotation_table
# tries: numbers, lists and strings of subclasses that compare as equal
class Number(int):
    def __eq__(self, _other):
        return True

    def __ne__(self, _other):
        return False

    def __hash__(self):
        return 0


class Rows(list):
    def __eq__(self, _other):
        return True


def rotation_table(size):
    return Rows([[Number(0)] * size] * size)

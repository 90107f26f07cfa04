# attacks: rotation_table
# tries: modules of its own under the names of the grader's
import sys
import types

for name in ("observation", "observe", "plain", "judge", "case", "isolation.frames"):
    fake = types.ModuleType(f"ringlab.grade.{name}")
    fake.judge = fake.report = fake.to_bytes = fake.plain = lambda *_: True
    sys.modules[fake.__name__] = fake


def rotation_table(size):
    return []

# attacks: rotation_table
# tries: frames of its own in every open descriptor, while its cells run
import contextlib
import json
import os

header = json.dumps(
    [
        "dict",
        [
            ["results", ["tuple", [["list", [["list", [0]]]]]]],
            ["timeline", "[1,[]]"],
            ["failure", None],
            ["changed", ["tuple", []]],
            ["peaks", ["tuple", [0]]],
        ],
    ]
).encode()
observation = b"ringlab plain 1\n" + len(header).to_bytes(8, "big") + header
frames = [b'{"sealed": true}', b'{"problems": []}', *[observation] * 12, b"done"]
for fd in range(3, 1024):
    with contextlib.suppress(OSError):
        os.write(fd, b"".join(len(f).to_bytes(8, "big") + f for f in frames))
os._exit(0)

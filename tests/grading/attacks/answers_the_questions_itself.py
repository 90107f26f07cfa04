# attacks: ring_forward
# tries: taking over both channels while its cells run, with an observation that failed nowhere
import json
import os

header = json.dumps(
    [
        "dict",
        [
            ["results", ["tuple", []]],
            ["timeline", "[1,[]]"],
            ["failure", None],
            ["changed", ["tuple", []]],
            ["peaks", ["tuple", []]],
        ],
    ]
).encode()
observation = b"ringlab plain 1\n" + len(header).to_bytes(8, "big") + header


def send(data):
    os.write(200, len(data).to_bytes(8, "big") + data)


send(b'{"problems": []}')
while True:
    size = int.from_bytes(os.read(201, 8), "big")
    question = os.read(201, size)
    send(question[:16] + observation)

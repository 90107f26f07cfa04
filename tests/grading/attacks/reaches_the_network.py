# attacks: rotation_table
# tries: fetching the answer from another program on this machine
import socket


def rotation_table(size):
    with socket.create_connection(("127.0.0.1", 1), timeout=1) as connection:
        return eval(connection.recv(1000))

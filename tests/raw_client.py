"""A raw client: keeps sessions in Redis and their deadlines with forewarn, with nothing but a socket.

Usage: raw_client.py PORT NAMESPACE SHARDS save ID_HEX EXPIRES_AT_MS [PAYLOAD]
       raw_client.py PORT NAMESPACE SHARDS log_out ID_HEX
"""

import socket
import sys
import zlib


class Server:
    """Speaks RESP2, as far as it is needed here."""

    def __init__(self, port):
        self.stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb")

    def call(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.stream.write(b"*%d\r\n" % len(words))
        for word in words:
            self.stream.write(b"$%d\r\n%s\r\n" % (len(word), word))
        self.stream.flush()
        return self.reply()

    def reply(self):
        line = self.stream.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise SystemExit("the server refuses: " + rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return self.stream.read(int(rest) + 2)[:-2] if rest != b"-1" else None
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return rest

    def transaction(self, *commands):
        self.call("MULTI")
        for command in commands:
            self.call(*command)
        return self.call("EXEC")


def main(port, namespace, shards, verb, id_hex, *rest):
    server, id = Server(int(port)), bytes.fromhex(id_hex)
    tag = "{fw:%s:%d}" % (namespace, zlib.crc32(id) % int(shards))
    if verb == "save":
        expires_at, *payload = rest
        commands = [("SET", b"data:" + id, "some data", "PXAT", expires_at), ("ZADD", tag + ":exp", expires_at, id)]
        commands += [("HSET", tag + ":payload", id, bytes) for bytes in payload]
    else:
        commands = [("DEL", b"data:" + id), ("ZREM", tag + ":exp", id), ("HDEL", tag + ":payload", id)]
    print(server.transaction(*commands))


main(*sys.argv[1:])

class Connection:
    def __init__(self, host, port, timeout=10.0):
        self.host = host
        self.port = port
        ▮self.timeout = timeout▮
        self.socket = None

    def open(self):
        self.socket = socket.create_connection((self.host, self.port), self.timeout)

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None

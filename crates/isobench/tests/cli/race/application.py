"""A shop with a pool of connections and a heartbeat. It knows nothing of isobench."""
import json, os, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
import psycopg

pool = Queue()
for _ in range(int(os.environ.get("POOL", "4"))):
    pool.put(psycopg.connect())

def take_loosely(pause):
    """Reads and writes without a transaction, after a pause."""
    threading.Event().wait(pause)
    with psycopg.connect(autocommit=True) as connection:
        left = connection.execute("SELECT stock FROM item WHERE id = 1").fetchone()[0]
        connection.execute("UPDATE item SET stock = %s WHERE id = 1", (left - 1,))

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def answer(self, status, body):
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
    def do_GET(self): self.answer(200, {"ok": True})
    def do_POST(self):
        if self.path == "/loose":
            take_loosely(0)
            return self.answer(200, {"ok": True})
        if self.path == "/later":
            threading.Thread(target=take_loosely, args=(0.06,)).start()
            return self.answer(202, {"accepted": True})
        if self.path == "/reserved":
            # A lock of the session, on a connection that does nothing else.
            with psycopg.connect(autocommit=True) as lock:
                lock.execute("SELECT pg_advisory_lock(7)")
                take_loosely(0)
                lock.execute("SELECT pg_advisory_unlock(7)")
            return self.answer(200, {"ok": True})
        connection = pool.get()
        try:
            with connection.transaction():
                if self.path == "/order":
                    left = connection.execute("SELECT stock FROM item WHERE id = 1").fetchone()[0]
                    if left < 1: return self.answer(409, {"error": "sold out"})
                    connection.execute("UPDATE item SET stock = %s WHERE id = 1", (left - 1,))
                    order = connection.execute("INSERT INTO orders(item, at) VALUES (1, now()) RETURNING id").fetchone()[0]
                else:
                    done = connection.execute("UPDATE item SET stock = stock - 1 WHERE id = 1 AND stock > 0")
                    order, left = 0, done.rowcount
            self.answer(200, {"id": order, "left": left - 1})
        except psycopg.Error as error:
            self.answer(500, {"error": error.sqlstate})
        finally:
            pool.put(connection)

def beat():
    with psycopg.connect(autocommit=True) as connection:
        while True:
            connection.execute("INSERT INTO heartbeat VALUES (now())")
            threading.Event().wait(0.2)

threading.Thread(target=beat, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()

"""Readers of miniflux: feeds are added, refreshed, read and starred, through its API.

    traffic.py MINIFLUX READERS

starts the program MINIFLUX on the database that DATABASE_URL names, and ends it.
"""
import base64
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

ADMIN = ("admin", "of no secret")
ENTRIES = 5
issue = 0


class Feeds(http.server.BaseHTTPRequestHandler):
    """A feed at each path, with new entries in each issue."""

    def do_GET(self):
        item = "<item><title>{0}</title><link>http://shop.test{1}{0}</link><guid>{1}{0}</guid></item>"
        items = "".join(item.format(number, self.path) for number in range(issue * ENTRIES))
        about = f"<title>{self.path}</title><link>http://shop.test</link>"
        text = f"<rss version='2.0'><channel>{about}{items}</channel></rss>"
        self.send_response(200)
        self.send_header("Content-Type", "application/rss+xml")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def request(base, user, method, path, data=None):
    body = None if data is None else json.dumps(data).encode()
    asked = urllib.request.Request(base + path, data=body, method=method)
    asked.add_header("Authorization", "Basic " + base64.b64encode(":".join(user).encode()).decode())
    with urllib.request.urlopen(asked) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def wait_for(base, program):
    while program.poll() is None:
        try:
            urllib.request.urlopen(base + "/healthcheck").close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("miniflux has ended")


def read(base, feeds, number):
    """A new reader with two feeds, over three issues of them."""
    global issue
    user = (f"reader{number}", "of no secret")
    request(base, ADMIN, "POST", "/v1/users", {"username": user[0], "password": user[1], "is_admin": False})
    category = request(base, user, "POST", "/v1/categories", {"title": "news"})["id"]
    issue = 1
    mine = [
        request(base, user, "POST", "/v1/feeds", {"feed_url": f"{feeds}/{number}/{path}/", "category_id": category})
        for path in ("a", "b")
    ]
    for issue in (2, 3):
        for feed in mine:
            request(base, user, "PUT", f"/v1/feeds/{feed['feed_id']}/refresh")
        unread = request(base, user, "GET", "/v1/entries?status=unread&limit=4")["entries"]
        request(base, user, "PUT", f"/v1/entries/{unread[0]['id']}/bookmark")
        seen = [entry["id"] for entry in unread]
        request(base, user, "PUT", "/v1/entries", {"entry_ids": seen, "status": "read"})
    request(base, user, "PUT", f"/v1/feeds/{mine[0]['feed_id']}/mark-all-as-read")
    request(base, user, "GET", "/v1/feeds/counters")


def main():
    miniflux, readers = sys.argv[1], int(sys.argv[2])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Feeds)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    feeds = f"http://127.0.0.1:{server.server_address[1]}"
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    environment = dict(
        os.environ, LISTEN_ADDR=f"127.0.0.1:{port}", RUN_MIGRATIONS="1", CREATE_ADMIN="1", ADMIN_USERNAME=ADMIN[0],
        ADMIN_PASSWORD=ADMIN[1], DISABLE_SCHEDULER_SERVICE="1", FETCHER_ALLOW_PRIVATE_NETWORKS="1",
        LOG_LEVEL="error")
    program = subprocess.Popen([miniflux], env=environment)
    try:
        wait_for(base, program)
        for number in range(readers):
            try:
                read(base, feeds, number)
            except urllib.error.HTTPError as error:
                sys.exit(f"{error.url}: {error.code} {error.read().decode()}")
    finally:
        program.terminate()
        program.wait()
    print(f"{readers} readers")


if __name__ == "__main__":
    main()

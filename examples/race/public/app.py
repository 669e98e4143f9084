"""Races of public applications in Python, rebuilt small, with their fixes, and requests that are right (races.txt):
PORT=8000 python app.py
"""
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

import psycopg
from psycopg import IsolationLevel, errors

pool = Queue()
for _ in range(3):
    pool.put(psycopg.connect(autocommit=True))
paths = {}


class Refused(Exception):
    """Rolls the transaction back; the request is answered with this status."""


def path(name):
    return lambda run: paths.setdefault("/" + name, run)


def one(connection, sql, *values):
    row = connection.execute(sql, values).fetchone()
    return row and row[0]


def in_transaction(run):
    def whole(connection, *arguments):
        with connection.transaction():
            return run(connection, *arguments)

    return whole


# pass-culture/pass-culture-api #2458: the booking is read before its stock is locked; it is read again afterwards.
def cancel(reads_again):
    @in_transaction
    def run(connection):
        read = "SELECT cancelled FROM booking WHERE id = 7"
        if one(connection, read):
            raise Refused(409)
        one(connection, "SELECT booked FROM stock WHERE id = 1 FOR UPDATE")
        if reads_again and one(connection, read):
            raise Refused(409)
        connection.execute("UPDATE booking SET cancelled = true WHERE id = 7")
        connection.execute("UPDATE stock SET booked = booked - 2 WHERE id = 1")
        return "cancelled"

    return run


path("cancel")(cancel(False))
path("cancel-fixed")(cancel(True))


# emfcamp/Website #638: capacity is returned twice; the purchase is locked first.
def refund(lock):
    @in_transaction
    def run(connection):
        if one(connection, "SELECT state FROM purchase WHERE id = 79" + lock) != "reserved":
            raise Refused(409)
        connection.execute("UPDATE purchase SET state = 'cancelled' WHERE id = 79")
        connection.execute("UPDATE tier SET capacity = capacity + 1 WHERE id = 1")
        return "cancelled"

    return run


path("refund")(refund(""))
path("refund-fixed")(refund(" FOR UPDATE"))


# frappe/frappe #25170: a draft is deleted while it is submitted; who comes later fails at once.
def change(sql, lock):
    @in_transaction
    def run(connection):
        try:
            status = one(connection, "SELECT docstatus FROM document WHERE name = 'INV-1'" + lock)
        except errors.LockNotAvailable:
            raise Refused(409)
        if status != 0:
            raise Refused(404 if status is None else 409)
        connection.execute(sql)
        return "done"

    return run


submit, delete = "UPDATE document SET docstatus = 1 WHERE name = 'INV-1'", "DELETE FROM document WHERE name = 'INV-1'"
path("submit")(change(submit, ""))
path("delete")(change(delete, ""))
path("submit-fixed")(change(submit, " FOR UPDATE NOWAIT"))
path("delete-fixed")(change(delete, " FOR UPDATE NOWAIT"))


# vtmocanu/uzi #106: the count is of the time before the lock was waited for; the lock comes in a statement before it.
def submit_input(locks_first):
    @in_transaction
    def run(connection):
        if locks_first:
            one(connection, "SELECT id FROM runs WHERE id = 1 FOR UPDATE")
        done = connection.execute(
            "WITH locked AS (SELECT id FROM runs WHERE id = 1 FOR UPDATE) INSERT INTO run_user_inputs (run_id, body) "
            "SELECT id, 'y' FROM locked WHERE (SELECT count(*) FROM run_user_inputs WHERE run_id = locked.id) < 3"
        )
        if done.rowcount == 0:
            raise Refused(429)
        return "stored"

    return run


path("input")(submit_input(False))
path("input-fixed")(submit_input(True))


# Requests that are right.
@path("safe-lock")
@in_transaction
def transfer(connection):
    for account in (1, 2):
        one(connection, "SELECT balance FROM account WHERE id = %s FOR UPDATE", account)
    left = one(connection, "SELECT balance FROM account WHERE id = 1") - 10
    connection.execute("UPDATE account SET balance = %s WHERE id = 1", (left,))
    connection.execute("UPDATE account SET balance = balance + 10 WHERE id = 2")
    return left


@path("safe-optimistic")
def optimistic(connection):
    while True:
        balance, version = connection.execute("SELECT balance, version FROM account WHERE id = 1").fetchone()
        done = connection.execute(
            "UPDATE account SET balance = %s, version = version + 1 WHERE id = 1 AND version = %s",
            (balance - 10, version),
        )
        if done.rowcount == 1:
            return balance - 10


@path("safe-idempotent")
@in_transaction
def pay(connection):
    new = connection.execute("INSERT INTO payment VALUES ('k1', 10) ON CONFLICT DO NOTHING")
    if new.rowcount == 1:
        connection.execute("UPDATE account SET balance = balance - 10 WHERE id = 1")
    return one(connection, "SELECT amount FROM payment WHERE key = 'k1'")


@path("safe-unique")
def register(connection):
    try:
        with connection.transaction():
            if one(connection, "SELECT 1 FROM payment WHERE key = 'k2'"):
                raise Refused(409)
            connection.execute("INSERT INTO payment VALUES ('k2', 10)")
        return "created"
    except errors.UniqueViolation:
        raise Refused(409)


@path("safe-skip-locked")
@in_transaction
def work(connection):
    job = one(connection, "SELECT id FROM job WHERE done_by IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED")
    connection.execute("UPDATE job SET done_by = 'a worker' WHERE id = %s", (job,))
    return job


@path("safe-advisory")
@in_transaction
def next_number(connection):
    connection.execute("SELECT pg_advisory_xact_lock(41)")
    last = one(connection, "SELECT last FROM number WHERE name = 'invoice'") + 1
    connection.execute("UPDATE number SET last = %s WHERE name = 'invoice'", (last,))
    return last


@path("safe-condition")
@in_transaction
def take(connection):
    done = connection.execute("UPDATE account SET balance = balance - 60 WHERE id = 1 AND balance >= 60")
    if done.rowcount == 0:
        raise Refused(409)
    connection.execute("UPDATE account SET balance = balance + 60 WHERE id = 2")
    return "taken"


@path("safe-upsert")
@in_transaction
def visit(connection):
    sql = "INSERT INTO visits VALUES ('2026-11-29', 1) ON CONFLICT (day) DO UPDATE SET number = visits.number + 1 RETURNING number"
    number = one(connection, sql)
    connection.execute("UPDATE number SET last = last + 1 WHERE name = 'invoice'")
    return number


@path("safe-table-lock")
@in_transaction
def leave_alice(connection):
    connection.execute("LOCK TABLE on_call IN SHARE ROW EXCLUSIVE MODE")
    if one(connection, "SELECT count(*) FROM on_call WHERE working") < 2:
        raise Refused(409)
    connection.execute("UPDATE on_call SET working = false WHERE doctor = 'alice'")
    return "free"


@path("safe-retry")
def leave(connection):
    connection.isolation_level = IsolationLevel.SERIALIZABLE
    try:
        while True:
            try:
                with connection.transaction():
                    if one(connection, "SELECT count(*) FROM on_call WHERE working") < 2:
                        raise Refused(409)
                    doctor = one(connection, "SELECT min(doctor) FROM on_call WHERE working")
                    connection.execute("UPDATE on_call SET working = false WHERE doctor = %s", (doctor,))
                return doctor
            except errors.SerializationFailure:
                pass
    finally:
        connection.isolation_level = None


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        connection = pool.get()
        try:
            status, body = 200, paths[self.path](connection)
        except Refused as refused:
            status, body = refused.args[0], "refused"
        except Exception as error:
            status, body = 500, str(error)
        finally:
            pool.put(connection)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()

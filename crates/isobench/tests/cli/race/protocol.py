"""Does what drivers do: COPY both ways, a pipeline, a cursor, LISTEN, a cancelled statement."""
import psycopg

with psycopg.connect() as connection:
    connection.execute("LISTEN changes")
    connection.execute("NOTIFY changes, 'hello'")
    connection.commit()
    print([note.payload for note in connection.notifies(timeout=5, stop_after=1)])
    with connection.cursor().copy("COPY orders (item, at) FROM STDIN") as copy:
        for _ in range(20_000):
            copy.write_row((1, "2020-01-01 00:00:00+00"))
    connection.commit()
    with connection.cursor().copy("COPY (SELECT item FROM orders) TO STDOUT") as copy:
        print(sum(len(bytes(data)) for data in copy))
    connection.commit()
    with connection.pipeline() as pipeline:
        read = connection.execute("SELECT stock FROM item WHERE id = %s", (1,))
        written = connection.execute("UPDATE item SET stock = stock - 1 WHERE id = %s", (1,))
        pipeline.sync()
        print(read.fetchone(), written.rowcount)
    connection.commit()
    cursor = connection.cursor("named")
    cursor.execute("SELECT generate_series(1, 100)")
    print(len(cursor.fetchall()))
    connection.commit()
with psycopg.connect() as connection:
    try:
        connection.execute("SET statement_timeout = 100")
        connection.execute("SELECT pg_sleep(60)")
    except psycopg.errors.QueryCanceled as error:
        print(error.sqlstate)

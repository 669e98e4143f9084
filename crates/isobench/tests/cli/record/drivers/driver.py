"""What an application does, by the driver that the first argument names. Prints what the driver returned."""

import asyncio
import datetime
import decimal
import sys
import uuid

ID = uuid.UUID(int=7)
DAY = datetime.date(2026, 11, 26)
VALUES = (7, "Ada's", decimal.Decimal("12.50"), ID, DAY, True, 1.5, b"\x00\xff")
INSERT = "INSERT INTO item (id, name, price, code, day, ok, weight, raw) VALUES ({})"
SELECT = "SELECT id, name, price, code, day, ok, weight, raw FROM item WHERE id = {} AND name = {}"


def show(*what):
    shown = [bytes(one) if isinstance(one, memoryview) else str(one) if isinstance(one, uuid.UUID) else one for one in what]
    print(repr(shown))


def dbapi(connection, error, code, mark):
    """The drivers of Python's database API; mark makes a placeholder from its number."""
    cursor = connection.cursor()
    places = [mark(n) for n in range(1, 9)]
    insert = VALUES if mark(1) != "%s" or code != "pgcode" else (*VALUES[:3], str(ID), *VALUES[4:])
    cursor.execute(INSERT.format(", ".join(places)), insert)
    connection.commit()
    for _ in range(7):  # Some prepare a statement after a few executions.
        cursor.execute(SELECT.format(mark(1), mark(2)), VALUES[:2])
        show(*cursor.fetchone())
    connection.rollback()
    cursor.execute("UPDATE item SET price = price + {}".format(mark(1)), (1,))
    show(cursor.rowcount)
    connection.rollback()
    try:
        cursor.execute(INSERT.format(", ".join(places)), insert)
    except error as duplicate:
        got = duplicate.args[0]["C"] if code is None else getattr(duplicate, code)
        show(got)
    connection.rollback()
    cursor.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    cursor.execute("SELECT price FROM item")
    show(*cursor.fetchall()[0])
    connection.commit()
    connection.close()


def psycopg():
    import psycopg

    dbapi(psycopg.connect(), psycopg.Error, "sqlstate", lambda _: "%s")


def psycopg2():
    import psycopg2

    dbapi(psycopg2.connect(""), psycopg2.Error, "pgcode", lambda _: "%s")


def pg8000():
    import os

    import pg8000.dbapi

    env = os.environ
    connection = pg8000.dbapi.connect(
        user=env["PGUSER"], host=env["PGHOST"], port=int(env["PGPORT"]), database=env["PGDATABASE"], password=env["PGPASSWORD"]
    )
    dbapi(connection, pg8000.dbapi.Error, None, lambda _: "%s")


def sqlalchemy():
    import sqlalchemy as sa

    engine = sa.create_engine("postgresql+psycopg://")
    item = sa.Table("item", sa.MetaData(), autoload_with=engine)
    with engine.begin() as connection:
        names = [column.name for column in item.columns]
        connection.execute(item.insert().values(dict(zip(names, VALUES))))
    with engine.connect() as connection:
        show(*connection.execute(sa.select(item).where(item.c.id == 7, item.c.name == "Ada's")).one())
        connection.rollback()
        show(connection.execute(item.update().values(price=item.c.price + 1)).rowcount)
        connection.rollback()
        try:
            connection.execute(item.insert().values(dict(zip(names, VALUES))))
        except sa.exc.IntegrityError as duplicate:
            show(duplicate.orig.sqlstate)
        connection.rollback()
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as connection:
        show(*connection.execute(sa.select(item.c.price)).one())
    engine.dispose()


async def of_asyncpg():
    import asyncpg

    connection = await asyncpg.connect()
    places = ", ".join(f"${n}" for n in range(1, 9))
    await connection.execute(INSERT.format(places), *VALUES)
    for _ in range(3):
        show(*(await connection.fetchrow(SELECT.format("$1", "$2"), *VALUES[:2])))
    transaction = connection.transaction()
    await transaction.start()
    show(await connection.execute("UPDATE item SET price = price + $1", decimal.Decimal(1)))
    await transaction.rollback()
    try:
        await connection.execute(INSERT.format(places), *VALUES)
    except asyncpg.PostgresError as duplicate:
        show(duplicate.sqlstate)
    async with connection.transaction(isolation="serializable"):
        show(*(await connection.fetchrow("SELECT price FROM item")))
    async with connection.transaction():
        rows = [row["n"] async for row in connection.cursor("SELECT n FROM generate_series(1, 120) n")]
        show(sum(rows))
    await connection.copy_records_to_table("copied", records=[(1, "a"), (2, "b")])
    show(await connection.fetchval("SELECT count(*) FROM copied WHERE id = ANY($1::int[])", [1, 2]))
    await connection.close()


def asyncpg():
    asyncio.run(of_asyncpg())


globals()[sys.argv[1]]()

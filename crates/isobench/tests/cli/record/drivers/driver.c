// What an application does, by libpq. Prints what the driver returned.
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

static PGconn *connection;

// Ends with the last error.
static void fail(void) {
    fputs(PQerrorMessage(connection), stderr);
    exit(1);
}

// Prints a result: its rows, or how many it affected, or its error.
static void show(PGresult *result) {
    switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
    case PGRES_SINGLE_TUPLE:
        for (int row = 0; row < PQntuples(result); row++) {
            for (int column = 0; column < PQnfields(result); column++) printf("%s|", PQgetvalue(result, row, column));
            puts("");
        }
        break;
    case PGRES_COMMAND_OK:
        printf("%s %s\n", PQcmdStatus(result), PQcmdTuples(result));
        break;
    case PGRES_FATAL_ERROR:
        puts(PQresultErrorField(result, PG_DIAG_SQLSTATE));
        break;
    default:
        puts(PQresStatus(PQresultStatus(result)));
    }
    PQclear(result);
}

// Shows the results until there is none.
static void show_all(void) {
    for (PGresult *result; (result = PQgetResult(connection)) != NULL;) show(result);
}

int main(void) {
    // The address is in the environment.
    connection = PQconnectdb("");
    if (PQstatus(connection) != CONNECTION_OK) fail();
    const char *insert = "INSERT INTO item (id, name, price) VALUES ($1, $2, $3)";
    const char *values[] = {"7", "Ada's", "12.50"};
    show(PQexecParams(connection, insert, 3, NULL, values, NULL, NULL, 0));
    show(PQprepare(connection, "find", "SELECT id, name, price FROM item WHERE id = $1 AND name = $2", 0, NULL));
    for (int i = 0; i < 2; i++) show(PQexecPrepared(connection, "find", 2, values, NULL, NULL, 0));
    show(PQexec(connection, "BEGIN"));
    const char *one[] = {"1"};
    show(PQexecParams(connection, "UPDATE item SET price = price + $1", 1, NULL, one, NULL, NULL, 0));
    show(PQexec(connection, "ROLLBACK"));
    show(PQexecParams(connection, insert, 3, NULL, values, NULL, NULL, 0));

    // Several statements in one message.
    if (!PQsendQuery(connection, "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT price FROM item; COMMIT")) fail();
    show_all();

    // Rows one by one.
    if (!PQsendQuery(connection, "SELECT n FROM generate_series(1, 120) n") || !PQsetSingleRowMode(connection)) fail();
    show_all();

    // Statements in one go; one of them fails, and the rest up to the synchronisation isn't executed.
    if (!PQenterPipelineMode(connection)) fail();
    const char *zero[] = {"0"};
    if (!PQsendQueryPrepared(connection, "find", 2, values, NULL, NULL, 0) ||
        !PQsendQueryParams(connection, "SELECT 1 / $1::int", 1, NULL, zero, NULL, NULL, 0) ||
        !PQsendQueryPrepared(connection, "find", 2, values, NULL, NULL, 0) || !PQpipelineSync(connection))
        fail();
    for (int i = 0; i < 3; i++) show_all();
    show(PQgetResult(connection));
    if (!PQexitPipelineMode(connection)) fail();

    show(PQexec(connection, "COPY copied FROM STDIN"));
    if (PQputCopyData(connection, "1\ta\n2\tb\n", 8) != 1 || PQputCopyEnd(connection, NULL) != 1) fail();
    show_all();
    show(PQexec(connection, "COPY copied TO STDOUT"));
    char *row;
    for (int size; (size = PQgetCopyData(connection, &row, 0)) > 0;) {
        fputs(row, stdout);
        PQfreemem(row);
    }
    show_all();
    PQfinish(connection);
    return 0;
}

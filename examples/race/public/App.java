// Races of public applications in Rust, rebuilt small in Java, with their fixes (races.txt):
// PORT=8000 java -cp postgresql.jar App.java
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;

public class App {
    private static final int SESSIONS = 3;
    private static final BlockingQueue<Connection> POOL = new ArrayBlockingQueue<>(SESSIONS);

    private record Answer(int status, String body) {}

    private interface Request {
        Answer run(Connection connection) throws SQLException;
    }

    // ExtendDB/extenddb #326: a row that isn't there can't be locked, so both writers believe that they create it. The
    // fix inserts it first, and looks only then.
    private static Answer create(Connection connection) throws SQLException {
        if (found(connection, "SELECT 1 FROM item WHERE key = 'k' FOR UPDATE")) {
            return new Answer(409, "exists");
        }
        change(connection, "INSERT INTO item VALUES ('k', gen_random_uuid()) "
            + "ON CONFLICT (key) DO UPDATE SET value = excluded.value");
        return new Answer(200, "created");
    }

    private static Answer createFixed(Connection connection) throws SQLException {
        int created = change(connection, "INSERT INTO item VALUES ('k', gen_random_uuid()) ON CONFLICT DO NOTHING");
        return created == 1 ? new Answer(200, "created") : new Answer(409, "exists");
    }

    // alphaonedev/ai-memory-mcp #2310: a lease that isn't there can't be locked, so the second holder takes that of the
    // first one. The fix takes only its own.
    private static Answer lease(Connection connection, String condition) throws SQLException {
        if (found(connection, "SELECT 1 FROM lease WHERE action = 'a' FOR UPDATE")) {
            return new Answer(409, "held");
        }
        int taken = change(connection, "INSERT INTO lease VALUES ('a', gen_random_uuid(), 1) ON CONFLICT (action) "
            + "DO UPDATE SET holder = excluded.holder, fence = lease.fence + 1" + condition);
        return taken == 1 ? new Answer(200, "taken") : new Answer(409, "held");
    }

    private static boolean found(Connection connection, String sql) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql); ResultSet rows = statement.executeQuery()) {
            return rows.next();
        }
    }

    private static int change(Connection connection, String sql) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            return statement.executeUpdate();
        }
    }

    private static Answer answer(Request request) throws InterruptedException {
        Connection connection = POOL.take();
        try {
            Answer answer = request.run(connection);
            connection.commit();
            return answer;
        } catch (SQLException error) {
            try {
                connection.rollback();
            } catch (SQLException lost) {
                error.addSuppressed(lost);
            }
            return new Answer(500, error.getSQLState());
        } finally {
            POOL.put(connection);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> variables = System.getenv();
        String url = "jdbc:postgresql://%s:%s/%s?user=%s".formatted(variables.get("PGHOST"), variables.get("PGPORT"),
            variables.get("PGDATABASE"), variables.get("PGUSER"));
        for (int session = 0; session < SESSIONS; session++) {
            Connection connection = DriverManager.getConnection(url);
            connection.setAutoCommit(false);
            POOL.put(connection);
        }
        Map<String, Request> paths = Map.of("/create", App::create, "/create-fixed", App::createFixed,
            "/lease", connection -> lease(connection, ""),
            "/lease-fixed", connection -> lease(connection, " WHERE lease.holder = excluded.holder"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(variables.get("PORT"))), 0);
        server.setExecutor(Executors.newFixedThreadPool(SESSIONS));
        server.createContext("/", exchange -> {
            try (exchange) {
                Request request = paths.get(exchange.getRequestURI().getPath());
                Answer answer = request == null ? new Answer(404, "unknown") : answer(request);
                byte[] body = answer.body().getBytes();
                exchange.sendResponseHeaders(answer.status(), body.length);
                exchange.getResponseBody().write(body);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        });
        server.start();
    }
}

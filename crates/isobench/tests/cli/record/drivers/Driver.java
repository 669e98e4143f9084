import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Map;
import java.util.UUID;

/** What an application does, by pgjdbc. Prints what the driver returned. */
class Driver {
    public static void main(String[] words) throws SQLException {
        Map<String, String> env = System.getenv();
        String url = "jdbc:postgresql://" + env.get("PGHOST") + ":" + env.get("PGPORT") + "/" + env.get("PGDATABASE");
        try (Connection connection = DriverManager.getConnection(url, env.get("PGUSER"), env.get("PGPASSWORD"))) {
            connection.setAutoCommit(false);
            System.out.println(insert(connection));
            connection.commit();
            String select = "SELECT id, name, price, code FROM item WHERE id = ? AND name = ?";
            try (PreparedStatement statement = connection.prepareStatement(select)) {
                // After five executions the statement is prepared, and values are binary.
                for (int i = 0; i < 8; i++) {
                    statement.setInt(1, 7);
                    statement.setString(2, "Ada's");
                    try (ResultSet row = statement.executeQuery()) {
                        row.next();
                        System.out.println(row.getInt(1) + row.getString(2) + row.getBigDecimal(3) + row.getObject(4));
                    }
                }
            }
            connection.rollback();
            try (PreparedStatement statement = connection.prepareStatement("SELECT n FROM generate_series(1, 120) n")) {
                statement.setFetchSize(50);
                int sum = 0;
                try (ResultSet rows = statement.executeQuery()) {
                    while (rows.next()) {
                        sum += rows.getInt(1);
                    }
                }
                System.out.println(sum);
            }
            try {
                insert(connection);
            } catch (SQLException duplicate) {
                System.out.println(duplicate.getSQLState());
            }
            connection.rollback();
            connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            try (ResultSet row = connection.createStatement().executeQuery("SELECT price FROM item")) {
                row.next();
                System.out.println(row.getBigDecimal(1));
            }
            connection.commit();
        }
    }

    static int insert(Connection connection) throws SQLException {
        String sql = "INSERT INTO item (id, name, price, code) VALUES (?, ?, ?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setInt(1, 7);
            statement.setString(2, "Ada's");
            statement.setBigDecimal(3, new BigDecimal("12.50"));
            statement.setObject(4, new UUID(0, 7));
            return statement.executeUpdate();
        }
    }
}

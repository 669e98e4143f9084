package shop;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.LockModeType;
import jakarta.persistence.Table;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.Lock;
import org.springframework.data.jpa.repository.Query;
import org.springframework.http.ResponseEntity;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * A shop with Spring Boot, Hibernate and HikariCP: PORT=8000 java -jar target/shop-1.jar
 *
 * <p>/order reads the stock and writes it back. /order-locked locks the row first.
 */
@SpringBootApplication
public class Shop {
    public static void main(String[] arguments) {
        var application = new SpringApplication(Shop.class);
        application.setDefaultProperties(Map.of(
                "server.port", "${PORT}",
                "spring.datasource.url", "jdbc:postgresql://${PGHOST}:${PGPORT}/${PGDATABASE}",
                "spring.datasource.username", "${PGUSER}",
                "spring.jpa.open-in-view", "false"));
        application.run(arguments);
    }
}

@Entity
@Table(name = "item")
class Item {
    @Id Integer id;
    int stock;
}

interface Items extends JpaRepository<Item, Integer> {
    @Lock(LockModeType.PESSIMISTIC_WRITE)
    @Query("SELECT i FROM Item i WHERE i.id = ?1")
    Item locked(int id);
}

@Service
class Orders {
    private final Items items;
    private final JdbcTemplate database;

    Orders(Items items, JdbcTemplate database) {
        this.items = items;
        this.database = database;
    }

    @Transactional
    public int take(boolean locked) {
        Item item = locked ? items.locked(1) : items.findById(1).orElseThrow();
        if (item.stock < 1) {
            return -1;
        }
        item.stock -= 1;
        database.update("INSERT INTO orders (item) VALUES (1)");
        return item.stock;
    }
}

@RestController
class Desk {
    private final Orders orders;

    Desk(Orders orders) {
        this.orders = orders;
    }

    @PostMapping("/order")
    ResponseEntity<?> order() {
        return answer(orders.take(false));
    }

    @PostMapping("/order-locked")
    ResponseEntity<?> orderLocked() {
        return answer(orders.take(true));
    }

    private static ResponseEntity<?> answer(int left) {
        return left < 0 ? ResponseEntity.status(409).body("sold out") : ResponseEntity.ok(Map.of("left", left));
    }
}

// A shop with net/http and pgx: PORT=8000 go run .
//
// /order reads the stock and writes it back. /order-locked locks the row first. /order-retry runs at repeatable read, and
// again if PostgreSQL refuses it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

type answer map[string]any

var errSoldOut = errors.New("sold out")

func take(ctx context.Context, pool *pgxpool.Pool, level pgx.TxIsoLevel, lock string) (found answer, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
		var stock, order int
		if err := tx.QueryRow(ctx, "SELECT stock FROM item WHERE id = 1"+lock).Scan(&stock); err != nil {
			return err
		}
		if stock < 1 {
			return errSoldOut
		}
		if _, err := tx.Exec(ctx, "UPDATE item SET stock = $1 WHERE id = 1", stock-1); err != nil {
			return err
		}
		found = answer{"left": stock - 1}
		err := tx.QueryRow(ctx, "INSERT INTO orders (item) VALUES (1) RETURNING id").Scan(&order)
		found["order"] = order
		return err
	})
	return found, err
}

func main() {
	pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	handle := func(path string, run func(context.Context) (answer, error)) {
		http.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			body, err := run(r.Context())
			status := http.StatusOK
			switch {
			case errors.Is(err, errSoldOut):
				status, body = http.StatusConflict, answer{"error": err.Error()}
			case err != nil:
				status, body = http.StatusInternalServerError, answer{"error": err.Error()}
			}
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(body)
		})
	}
	handle("POST /order", func(ctx context.Context) (answer, error) { return take(ctx, pool, "", "") })
	handle("POST /order-locked", func(ctx context.Context) (answer, error) { return take(ctx, pool, "", " FOR UPDATE") })
	handle("POST /order-retry", func(ctx context.Context) (found answer, err error) {
		var refused *pgconn.PgError
		for attempt := 0; attempt < 5; attempt++ {
			found, err = take(ctx, pool, pgx.RepeatableRead, "")
			if !errors.As(err, &refused) || refused.Code != "40001" {
				break
			}
		}
		return found, err
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

// A race of lightningnetwork/lnd, rebuilt small, with its fix (races.txt): PORT=8000 go run .
//
// #10998: a channel is opened while the last other one is closed, and its node is deleted. The fix writes the node back
// that it has read; then repeatable read refuses one of both, which comes again.
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

type request func(ctx context.Context, tx pgx.Tx) error

func closed(ctx context.Context, tx pgx.Tx) error {
	var left int
	sql := "UPDATE channel SET open = false WHERE id = (SELECT min(id) FROM channel WHERE pub = 1 AND open)"
	if _, err := tx.Exec(ctx, sql); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, "SELECT count(*) FROM channel WHERE pub = 1 AND open").Scan(&left); err != nil {
		return err
	}
	if left > 0 {
		return nil
	}
	_, err := tx.Exec(ctx, "DELETE FROM link_node WHERE pub = 1")
	return err
}

func opened(writesBack bool) request {
	return func(ctx context.Context, tx pgx.Tx) error {
		var known int
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM link_node WHERE pub = 1").Scan(&known); err != nil {
			return err
		}
		if known == 0 || writesBack {
			sql := "INSERT INTO link_node VALUES (1, 'a') ON CONFLICT (pub) DO UPDATE SET addr = excluded.addr"
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, "INSERT INTO channel (pub, open) VALUES (1, true)")
		return err
	}
}

// retried runs a transaction at repeatable read, and again as long as PostgreSQL refuses it.
func retried(ctx context.Context, pool *pgxpool.Pool, run request) error {
	for {
		options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead}
		err := pgx.BeginTxFunc(ctx, pool, options, func(tx pgx.Tx) error { return run(ctx, tx) })
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "40001" {
			return err
		}
	}
}

func main() {
	pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	paths := map[string]request{"/close": closed, "/open": opened(false), "/open-fixed": opened(true)}
	for path, run := range paths {
		http.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if err := retried(r.Context(), pool, run); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

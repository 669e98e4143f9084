// What an application does, by pgx. Prints what the driver returned.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	insert = "INSERT INTO item (id, name, price, code, day, ok, weight, raw) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
	find   = "SELECT id, name, price, code, day, ok, weight, raw FROM item WHERE id = $1 AND name = $2"
	update = "UPDATE item SET price = price + $1"
)

var values = []any{
	7, "Ada's", "12.50", "00000000-0000-0000-0000-000000000007",
	time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC), true, 1.5, []byte{0, 255},
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// The address is in the environment.
	connection, err := pgx.Connect(ctx, "")
	if err != nil {
		return err
	}
	defer connection.Close(ctx)
	inserted, err := connection.Exec(ctx, insert, values...)
	if err != nil {
		return err
	}
	fmt.Println(inserted)
	// From the second time on the statement is prepared.
	for range 3 {
		if err := show(connection.Query(ctx, find, values[:2]...)); err != nil {
			return err
		}
	}
	transaction, err := connection.Begin(ctx)
	if err != nil {
		return err
	}
	updated, err := transaction.Exec(ctx, update, "1")
	if err != nil {
		return err
	}
	fmt.Println(updated)
	if err := transaction.Rollback(ctx); err != nil {
		return err
	}
	_, err = connection.Exec(ctx, insert, values...)
	var duplicate *pgconn.PgError
	if !errors.As(err, &duplicate) {
		return fmt.Errorf("not an error of the server: %w", err)
	}
	fmt.Println(duplicate.Code)
	err = pgx.BeginTxFunc(ctx, connection, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(transaction pgx.Tx) error {
		return show(transaction.Query(ctx, "SELECT price FROM item"))
	})
	if err != nil {
		return err
	}
	// Statements in one go.
	batch := &pgx.Batch{}
	batch.Queue(find, values[:2]...)
	batch.Queue("SELECT sum(n) FROM generate_series(1, $1) n", 120)
	results := connection.SendBatch(ctx, batch)
	for range batch.Len() {
		if err := show(results.Query()); err != nil {
			return err
		}
	}
	if err := results.Close(); err != nil {
		return err
	}
	rows := pgx.CopyFromRows([][]any{{1, "a"}, {2, "b"}})
	copied, err := connection.CopyFrom(ctx, pgx.Identifier{"copied"}, []string{"id", "name"}, rows)
	if err != nil {
		return err
	}
	fmt.Println(copied)
	return show(connection.Query(ctx, "SELECT count(*) FROM copied WHERE id = ANY($1)", []int32{1, 2}))
}

// Prints the row of a result.
func show(rows pgx.Rows, err error) error {
	if err != nil {
		return err
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToMap)
	if err != nil {
		return err
	}
	fmt.Println(row)
	return nil
}

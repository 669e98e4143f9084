//! Mistakes that no level prevents: found where the text shows them, and nowhere else.

use isobench_program::{Beyond, Order, templates};

use crate::support::{installed, load, parsed, reading};

const TABLES: &str = "\
    CREATE TABLE outbox (id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), tx bigint, body text);\
    CREATE TABLE mark (id int PRIMARY KEY, seen bigint, seen_at timestamptz);\
    CREATE TABLE sent (id bigint);\
    CREATE TABLE job (id int PRIMARY KEY, locked_at timestamptz, owner int, fence int NOT NULL DEFAULT 0, done boolean);\
    CREATE TABLE log (job int, n int);";

const PUBLISH: &str = "INSERT INTO outbox (body) VALUES ('a');\n";

/// Scripts, and what is found of them.
const CASES: &[(&[&str], &[&str])] = &[
    // A mark in a table.
    (
        &[
            PUBLISH,
            "BEGIN;\nSELECT seen AS last FROM mark WHERE id = 1 FOR UPDATE \\gset\n\
             SELECT coalesce(max(id), :last) AS upto FROM outbox WHERE id > :last \\gset\n\
             INSERT INTO sent SELECT id FROM outbox WHERE id > :last AND id <= :upto;\n\
             UPDATE mark SET seen = :upto WHERE id = 1;\nCOMMIT;\n",
        ],
        &["1.sql:3 outbox.id Sequence"],
    ),
    // The same in one statement, the other way round, and by time.
    (
        &[
            PUBLISH,
            "INSERT INTO sent SELECT id FROM outbox o WHERE o.id > (SELECT coalesce(max(seen), 0) FROM mark);\n\
             UPDATE mark SET seen = (SELECT max(id) FROM outbox);\n",
        ],
        &["1.sql:1 outbox.id Sequence"],
    ),
    (
        &[
            PUBLISH,
            "SELECT seen_at AS last FROM mark WHERE id = 1 \\gset\n\
             SELECT max(at) AS upto FROM outbox o WHERE ':last' < o.at \\gset\n\
             UPDATE mark SET seen_at = ':upto' WHERE id = 1;\n",
        ],
        &["1.sql:2 outbox.at Clock"],
    ),
    // A mark that the client keeps from one run to the next.
    (
        &[PUBLISH, "SELECT max(id) AS last FROM outbox WHERE id > :last \\gset\n"],
        &["1.sql:1 outbox.id Sequence"],
    ),
    // A page of a list, numbers that the application gives, and readers who ask which transactions have ended, look
    // back a little, or keep writers out.
    (
        &[PUBLISH, "\\set last random(1, 10)\nSELECT id FROM outbox WHERE id > :last ORDER BY id LIMIT 5;\n"],
        &[],
    ),
    (
        &[
            "\\set n random(1, 1000)\nINSERT INTO outbox (id, body) VALUES (:n, 'a');\n",
            "SELECT max(id) AS last FROM outbox WHERE id > :last \\gset\n",
        ],
        &[],
    ),
    (
        &[
            PUBLISH,
            "SELECT max(tx) AS last FROM outbox WHERE id > :last AND tx < pg_snapshot_xmin(pg_current_snapshot())::text::bigint \\gset\n",
        ],
        &[],
    ),
    (&[PUBLISH, "SELECT max(id) AS last FROM outbox WHERE id > :last - 100 \\gset\n"], &[]),
    (
        &[
            PUBLISH,
            "BEGIN;\nLOCK TABLE outbox IN SHARE MODE;\nSELECT max(id) AS last FROM outbox WHERE id > :last \\gset\nCOMMIT;\n",
        ],
        &[],
    ),
    // A lease that ends by itself, and one that another script takes away.
    (
        &[
            "\\set j random(1, 3)\nUPDATE job SET locked_at = now() WHERE id = :j AND (locked_at IS NULL OR locked_at < now() - \
           interval '1 min');\nBEGIN;\nINSERT INTO log VALUES (:j, 1);\nUPDATE job SET done = true WHERE id = :j;\nCOMMIT;\n",
        ],
        &["0.sql:4 job.locked_at 0.sql:2"],
    ),
    (
        &[
            "\\set me random(1, 9)\nUPDATE job SET owner = :me WHERE id = 1 AND owner IS NULL;\nINSERT INTO log VALUES (1, :me);\n",
            "UPDATE job SET owner = NULL WHERE id = 1;\n",
        ],
        &["0.sql:3 job.owner 0.sql:2"],
    ),
    // Nobody takes it away; it is tested again; it is one transaction.
    (
        &[
            "\\set me random(1, 9)\nUPDATE job SET owner = :me WHERE id = 1 AND owner IS NULL;\nINSERT INTO log VALUES (1, :me);\n",
        ],
        &[],
    ),
    (
        &[
            "\\set me random(1, 9)\nUPDATE job SET owner = :me WHERE id = 1 AND owner IS NULL;\n\
             UPDATE job SET done = true WHERE id = 1 AND owner = :me;\n",
            "UPDATE job SET owner = NULL WHERE id = 1;\n",
        ],
        &[],
    ),
    (
        &[
            "\\set me random(1, 9)\nBEGIN;\nUPDATE job SET owner = :me WHERE id = 1 AND owner IS NULL;\n\
             INSERT INTO log VALUES (1, :me);\nCOMMIT;\n",
            "UPDATE job SET owner = NULL WHERE id = 1;\n",
        ],
        &[],
    ),
    // A number that a client counts; and one that it reads, or that isn't written.
    (&["\\set n :n + 1\nINSERT INTO log VALUES (1, :n);\n"], &["0.sql:2 n 1"]),
    (
        &[
            "BEGIN;\nSELECT fence AS n FROM job WHERE id = 1 \\gset\n\\set n :n + 1\nUPDATE job SET fence = :n WHERE id = 1;\nCOMMIT;\n",
        ],
        &[],
    ),
    (&["\\set n :n + 1\nUPDATE job SET done = true WHERE id = :n;\n"], &[]),
];

fn said(of: &Beyond) -> String {
    match of {
        Beyond::Watermark { read, table, column, order } => {
            let order = if *order == Order::Clock { "Clock" } else { "Sequence" };
            format!("{read} {table}.{column} {order}")
        }
        Beyond::Lease { claim, table, column, write } => format!("{write} {table}.{column} {claim}"),
        Beyond::Counter { line, variable, write } => format!("{write} {variable} {line}"),
    }
}

#[test]
fn mistakes_that_no_level_prevents_are_found_where_the_text_shows_them() {
    let name = "mistakes_that_no_level_prevents_are_found_where_the_text_shows_them";
    let Some((_server, mut connection)) = installed(name) else { return };
    connection.execute(TABLES).expect("the tables");
    let tables = load(&mut connection);
    for (texts, expected) in CASES {
        let (scripts, symbols) = parsed(texts);
        let catalog = reading(&tables, &mut connection, &scripts);
        let found = templates(&scripts, &symbols, &catalog, &std::collections::BTreeSet::new()).beyond;
        let found: Vec<String> = found.iter().map(said).collect();
        assert_eq!(found, *expected, "{texts:#?}");
    }
}

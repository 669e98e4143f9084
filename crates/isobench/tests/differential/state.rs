//! The state of a database as text: its relations, and the rows in its tables except for times.

use std::fmt::Write as _;

use isobench_pgwire::Connection;

/// Relations with their columns, constraints and indexes.
const RELATIONS: &str = "
    with mine as (
        select c.* from pg_class c join pg_namespace n on n.oid = relnamespace
            where nspname !~ '^pg_' and nspname <> 'information_schema'
    ), lines as (
        select relname, format('%s kind %s persistence %s options %s partition by %s of %s', relname, relkind,
            relpersistence, reloptions, pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid)) as line from mine
        union all select relname, format('    column %s %s%s', attname, format_type(atttypid, atttypmod),
            case when attnotnull then ' not null' end)
            from mine join pg_attribute a on attrelid = mine.oid and attnum > 0 and not attisdropped and relkind \
            not in ('i', 'S')
        union all select relname, format('    constraint %s %s', conname, pg_get_constraintdef(k.oid))
            from mine join pg_constraint k on conrelid = mine.oid
        union all select relname, '    ' || pg_get_indexdef(oid) from mine where relkind in ('i', 'I')
    )
    select coalesce(string_agg(line, E'\\n' order by relname collate \"C\", line ~ '^ ', line collate \"C\"), '') \
    from lines";

/// Tables and sequences: the name, the columns compared, and the source.
const CONTENTS: &str = "
    select relname,
        coalesce((select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
            where attrelid = c.oid and not attisdropped and atttypid not in (1114, 1184, 1082)
                and (relkind <> 'S' or attname <> 'log_cnt') and attnum > 0), '1'),
        c.oid::regclass || case when relname = 'pgbench_accounts' and not $whole then ' where abalance <> 0' else '' end
    from pg_class c join pg_namespace n on n.oid = relnamespace
    where nspname !~ '^pg_' and nspname <> 'information_schema' and relkind in ('r', 'S')
    order by relname collate \"C\"";

/// A table with more rows than this is represented by a checksum.
const FEW: u64 = 50;

/// The state of the connection's database; only changed accounts are included, unless `whole` is
/// set.
///
/// # Panics
/// A query fails.
pub fn of(connection: &mut Connection, whole: bool) -> String {
    let mut text = ask(connection, RELATIONS);
    text.push_str("\nCONTENTS");
    let tables = connection.query(&CONTENTS.replace("$whole", &whole.to_string())).expect("the tables").rows;
    for row in tables {
        let [Some(name), Some(columns), Some(table)] = &row[..] else { panic!("{row:?}") };
        let mut of_rows =
            |what: &str| ask(connection, &format!("select {what} from (select {columns} from {table}) as r"));
        let count: u64 = of_rows("count(*)").parse().expect("a count");
        let rows = match count {
            0..=FEW => of_rows("string_agg(r::text, ' ' order by r::text collate \"C\")"),
            _ => of_rows("bit_xor(hash_record_extended(r, 0))"),
        };
        // Writing to a string can't fail.
        let _ = write!(text, "\n{name}: {count} rows: {rows}");
    }
    text
}

fn ask(connection: &mut Connection, query: &str) -> String {
    let answer = connection.value(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    answer.unwrap_or_default()
}

//! The state of a database as text: its relations, and the rows in its tables but for times.

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
            from mine join pg_attribute a on attrelid = mine.oid and attnum > 0 and not attisdropped and relkind not in ('i', 'S')
        union all select relname, format('    constraint %s %s', conname, pg_get_constraintdef(k.oid))
            from mine join pg_constraint k on conrelid = mine.oid
        union all select relname, '    ' || pg_get_indexdef(oid) from mine where relkind in ('i', 'I')
    )
    select coalesce(string_agg(line, E'\\n' order by relname collate \"C\", line ~ '^ ', line collate \"C\"), '') from lines";

/// For each table and sequence a query for its contents: all rows of a short one, a checksum of a long one.
const CONTENTS: &str = "
    select relname, format('select count(*) || '' rows: '' || case when count(*) <= 50
            then coalesce(string_agg(r::text, '' '' order by r::text collate \"C\"), '''')
            else coalesce(bit_xor(hash_record_extended(r, 0)), 0)::text end from (select %s from %s %s) as r',
        coalesce((select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
            where attrelid = c.oid and not attisdropped and atttypid not in (1114, 1184, 1082)
                and (relkind <> 'S' or attname <> 'log_cnt') and attnum > 0), '1'),
        c.oid::regclass, case when relname = 'pgbench_accounts' and not $whole then 'where abalance <> 0' end)
    from pg_class c join pg_namespace n on n.oid = relnamespace
    where nspname !~ '^pg_' and nspname <> 'information_schema' and relkind in ('r', 'p', 'S')
    order by relname collate \"C\"";

/// The state of the database that the connection is in; of its accounts only those changed, unless the `whole` is wanted.
///
/// # Panics
/// A query fails.
pub fn of(connection: &mut Connection, whole: bool) -> String {
    let mut text = connection.value(RELATIONS).expect("the relations").unwrap_or_default();
    text.push_str("\nCONTENTS");
    for row in connection.query(&CONTENTS.replace("$whole", &whole.to_string())).expect("the tables").rows {
        let [Some(name), Some(query)] = &row[..] else { panic!("{row:?}") };
        let contents = connection.value(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        // Writing to a string can't fail.
        let _ = write!(text, "\n{name}: {}", contents.unwrap_or_default());
    }
    text
}

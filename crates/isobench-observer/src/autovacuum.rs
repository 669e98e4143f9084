//! What autovacuum has done in the database and may count later.
//!
//! A worker counts a table when it has vacuumed or analyzed it, but its transactions only when it
//! ends (seen with versions 15 and 18). Both may lie in different windows.

use crate::arm::Arm;
use crate::session::{ObserverSession, Refusal};

/// Tables that the present workers may have vacuumed or analyzed. Without the privilege to see
/// them, all tables that autovacuum has ever visited.
const COLUMN: &str = "coalesce(sum((coalesce(visited.last_autovacuum, '-infinity') >= since)::int \
    + (coalesce(visited.last_autoanalyze, '-infinity') >= since)::int), 0)";

/// The FROM clause. Tables are read only if there is a worker.
const FROM: &str = "from (select min(coalesce(backend_start, '-infinity')) as since \
    from pg_catalog.pg_stat_activity where datname = pg_catalog.current_database() \
    and (backend_type = 'autovacuum worker' \
    or backend_type is null and usesysid is null) having count(*) > 0) as workers \
    join pg_catalog.pg_stat_all_tables as visited \
    on visited.last_autovacuum >= since or visited.last_autoanalyze >= since";

/// The query of [`unreported`] as a part of one of several views.
pub fn arm() -> Arm {
    Arm { name: None, columns: vec![COLUMN.to_owned()], from: FROM.to_owned(), sums: false }
}

/// The most vacuums and analyses of a table whose transactions aren't counted yet.
///
/// # Errors
/// [`Refusal`].
pub fn unreported(session: &mut ObserverSession) -> Result<u64, Refusal> {
    let count = session.value(&format!("select {COLUMN} {FROM}"))?;
    Ok(count.and_then(|count| count.parse().ok()).unwrap_or(0))
}

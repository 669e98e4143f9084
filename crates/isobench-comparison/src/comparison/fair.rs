//! Which cells take turns: those of a plan that differ only in what one may choose between, unless
//! they would then measure something else than each does alone.
//!
//! Not here: taking turns (`block.rs`).

use std::collections::BTreeMap;

use crate::design::{CellPlan, Design, Work};
use crate::endpoint::DIRECT;
use crate::session_state::kept;
use crate::tables::Tables;
use crate::target::Target;

/// Connections left for everything but the clients.
const SPARE: u64 = 10;

/// The settings whose effects come and go over longer times than a slice: what a commit doesn't wait
/// for is written in the background, in the time of others.
const SLOW_SETTINGS: [&str; 8] = [
    "checkpoint_",
    "max_wal_size",
    "min_wal_size",
    "bgwriter_",
    "autovacuum",
    "wal_",
    "synchronous_commit",
    "commit_",
];

/// The cells together that differ in nothing but level, strategy, the server and its settings, in the
/// order of the table. These are compared with each other.
pub fn alike(design: &Design) -> Vec<Vec<usize>> {
    let cells = design.cells();
    let same = |one: &CellPlan, other: &CellPlan| {
        let (work, its) = (&design.works[one.work], &design.works[other.work]);
        let CellPlan { level, allocation, calibration, work: strategy, server, session, .. } = *one;
        let chosen = CellPlan { level, allocation, calibration, work: strategy, server, session, ..*other };
        *one == chosen && work.workload == its.workload && work.varied == its.varied
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        match groups.iter_mut().find(|group| same(&cells[group[0]], cell)) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// What a server has room for.
#[derive(Debug, Clone, Copy)]
pub struct Capacity {
    /// Sessions; `None` if it sets no limit.
    pub connections: Option<u64>,
    /// Its cache, in bytes.
    pub cache: u64,
}

impl Capacity {
    /// Reads it from the server's settings.
    pub fn of(settings: &BTreeMap<String, String>) -> Capacity {
        let number = |name: &str| settings.get(name)?.parse().ok();
        let cache = settings.get("shared_buffers").and_then(|text| bytes(text));
        Capacity { connections: number("max_connections"), cache: cache.unwrap_or(128 << 20) }
    }
}

/// A size as PostgreSQL shows it.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Why no cells of a plan can take turns; `None` if they can, or if the plan wants none.
pub fn obstacle(design: &Design, targets: &[Target]) -> Option<String> {
    if design.time().is_some_and(|time| time < design.slice * 2) {
        return Some("their measured time (--time) is shorter than two slices (--slice)".to_owned());
    }
    if design.has_faults() {
        return Some("what happens to a server happens to all cells on it (--fault)".to_owned());
    }
    if design.server_factors.endpoints.iter().any(|endpoint| endpoint != DIRECT) {
        return Some(
            "a pooler's sessions stay, and what the server counts of them comes late (endpoint)".to_owned(),
        );
    }
    if design.alters() {
        return Some("the settings of a server are those of all cells on it (--alter-system)".to_owned());
    }
    if design.has_background() {
        return Some("the background work of one would disturb the others (--background)".to_owned());
    }
    if design.plan.readers() > 0 {
        return Some("a standby follows all cells of its server (--readers)".to_owned());
    }
    if design.plan.observe().reads_log() {
        return Some("the write-ahead log is read for one cell at a time (--observe)".to_owned());
    }
    let of_servers = targets.iter().flat_map(|target| &target.server_settings).map(|(name, _)| name);
    let of_sessions = design.sessions.iter().flatten().map(|setting| &setting.name);
    let slow = |name: &&String| SLOW_SETTINGS.iter().any(|slow| name.starts_with(slow));
    if let Some(name) = of_servers.chain(of_sessions).find(slow) {
        return Some(format!("the plan sets {name}, whose effect takes longer than slices"));
    }
    let left = |work: &Work| {
        let setup = if let Tables::Own(setup) = &work.tables { Some(setup) } else { None };
        kept(&work.sources, setup)
    };
    if let Some((place, name)) = design.works.iter().find_map(left) {
        return Some(format!(
            "because of {place} sessions would keep {name} while other cells have their turn"
        ));
    }
    let embedded = targets.iter().all(Target::is_embedded);
    design.works.iter().find_map(|work| match &work.tables {
        Tables::Kept(_) => Some("tables of yours stay where they are, so that there is one of each".to_owned()),
        Tables::Own(_) if !embedded => Some(
            "a --setup of your own might use other schemas than the one it is run in, and on a server that isn't \
             isobench's cells aren't to meet there"
                .to_owned(),
        ),
        Tables::Own(setup) => setup.reach().map(|(reach, place)| {
            format!(
                "{place} says \"{}\", so that its tables may lie outside of the schema that each cell has for \
                 itself; without it they could take turns",
                reach.word()
            )
        }),
        Tables::Found | Tables::Pgbench { .. } | Tables::Checked(_) => None,
    })
}

/// Why these cells, all on servers of this capacity, can't take turns; `None` if they can. `sizes`
/// are those of each cell's tables, bytes.
pub fn crowded(cells: &[CellPlan], sizes: &[u64], capacity: &[Capacity]) -> Option<String> {
    capacity.iter().enumerate().find_map(|(server, capacity)| {
        let here = || cells.iter().zip(sizes).filter(|(cell, _)| cell.server == server);
        let sessions: u64 = here().map(|(cell, _)| cell.clients as u64).sum();
        let size: u64 = here().map(|(_, size)| *size).sum();
        if let Some(most) = capacity.connections.filter(|most| sessions + SPARE > *most) {
            return Some(format!(
                "together they have {sessions} clients, more than max_connections ({most}) allows"
            ));
        }
        (size > capacity.cache / 4 * 3).then(|| {
            format!(
                "the tables of all of them ({} MB) don't fit into shared_buffers ({} MB) together",
                size >> 20,
                capacity.cache >> 20
            )
        })
    })
}

/// The orders in which cells take their turns, as places in `cells`: a Williams design, in which
/// each cell comes equally often at each place and equally often after each other, with names and
/// rows `shuffled`.
///
/// Source: Williams, "Experimental designs balanced for the estimation of residual effects of
/// treatments", Australian Journal of Scientific Research A 2 (1949).
pub fn orders(count: usize, mut shuffled: impl FnMut(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    // 0, 1, n − 1, 2, n − 2, …
    let first: Vec<usize> = (0..count)
        .map(|place| if place % 2 == 1 { place.div_ceil(2) } else { (count - place / 2) % count })
        .collect();
    let shifted = |by: usize| first.iter().map(move |cell| (cell + by) % count).collect::<Vec<usize>>();
    let mut rows: Vec<Vec<usize>> = (0..count).map(shifted).collect();
    if count % 2 == 1 {
        let reversed: Vec<Vec<usize>> = rows.iter().map(|row| row.iter().rev().copied().collect()).collect();
        rows.extend(reversed);
    }
    let names = shuffled(count);
    let order = shuffled(rows.len());
    order.into_iter().map(|row| rows[row].iter().map(|cell| names[*cell]).collect()).collect()
}

#[cfg(test)]
mod tests {
    use isobench_database::InitOptions;
    use isobench_plan::Plan;

    use super::*;
    use crate::design::resolve::Resolved;

    #[test]
    fn orders_are_balanced() {
        for count in 1..=9 {
            let rows = orders(count, |places| (0..places).rev().collect());
            let repeats = rows.len() / count;
            assert_eq!(rows.len(), if count % 2 == 1 { 2 * count } else { count });
            for cell in 0..count {
                for place in 0..count {
                    let there = rows.iter().filter(|row| row[place] == cell).count();
                    assert_eq!(there, repeats, "{cell} at {place} of {count}");
                }
                for before in (0..count).filter(|before| *before != cell) {
                    let pairs = rows.iter().flat_map(|row| row.windows(2));
                    let after = pairs.filter(|pair| **pair == [before, cell]).count();
                    assert_eq!(after, repeats, "{cell} after {before} of {count}");
                }
            }
        }
    }

    #[test]
    fn cells_need_room_on_their_own_servers() {
        let plan = Resolved::of(&Plan::default(), None, Plan::default(), &InitOptions::default()).unwrap();
        let first = plan.design().cells()[0];
        let cell = |server, clients| CellPlan { clients, server, ..first };
        let capacity = Capacity { connections: Some(100), cache: 128 << 20 };
        let crowded =
            |cells: &[CellPlan], size: u64| crowded(cells, &vec![size; cells.len()], &[capacity; 2]);
        assert_eq!(crowded(&[cell(0, 45), cell(0, 45)], 48 << 20), None);
        let why = crowded(&[cell(0, 45), cell(0, 46)], 0).unwrap();
        assert!(why.contains("91 clients, more than max_connections (100)"), "{why}");
        let why = crowded(&[cell(0, 1), cell(0, 1)], 49 << 20).unwrap();
        assert!(why.contains("(98 MB) don't fit into shared_buffers (128 MB)"), "{why}");
        assert_eq!(crowded(&[cell(0, 46), cell(1, 46)], 49 << 20), None, "two servers");
    }

    #[test]
    fn sizes_are_read_as_postgresql_shows_them() {
        for (text, expected) in [
            ("128MB", Some(128 << 20)),
            ("16GB", Some(16 << 30)),
            ("400kB", Some(400 << 10)),
            ("8", None),
            ("99999999999TB", None),
            ("many MB", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}

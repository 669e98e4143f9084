//! The cases: server × script × query mode × clients, as a table of values, and their selection by
//! name.

use std::fmt;

use crate::raw_loop::requests::{Mode, Workload};

/// The server of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// The null server over its Unix socket.
    NullUnix,
    /// The null server over loopback TCP.
    NullTcp,
    /// A real PostgreSQL over its Unix socket.
    Postgres,
}

/// A case to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Server and transport.
    pub server: ServerKind,
    /// Script.
    pub workload: Workload,
    /// `-M`.
    pub mode: Mode,
    /// `-c`.
    pub clients: u16,
}

const SERVERS: [(ServerKind, &str); 3] =
    [(ServerKind::NullUnix, "unix"), (ServerKind::NullTcp, "tcp"), (ServerKind::Postgres, "postgres")];
const WORKLOADS: [(Workload, &str); 2] =
    [(Workload::SelectOnly, "select-only"), (Workload::TpcbLike, "tpcb-like")];
const MODES: [(Mode, &str); 2] = [(Mode::Simple, "simple"), (Mode::Prepared, "prepared")];
const CLIENTS: [u16; 4] = [1, 8, 64, 512];
/// The numbers of clients kept by `--quick`.
const QUICK_CLIENTS: [u16; 2] = [8, 64];

/// The name of a value in a table that contains it.
fn name<T: PartialEq>(table: &[(T, &'static str)], value: &T) -> &'static str {
    table.iter().find(|(known, _)| known == value).map_or("?", |(_, name)| name)
}

impl Mode {
    /// The name for `-M`.
    pub fn name(self) -> &'static str {
        name(&MODES, &self)
    }
}

impl Case {
    /// The parts of the case's name.
    fn parts(self) -> [String; 4] {
        [
            name(&SERVERS, &self.server).to_string(),
            name(&WORKLOADS, &self.workload).to_string(),
            name(&MODES, &self.mode).to_string(),
            self.clients.to_string(),
        ]
    }
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.parts().join("/"))
    }
}

/// A filter has an unknown part.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--case {filter}: there is no \"{part}\"; a case is named like unix/select-only/prepared/8, \
     where any part may be omitted; known parts are {known}"
)]
pub struct UnknownCase {
    filter: String,
    part: String,
    known: String,
}

/// The cases that match any of the filters (all cases if there are none), in the order of the
/// table. A filter consists of parts of a name separated by slashes, such as `postgres/64`. A
/// number of clients that isn't in the table is added to it.
///
/// # Errors
/// If a part of a filter is neither in the table nor a number.
pub fn select(filters: &[String], quick: bool) -> Result<Vec<Case>, UnknownCase> {
    let table: &[u16] = if quick { &QUICK_CLIENTS } else { &CLIENTS };
    let mut clients = table.to_vec();
    for filter in filters {
        for part in filter.split('/') {
            let listed = SERVERS.iter().any(|(_, name)| *name == part)
                || WORKLOADS.iter().any(|(_, name)| *name == part)
                || MODES.iter().any(|(_, name)| *name == part);
            match part.parse() {
                Ok(count) if count > 0 => clients.push(count),
                _ if listed => {}
                _ => return Err(unknown(filter, part)),
            }
        }
    }
    clients.sort_unstable();
    clients.dedup();
    let matches = |case: &Case, filter: &String| {
        let parts = case.parts();
        let numbered = filter.split('/').any(|part| part.parse::<u16>().is_ok());
        filter.split('/').all(|part| parts.iter().any(|own| own == part))
            && (numbered || table.contains(&case.clients))
    };
    let wanted = |case: &Case| filters.is_empty() || filters.iter().any(|filter| matches(case, filter));
    Ok(all(&clients).into_iter().filter(wanted).collect())
}

fn all(clients: &[u16]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (server, _) in SERVERS {
        for (workload, _) in WORKLOADS {
            for (mode, _) in MODES {
                cases.extend(clients.iter().map(|&clients| Case { server, workload, mode, clients }));
            }
        }
    }
    cases
}

fn unknown(filter: &str, part: &str) -> UnknownCase {
    let targets = SERVERS.iter().map(|(_, name)| *name);
    let workloads = WORKLOADS.iter().map(|(_, name)| *name);
    let known: Vec<_> = targets.chain(workloads).chain(MODES.iter().map(|(_, name)| *name)).collect();
    UnknownCase { filter: filter.to_string(), part: part.to_string(), known: known.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(filters: &[&str], quick: bool) -> Vec<String> {
        let filters: Vec<_> = filters.iter().map(ToString::to_string).collect();
        select(&filters, quick).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_table_is_complete() {
        assert_eq!(names(&[], false).len(), 48);
        assert_eq!(names(&[], true).len(), 24);
    }

    #[test]
    fn filters_choose_by_parts() {
        assert_eq!(names(&["unix/select-only/prepared/8"], false), ["unix/select-only/prepared/8"]);
        assert_eq!(names(&["postgres/64"], false).len(), 4);
        assert_eq!(names(&["unix/simple", "tcp/512"], false).len(), 8 + 4);
        assert_eq!(names(&["unix/select-only/simple/10000"], false), ["unix/select-only/simple/10000"]);
        assert_eq!(names(&["unix/select-only/simple", "tcp/select-only/simple/3"], false).len(), 4 + 1);
        assert_eq!(names(&["unix/512/select-only/prepared"], true), ["unix/select-only/prepared/512"]);
    }

    #[test]
    fn a_wrong_part_is_named() {
        let error = select(&["unix/slow".to_string()], false).unwrap_err();
        assert!(error.to_string().contains("there is no \"slow\""), "{error}");
        assert!(select(&["0".to_string()], false).is_err());
    }
}

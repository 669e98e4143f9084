//! The client's cost with each event loop, beside pgbench and beside both raw loops.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use crate::case::{Case, ServerKind};
use crate::client::ClientError;
use crate::contender::{Address, Contender};
use crate::raw_loop::requests::{Mode, Workload};
use crate::rounds::Rounds;

/// The widths of the case's name and of a column.
const WIDTHS: (usize, usize) = (28, 24);

/// The programs to measure.
#[derive(Clone, Debug)]
pub struct Programs {
    /// isobench.
    pub isobench: PathBuf,
    /// pgbench.
    pub pgbench: PathBuf,
    /// This program.
    pub own: PathBuf,
}

/// The cases of the client's own cost.
pub fn null_cases() -> Vec<Case> {
    use ServerKind::{NullTcp, NullUnix};
    use Workload::{SelectOnly, TpcbLike};
    let rows = [
        (NullUnix, SelectOnly, 8),
        (NullUnix, SelectOnly, 64),
        (NullUnix, SelectOnly, 512),
        (NullUnix, TpcbLike, 64),
        (NullTcp, SelectOnly, 64),
    ];
    cases(&rows)
}

/// The cases of the throughput on PostgreSQL.
pub fn postgres_cases() -> Vec<Case> {
    use Workload::{SelectOnly, TpcbLike};
    cases(&[(ServerKind::Postgres, SelectOnly, 8), (ServerKind::Postgres, TpcbLike, 64)])
}

fn cases(rows: &[(ServerKind, Workload, u16)]) -> Vec<Case> {
    let case = |&(server, workload, clients)| Case { server, workload, mode: Mode::Prepared, clients };
    rows.iter().map(case).collect()
}

/// The contenders with the names of their columns; pgbench, the reference, is first. Raw loops don't
/// run on PostgreSQL.
pub fn contenders(programs: &Programs, postgres: bool) -> Vec<(&'static str, Contender)> {
    let isobench = |event_loop| Contender::IsobenchWith(programs.isobench.clone(), event_loop);
    let mut all = vec![
        ("pgbench", Contender::Pgbench(programs.pgbench.clone())),
        ("isobench, epoll", isobench("epoll")),
        ("isobench, io_uring", isobench("io-uring")),
    ];
    if !postgres {
        all.push(("raw epoll loop", Contender::Raw(programs.own.clone())));
        all.push(("raw io_uring loop", Contender::RawRing(programs.own.clone())));
    }
    all
}

/// The line above the table.
pub fn heading(contenders: &[(&'static str, Contender)]) -> String {
    let (name, column) = WIDTHS;
    let mut line = format!("{:name$}", "case");
    for (title, _) in contenders {
        let _ = write!(line, " {title:column$}");
    }
    if raw_ring(contenders).is_some() {
        line.push_str(" isobench/raw, io_uring");
    }
    line.trim_end().to_owned()
}

/// The place of the raw loop on `io_uring`.
fn raw_ring(contenders: &[(&'static str, Contender)]) -> Option<usize> {
    contenders.iter().position(|(_, contender)| matches!(contender, Contender::RawRing(_)))
}

/// Runs a case, in shuffled order within each round, and returns its line: for the null server the
/// client's CPU, µs per transaction, and how many times less than pgbench's that is, and last that of
/// isobench with `io_uring` divided by the raw loop's; for PostgreSQL the tps, times pgbench's.
///
/// # Errors
/// If a client fails.
pub fn line(
    contenders: &[(&'static str, Contender)],
    case: Case,
    address: &Address,
    rounds: u32,
    time: Duration,
) -> Result<String, ClientError> {
    let programs: Vec<Contender> = contenders.iter().map(|(_, contender)| contender.clone()).collect();
    let measured = Rounds::shuffled(&programs, case, address, rounds, time)?;
    let (name, column) = WIDTHS;
    let mut line = format!("{case:name$}");
    for place in 0..programs.len() {
        let text = measured.summary(place, 0).map(|summary| {
            let ratio = if case.server == ServerKind::Postgres { summary.tps } else { summary.less_cpu };
            let ratio = ratio.map_or_else(|| "-".to_owned(), |ratio| ratio.to_string());
            if place == 0 {
                format!("{:.2} µs", summary.cpu)
            } else {
                format!("{:.2} µs {ratio}", summary.cpu)
            }
        });
        let _ = write!(line, " {:column$}", text.unwrap_or_default());
    }
    let own = contenders.iter().position(|(title, _)| *title == "isobench, io_uring");
    if let (Some(own), Some(raw)) = (own, raw_ring(contenders)) {
        let ratio = measured.summary(raw, own).and_then(|summary| summary.less_cpu);
        let _ = write!(line, " {}", ratio.map_or_else(|| "-".to_owned(), |ratio| ratio.to_string()));
    }
    Ok(line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pgbench_is_the_reference() {
        let programs = Programs { isobench: "/i".into(), pgbench: "/p".into(), own: "/o".into() };
        for postgres in [false, true] {
            let all = contenders(&programs, postgres);
            assert_eq!((all[0].0, all.len()), ("pgbench", if postgres { 3 } else { 5 }));
        }
        assert_eq!((null_cases().len(), postgres_cases().len()), (5, 2));
        assert_eq!(null_cases()[3].to_string(), "unix/tpcb-like/prepared/64");
    }
}

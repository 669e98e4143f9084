//! `isobench peers`: whether several machines find each other, run the same program, and how their clocks
//! and the ways between them are.
//!
//! Not here: connections, phases and clocks (`isobench_peers`).

use std::time::{Duration, Instant};

use isobench_comparison::{Failure, Outcome, Portrait};
use isobench_limits::LIMITS;
use isobench_peers::{ClockOffset, Peers, PeersError};
use isobench_report::wrap;

use crate::machines;
use crate::options::PeersOptions;
use crate::output;

/// Phases without a message, for the time that one takes.
const PHASES: u32 = 50;

/// What is sent to each machine to see how much passes: pieces of so many bytes.
const PIECES: usize = 16;
const PIECE: usize = 1 << 20;

/// Checks the machines. Rank 0 prints a table, the others a line.
///
/// # Errors
/// It isn't known which machine this is, one is missing or differs, or one is lost meanwhile.
pub fn peers(options: &PeersOptions) -> Outcome {
    let place = machines::place(&options.machines)?;
    let credentials = machines::credentials(&options.machines, "peers")?;
    eprintln!(
        "rank {} of {} at {}: waiting for the others …",
        place.rank,
        place.number(),
        place.addresses[place.rank]
    );
    let joined = Peers::join(place, &credentials, machines::patience(&options.machines));
    let (report, peers) = joined.and_then(check).map_err(|error| failure(&error))?;
    let printed = output::print(&report);
    peers.leave(LIMITS.peers).map_err(|error| failure(&error))?;
    printed
}

fn failure(error: &PeersError) -> Failure {
    match error {
        // Something had begun.
        PeersError::Lost { .. } | PeersError::Late { .. } | PeersError::Engine(_) => {
            Failure::Incomplete(error.to_string())
        }
        _ => Failure::setup(error),
    }
}

/// Compares clocks, phases and bandwidth. Returns what is to be printed here.
fn check(mut peers: Peers) -> Result<(String, Peers), PeersError> {
    let own = Portrait::own();
    let own = format!("{}\t{}", own.host, own.cores).into_bytes();
    let portraits = peers.gather(own, "names", LIMITS.peers)?;
    let before = peers.compare_clocks(LIMITS.peers)?;
    let mut phases: Vec<Duration> = Vec::new();
    for _ in 0..PHASES {
        let began = Instant::now();
        peers.barrier("a phase", LIMITS.peers)?;
        phases.push(began.elapsed());
    }
    phases.sort_unstable();
    let rates = bandwidth(&mut peers)?;
    let after = peers.compare_clocks(LIMITS.peers)?;
    let median = phases[phases.len() / 2];
    let report = if peers.rank() == 0 {
        table(&peers, &portraits, &before, &after, &rates, median)
    } else {
        let own = before[0];
        format!(
            "rank {} of {}: fine; clock known to ± {} µs, a phase takes {:.2} ms\n",
            peers.rank(),
            peers.number(),
            own.within_ns / 1000,
            median.as_secs_f64() * 1e3
        )
    };
    Ok((report, peers))
}

/// The megabytes per second that pass from rank 0 to each other one; there alone.
fn bandwidth(peers: &mut Peers) -> Result<Vec<f64>, PeersError> {
    const WHAT: &str = "the bandwidth";
    let mut rates = vec![0.0];
    if peers.rank() == 0 {
        for rank in 1..peers.number() {
            let began = Instant::now();
            for _ in 0..PIECES {
                peers.send(rank, vec![0x5a; PIECE]);
            }
            peers.receive_from(rank, WHAT, LIMITS.peers)?;
            rates.push((PIECES * PIECE) as f64 / 1e6 / began.elapsed().as_secs_f64());
        }
    } else {
        for _ in 0..PIECES {
            peers.receive_from(0, WHAT, LIMITS.peers)?;
        }
        peers.send(0, Vec::new());
    }
    peers.barrier(WHAT, LIMITS.peers)?;
    Ok(rates)
}

fn table(
    peers: &Peers,
    portraits: &[Vec<u8>],
    before: &[ClockOffset],
    after: &[ClockOffset],
    rates: &[f64],
    phase: Duration,
) -> String {
    let mut rows = vec![
        ["rank", "address", "host", "cores", "round trip", "clock ±", "drift", "MB/s"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (rank, address) in peers.place().addresses.iter().enumerate() {
        let portrait = String::from_utf8_lossy(&portraits[rank]).into_owned();
        let (host, cores) = portrait.split_once('\t').unwrap_or((&portrait, ""));
        let mut row = vec![rank.to_string(), address.clone(), host.to_owned(), cores.to_owned()];
        if rank == 0 {
            row.extend(["–"; 4].map(str::to_owned));
        } else {
            let (first, last) = (before[rank], after[rank]);
            let drift = last.ahead_ns.abs_diff(first.ahead_ns);
            let micros = |nanos: u64| format!("{} µs", nanos.div_ceil(1000));
            let (known, both) = (first.within_ns.min(last.within_ns), first.within_ns + last.within_ns);
            row.push(micros(first.fastest_ns.min(last.fastest_ns)));
            row.push(micros(known));
            row.push(if drift <= both { "–".to_owned() } else { micros(drift) });
            row.push(format!("{:.0}", rates[rank]));
        }
        rows.push(row);
    }
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let left = (1..=2).contains(&column);
            if left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    let summary = format!(
        "All {} machines run isobench {}; a phase, in which all wait for all, takes {:.2} ms (median of {PHASES}).",
        peers.number(),
        env!("CARGO_PKG_VERSION"),
        phase.as_secs_f64() * 1e3,
    );
    let legend = format!(
        "Round trip: the fastest of 20 messages there and back; clock ±: half of that, by which times of this machine \
         and rank 0 can be wrong against each other; drift: how far the clocks drifted apart during the test, if that \
         is more; MB/s: {} MB from rank 0, packing and unpacking included.",
        PIECES * PIECE / 1_000_000,
    );
    let width = output::width();
    let lines = [summary, legend].iter().flat_map(|line| wrap(line, width, 0)).collect::<Vec<_>>();
    format!("{text}\n{}\n", lines.join("\n"))
}

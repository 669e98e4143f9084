//! `-i`: isobench, as pgbench, beside pgbench, in turn on the same server.
//!
//! Besides the time it measures the CPU time of both client and server, which says whose time it is.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use procfs::process::Process;
use wait4::Wait4 as _;

use crate::client::{ClientError, shown};
use crate::contender::Address;
use crate::ratio::Ratio;

/// One initialisation.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// From its start to its end.
    pub elapsed: Duration,
    /// CPU time of the client.
    pub client: Duration,
    /// CPU time of the server's sessions.
    pub server: Duration,
    /// The steps with their seconds, as the client prints them.
    pub steps: Vec<(String, f64)>,
}

/// Makes the tables of an address `pairs` times with each program, in turn.
///
/// # Errors
/// A program can't be started, or fails.
pub fn run(
    programs: [&Path; 2],
    address: &Address,
    pairs: u32,
) -> Result<Vec<(Filled, Filled)>, ClientError> {
    let [isobench, pgbench] = programs;
    let made = |program: &Path, words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).args(["-i", "-q", "-s", &address.scale.to_string(), "-h", &address.host]);
        command.args(["-p", &address.port.to_string(), "-U", &address.user, &address.database]);
        filled(&mut command, Path::new(&address.host))
    };
    // The first one finds no tables to drop, and the server's files not yet there.
    made(pgbench, &[])?;
    let mut all = Vec::new();
    for pair in 0..pairs {
        let ours = || made(isobench, &["pgbench"]);
        let theirs = || made(pgbench, &[]);
        all.push(if pair % 2 == 0 {
            let first = ours()?;
            (first, theirs()?)
        } else {
            let first = theirs()?;
            (ours()?, first)
        });
    }
    Ok(all)
}

fn filled(command: &mut Command, data: &Path) -> Result<Filled, ClientError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let system = |source| ClientError::System { program: program.clone(), source };
    let before = sessions_cpu(data);
    let began = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(system)?;
    let mut output = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        std::io::Read::read_to_string(&mut stderr, &mut output).map_err(system)?;
    }
    let used = child.wait4().map_err(system)?;
    let elapsed = began.elapsed();
    let last = output.lines().last().unwrap_or_default();
    if !used.status.success() {
        let (command, status) = (shown(command), used.status);
        return Err(ClientError::Failed { command, status, output: last.to_owned() });
    }
    // The server accounts a session when it has ended.
    std::thread::sleep(Duration::from_millis(100));
    let server = sessions_cpu(data).saturating_sub(before);
    let client = used.rusage.utime + used.rusage.stime;
    Ok(Filled { elapsed, client, server, steps: steps(last) })
}

/// The CPU time of all sessions that have ended, of the server with this data folder; zero if it
/// isn't known.
fn sessions_cpu(data: &Path) -> Duration {
    let ended = || {
        let file = fs::read_to_string(data.join("postmaster.pid")).ok()?;
        let stat = Process::new(file.lines().next()?.trim().parse().ok()?).ok()?.stat().ok()?;
        let ticks = u64::try_from(stat.cutime + stat.cstime).ok()?;
        Some(Duration::from_secs_f64(ticks as f64 / procfs::ticks_per_second() as f64))
    };
    ended().unwrap_or_default()
}

/// The steps in a line such as "done in 1.20 s (drop tables 0.10 s, create tables 0.00 s)."
fn steps(line: &str) -> Vec<(String, f64)> {
    let within = line.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let steps = within.map_or("", |(steps, _)| steps).split(", ");
    let one = |step: &str| {
        let (name, seconds) = step.strip_suffix(" s")?.rsplit_once(' ')?;
        Some((name.to_owned(), seconds.parse().ok()?))
    };
    steps.filter_map(one).collect()
}

/// The table: the ratios of isobench's times to pgbench's, and the clients' share.
pub fn table(pairs: &[(Filled, Filled)]) -> String {
    let mut lines = Vec::new();
    let mut add = |name: &str, of: &dyn Fn(&Filled) -> Option<f64>| {
        let known = pairs.iter().filter_map(|(ours, theirs)| Some((of(ours)?, of(theirs)?)));
        let ratio = Ratio::of(known.filter(|(_, theirs)| *theirs > 0.0));
        lines.extend(ratio.map(|ratio| format!("{name:28} {ratio}\n")));
    };
    add("elapsed", &|one| Some(one.elapsed.as_secs_f64()));
    let names = pairs.first().map_or(&[][..], |(ours, _)| &ours.steps);
    for (name, _) in names {
        add(name, &|one| one.steps.iter().find(|(step, _)| step == name).map(|(_, seconds)| *seconds));
    }
    add("client CPU", &|one| Some(one.client.as_secs_f64()));
    add("server CPU", &|one| Some(one.server.as_secs_f64()));
    let share = |one: &Filled| one.client.as_secs_f64() / one.elapsed.as_secs_f64();
    let shares = |of: fn(&(Filled, Filled)) -> &Filled| {
        Ratio::of(pairs.iter().map(|pair| (share(of(pair)), 1.0)))
            .map_or_else(String::new, |it| it.to_string())
    };
    lines.push(format!("{:28} {}\n", "client CPU/elapsed, isobench", shares(|pair| &pair.0)));
    lines.push(format!("{:28} {}\n", "client CPU/elapsed, pgbench", shares(|pair| &pair.1)));
    format!("{:28} isobench/pgbench\n{}", "-i", lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_from_the_last_line() {
        let line = "done in 6.79 s (drop tables 0.29 s, client-side generate 4.22 s, primary keys 2.08 s).";
        let names = [("drop tables", 0.29), ("client-side generate", 4.22), ("primary keys", 2.08)];
        assert_eq!(steps(line), names.map(|(name, seconds)| (name.to_owned(), seconds)));
        assert!(steps("pgbench: error: nothing").is_empty());
    }

    #[test]
    fn the_table_has_ratios_of_pairs() {
        let one = |seconds: f64| Filled {
            elapsed: Duration::from_secs_f64(seconds),
            client: Duration::from_secs_f64(seconds / 10.0),
            server: Duration::from_secs_f64(seconds / 2.0),
            steps: vec![("vacuum".to_owned(), seconds / 4.0)],
        };
        let table = table(&[(one(1.0), one(2.0)), (one(3.0), one(4.0))]);
        assert!(table.contains("elapsed                      0.62 (0.50..0.75)"), "{table}");
        assert!(table.contains("vacuum                       0.62 (0.50..0.75)"), "{table}");
        assert!(table.contains("client CPU/elapsed, pgbench  0.10 (0.10..0.10)"), "{table}");
    }
}

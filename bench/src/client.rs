//! One run of one client program: starts it, waits, takes its CPU time and reads its summary.
//!
//! CPU time is the kernel's account of the finished process (`wait4`: user and system time of it
//! and of the children it waited for), so it includes start-up and connecting. Knows nothing of
//! cases or rounds.

use std::io::{Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use wait4::Wait4;

/// Set by the signal handler: Ctrl-C or SIGTERM was received.
pub static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// What one run of a client gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The summary's "number of transactions actually processed", above 0.
    pub transactions: u64,
    /// The summary's tps, without the time to connect.
    pub tps: f64,
    /// Peak resident memory in bytes, as last seen while it ran.
    pub memory: u64,
    /// The summary's "initial connection time"; zero if it has none.
    pub connecting: Duration,
    /// CPU time spent outside the kernel.
    pub user: Duration,
    /// CPU time spent in the kernel.
    pub system: Duration,
}

impl Sample {
    /// User and system time per transaction, in microseconds.
    pub fn cpu(&self) -> f64 {
        self.user_cpu() + self.system_cpu()
    }

    /// User time per transaction, in microseconds.
    pub fn user_cpu(&self) -> f64 {
        self.user.as_secs_f64() * 1e6 / self.transactions as f64
    }

    /// System time per transaction, in microseconds.
    pub fn system_cpu(&self) -> f64 {
        self.system.as_secs_f64() * 1e6 / self.transactions as f64
    }
}

/// Why a client gave no sample.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The system refused to start or watch it.
    #[error("can't run {program}: {source}")]
    System {
        /// The program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It did not end in time and was killed.
    #[error("{command} did not end within {seconds} s and was killed; its last words: {words}")]
    TooLong {
        /// The command line.
        command: String,
        /// The limit.
        seconds: u64,
        /// The end of its standard error.
        words: String,
    },
    /// It ended with a failure.
    #[error("{command} failed ({status}); its last words: {words}")]
    Failed {
        /// The command line.
        command: String,
        /// Exit status or signal.
        status: ExitStatus,
        /// The end of its standard error.
        words: String,
    },
    /// It printed so much that printing is what was measured, as under pgbench's `--debug`.
    #[error(
        "{command} wrote {bytes} bytes to standard error, so its CPU time is that of printing; it began: {words}"
    )]
    Chatty {
        /// The command line.
        command: String,
        /// How much.
        bytes: usize,
        /// The first line.
        words: String,
    },
    /// Its summary lacks a line, or says that nothing was done.
    #[error("{command} ended well, but its output has {problem}")]
    Summary {
        /// The command line.
        command: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// We were asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Most bytes on standard error of a run that is measured; a few warnings are far below.
const LOUDEST: usize = 16 * 1024;

/// Runs a program to its end and reads its summary, killing it when `limit` is over or on an
/// interrupt.
///
/// # Errors
/// It can't be started, fails, takes too long, prints too much, or prints no summary with
/// transactions in it.
pub fn run(command: &mut Command, limit: Duration) -> Result<Sample, ClientError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let system = |source| ClientError::System { program: program.clone(), source };
    // Files, not pipes: whatever it prints, it never waits for us.
    let mut output = tempfile::tempfile().map_err(system)?;
    let mut errors = tempfile::tempfile().map_err(system)?;
    command.stdin(Stdio::null());
    command.stdout(output.try_clone().map_err(system)?);
    command.stderr(errors.try_clone().map_err(system)?);
    let child = command.spawn().map_err(system)?;
    let mut memory = 0;
    let in_time = wait_or_kill(&child, limit, &mut memory);
    let used = child.wait4().map_err(system)?;
    let shown = shown(command);
    if INTERRUPTED.load(Ordering::Relaxed) {
        return Err(ClientError::Interrupted);
    }
    let errors = text(&mut errors);
    let words = last_words(&errors);
    if !in_time.map_err(system)? {
        return Err(ClientError::TooLong { command: shown, seconds: limit.as_secs(), words });
    }
    if !used.status.success() {
        return Err(ClientError::Failed { command: shown, status: used.status, words });
    }
    if errors.len() > LOUDEST {
        let words = errors.lines().next().unwrap_or_default().to_string();
        return Err(ClientError::Chatty { command: shown, bytes: errors.len(), words });
    }
    let output = text(&mut output);
    let (transactions, tps) =
        read_summary(&output).map_err(|problem| ClientError::Summary { command: shown, problem })?;
    let connecting = connecting(&output);
    let (user, system) = (used.rusage.utime, used.rusage.stime);
    Ok(Sample { transactions, tps, memory, connecting, user, system })
}

/// Waits until the child has ended, without reaping it; kills it at the end of the limit, on an
/// interrupt and when it can't be watched. False if it took too long. Meanwhile it notes the
/// child's memory.
fn wait_or_kill(child: &std::process::Child, limit: Duration, memory: &mut u64) -> std::io::Result<bool> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let start = Instant::now();
    // Short enough to notice an interrupt that another thread's system call swallowed.
    let slice = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
    loop {
        let result = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&slice));
        let late = start.elapsed() >= limit;
        match result {
            Ok(1..) => return Ok(true),
            Ok(0) | Err(Errno::INTR) if late || INTERRUPTED.load(Ordering::Relaxed) => {
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
                return Ok(!late);
            }
            Ok(0) | Err(Errno::INTR) => *memory = peak_memory(child.id()).unwrap_or(*memory),
            Err(error) => {
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
                return Err(error.into());
            }
        }
    }
}

/// The peak resident memory of a process, in bytes. Not that of `wait4`, which begins with the
/// memory of this program.
fn peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

/// A command as one would type it.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn text(file: &mut std::fs::File) -> String {
    let mut bytes = Vec::new();
    // What can't be read back is reported as a summary without its lines.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn last_words(errors: &str) -> String {
    let lines: Vec<_> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" | ");
    if last.is_empty() { "none".to_string() } else { last }
}

/// The time to open the connections from pgbench's summary.
fn connecting(output: &str) -> Duration {
    let line = output.lines().find_map(|line| line.strip_prefix("initial connection time = "));
    let milliseconds = line.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    Duration::try_from_secs_f64(milliseconds.unwrap_or(0.0) / 1e3).unwrap_or_default()
}

/// Transactions and tps from pgbench's summary.
fn read_summary(output: &str) -> Result<(u64, f64), &'static str> {
    let line = |start: &str| output.lines().find_map(|line| line.strip_prefix(start));
    let count = line("number of transactions actually processed: ")
        .ok_or("no line \"number of transactions actually processed\"")?;
    // With -t it is "done/planned".
    let count = count.split('/').next().unwrap_or_default().trim();
    let transactions = count.parse().map_err(|_| "no number of transactions")?;
    if transactions == 0 {
        return Err("no transaction in it; give it more --time");
    }
    let tps = line("tps = ").and_then(|text| text.split(' ').next()).ok_or("no line \"tps = \"")?;
    Ok((transactions, tps.parse().map_err(|_| "no number behind \"tps = \"")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn the_summary_is_read() {
        let sample = run(
            &mut shell(
                "sleep 0.5; echo 'number of transactions actually processed: 40/50'; \
                echo 'initial connection time = 7.5 ms'; echo 'tps = 12.5 (without initial connection time)'",
            ),
            LIMIT,
        )
        .unwrap();
        assert_eq!(sample.transactions, 40);
        assert_eq!(sample.connecting, Duration::from_micros(7500));
        assert!(sample.memory > 4096, "{}", sample.memory);
        assert!((sample.tps - 12.5).abs() < 1e-9);
    }

    #[test]
    fn cpu_per_transaction_is_in_microseconds() {
        let user = Duration::from_secs(1);
        let (memory, connecting) = (0, Duration::ZERO);
        let sample = Sample { transactions: 100_000, tps: 1.0, memory, connecting, user, system: user * 2 };
        let parts = [sample.user_cpu(), sample.system_cpu(), sample.cpu()];
        assert_eq!(parts.map(|part| format!("{part:.2}")), ["10.00", "20.00", "30.00"]);
    }

    #[test]
    fn a_busy_client_has_cpu_time() {
        let summary = "echo 'number of transactions actually processed: 1'; echo 'tps = 1 x'";
        let busy = format!("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; {summary}");
        let sample = run(&mut shell(&busy), LIMIT).unwrap();
        assert!(sample.user + sample.system > Duration::ZERO);
    }

    #[test]
    fn failures_say_what_happened() {
        let error = run(&mut shell("echo one >&2; echo two >&2; exit 3"), LIMIT).unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("one | two"), "{error}");
        let error = run(&mut shell("echo hello"), LIMIT).unwrap_err().to_string();
        assert!(error.contains("no line \"number of transactions"), "{error}");
        let error = run(&mut shell("echo 'number of transactions actually processed: 0'"), LIMIT)
            .unwrap_err()
            .to_string();
        assert!(error.contains("more --time"), "{error}");
        let error = run(&mut Command::new("/nonexistent/client"), LIMIT).unwrap_err().to_string();
        assert!(error.contains("can't run /nonexistent/client"), "{error}");
    }

    #[test]
    fn a_client_that_prints_all_the_time_is_not_measured() {
        let loud = "i=0; while [ $i -lt 1000 ]; do echo 'client 0 receiving' >&2; i=$((i+1)); done; \
            echo 'number of transactions actually processed: 1'; echo 'tps = 1 x'";
        let error = run(&mut shell(loud), LIMIT).unwrap_err();
        assert!(matches!(error, ClientError::Chatty { bytes: 19_000, .. }), "{error}");
    }

    #[test]
    fn a_client_that_hangs_is_killed() {
        let error = run(&mut shell("exec sleep 600"), Duration::from_millis(300)).unwrap_err();
        assert!(matches!(error, ClientError::TooLong { .. }), "{error}");
    }
}

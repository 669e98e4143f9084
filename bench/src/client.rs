//! A run of a client program: starts it, waits for it, and gets its CPU time and summary.
//!
//! CPU time is the kernel's account of the finished process (`wait4`: user and system time of the
//! process and of the children it waited for), so it includes start-up and connecting.

use std::io::{Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use wait4::Wait4;

/// Set by the signal handler when Ctrl-C or SIGTERM is received.
pub static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The results of one run of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The "number of transactions actually processed" in the summary, above 0.
    pub transactions: u64,
    /// The tps in the summary, without the connection time.
    pub tps: f64,
    /// The peak resident memory in bytes, last measured while it ran.
    pub memory: u64,
    /// The "initial connection time" in the summary; zero if it has none.
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

/// The reason that a run gave no results.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The system could not start or monitor it.
    #[error("can't run {program}: {source}")]
    System {
        /// The program.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// It did not end in time and was killed.
    #[error("{command} did not end within {seconds} s and was killed; the end of its output: {output}")]
    TooLong {
        /// The command line.
        command: String,
        /// The limit.
        seconds: u64,
        /// The end of its standard error.
        output: String,
    },
    /// It ended with a failure.
    #[error("{command} failed ({status}); the end of its output: {output}")]
    Failed {
        /// The command line.
        command: String,
        /// The exit status or signal.
        status: ExitStatus,
        /// The end of its standard error.
        output: String,
    },
    /// It printed so much that the measurement is of printing, as with pgbench's `--debug`.
    #[error(
        "{command} wrote {bytes} bytes to standard error, so its CPU time is that of printing; it starts with: {output}"
    )]
    Chatty {
        /// The command line.
        command: String,
        /// The number of bytes.
        bytes: usize,
        /// The first line.
        output: String,
    },
    /// Its summary lacks a line, or reports no transactions.
    #[error("{command} succeeded, but its output has {problem}")]
    Summary {
        /// The command line.
        command: String,
        /// The problem.
        problem: &'static str,
    },
    /// The benchmark was interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// The maximum number of bytes on standard error of a measured run, far above a few warnings.
const LOUDEST: usize = 16 * 1024;

/// Runs a program and reads its summary; kills it after `limit` or on an interrupt.
///
/// # Errors
/// If it can't be started, fails, takes too long, prints too much, or prints no summary with
/// transactions.
pub fn run(command: &mut Command, limit: Duration) -> Result<Sample, ClientError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let system = |source| ClientError::System { program: program.clone(), source };
    // Files rather than pipes, so that printing never blocks.
    let mut stdout = tempfile::tempfile().map_err(system)?;
    let mut errors = tempfile::tempfile().map_err(system)?;
    command.stdin(Stdio::null());
    command.stdout(stdout.try_clone().map_err(system)?);
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
    let output = last_output(&errors);
    if !in_time.map_err(system)? {
        return Err(ClientError::TooLong { command: shown, seconds: limit.as_secs(), output });
    }
    if !used.status.success() {
        return Err(ClientError::Failed { command: shown, status: used.status, output });
    }
    if errors.len() > LOUDEST {
        let output = errors.lines().next().unwrap_or_default().to_string();
        return Err(ClientError::Chatty { command: shown, bytes: errors.len(), output });
    }
    let summary = text(&mut stdout);
    let (transactions, tps) =
        read_summary(&summary).map_err(|problem| ClientError::Summary { command: shown, problem })?;
    let connecting = connecting(&summary);
    let (user, system) = (used.rusage.utime, used.rusage.stime);
    Ok(Sample { transactions, tps, memory, connecting, user, system })
}

/// Waits until the child has ended, without reaping it; kills it after the time limit, on an
/// interrupt, or if it can't be monitored. Returns false if it took too long. Measures the child's
/// memory meanwhile.
fn wait_or_kill(child: &std::process::Child, limit: Duration, memory: &mut u64) -> std::io::Result<bool> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let start = Instant::now();
    // Short enough to notice an interrupt that was delivered during another thread's system call.
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

/// The peak resident memory of a process, in bytes. That of `wait4` isn't used, because it starts
/// with the memory of this program.
fn peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

/// A command as typed in a shell.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn text(file: &mut std::fs::File) -> String {
    let mut bytes = Vec::new();
    // If the file can't be read, the summary lacks its lines, which is reported.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn last_output(errors: &str) -> String {
    let lines: Vec<_> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" | ");
    if last.is_empty() { "none".to_string() } else { last }
}

/// The connection time in pgbench's summary.
fn connecting(output: &str) -> Duration {
    let line = output.lines().find_map(|line| line.strip_prefix("initial connection time = "));
    let milliseconds = line.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    Duration::try_from_secs_f64(milliseconds.unwrap_or(0.0) / 1e3).unwrap_or_default()
}

/// The transactions and tps in pgbench's summary.
fn read_summary(output: &str) -> Result<(u64, f64), &'static str> {
    let line = |start: &str| output.lines().find_map(|line| line.strip_prefix(start));
    let count = line("number of transactions actually processed: ")
        .ok_or("no line \"number of transactions actually processed\"")?;
    // With -t the format is "done/planned".
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

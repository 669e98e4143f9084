//! What happens to the server while its clients work: carries it out, and notes when.
//!
//! Not here: which faults there are (`isobench_plan`), and what became of the attempts
//! (`settlement.rs`).

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use isobench_database::Outage;
use isobench_limits::LIMITS;
use isobench_pgserver::{Server, Shutdown};
use isobench_pgwire::{ConnectOptions, Connection};
use isobench_plan::{Fault, FaultKind};

/// The pause between two looks at a server that recovers by itself.
const PAUSE: Duration = Duration::from_millis(2);

/// How long something that a program has said may still be on its way when it has ended.
const HEARD: Duration = Duration::from_millis(200);

/// The most that is read of what a program has said, in bytes.
const MOST: usize = 1 << 20;

/// What is shown of a program's output, in bytes.
const SHOWN: usize = 500;

/// The server to which faults happen.
#[derive(Debug, Clone)]
pub struct Victim {
    /// The embedded one; `None`: a named one, to which only the user's program does something.
    server: Option<Arc<Server>>,
    /// How to connect to each node: the server itself, then its standbys.
    nodes: Vec<ConnectOptions>,
    /// The user's program.
    command: Option<String>,
}

/// A fault that has happened, or was to happen.
#[derive(Debug, Clone, PartialEq)]
pub struct Struck {
    /// The fault.
    pub fault: Fault,
    /// When it happened, from the start of the measured part; `None` if the clients had finished
    /// before.
    pub at: Option<Duration>,
    /// When the server accepted connections again, or went on; `None` if it didn't.
    pub back: Option<Duration>,
    /// Why it didn't, or what else went wrong.
    pub problem: Option<String>,
}

/// What commits have to survive if this happens; `None` if that isn't known.
pub fn outage(kind: FaultKind) -> Option<Outage> {
    Some(match kind {
        // A killed backend makes the server forget its memory, as in a crash.
        FaultKind::Crash | FaultKind::StopImmediate | FaultKind::Backend => Outage::Crash,
        FaultKind::StopFast => Outage::Shutdown,
        FaultKind::Promote => Outage::Failover,
        FaultKind::Freeze(_)
        | FaultKind::Partition(_)
        | FaultKind::PartitionStandby(_)
        | FaultKind::Disconnect => Outage::Pause,
        FaultKind::Command => return None,
    })
}

impl Victim {
    /// A server, how to connect to it and to each of its standbys, and the user's program.
    pub fn new(server: Option<Arc<Server>>, nodes: Vec<ConnectOptions>, command: Option<String>) -> Victim {
        Victim { server, nodes, command }
    }

    /// Lets the faults happen, in the order of their times since `began`. Faults whose time hasn't come
    /// when `over` is closed don't happen any more; what has happened is brought to its end.
    pub fn strike(&self, faults: &[Fault], began: Instant, over: &Receiver<()>) -> Vec<Struck> {
        let mut faults = faults.to_vec();
        faults.sort_by(|one, other| one.at.total_cmp(&other.at));
        let mut node = 0;
        let strike = |fault: Fault| {
            let at = Duration::from_secs_f64(fault.at).saturating_sub(began.elapsed());
            if over.recv_timeout(at) != Err(RecvTimeoutError::Timeout) {
                return Struck { fault, at: None, back: None, problem: None };
            }
            let at = began.elapsed();
            let done = self.happen(fault.kind, &mut node, over);
            let back = done.is_ok().then(|| began.elapsed());
            Struck { fault, at: Some(at), back, problem: done.err() }
        };
        faults.into_iter().map(strike).collect()
    }

    /// Lets one fault happen, and waits until it is over. `node` is the primary, which a promotion
    /// changes.
    fn happen(&self, kind: FaultKind, node: &mut usize, over: &Receiver<()>) -> Result<(), String> {
        let program = || run(self.command.as_deref().unwrap_or_default(), over);
        let server = match (kind, &self.server) {
            (_, Some(server)) => server,
            (FaultKind::Command, None) => return program(),
            (_, None) => return Err("nothing but --fault-command happens to a named server".to_owned()),
        };
        let primary = *node;
        // What passes by itself ends with the run, as the clients can't finish before.
        let wait = |seconds: f64| {
            let _ = over.recv_timeout(Duration::from_secs_f64(seconds));
        };
        let again = || server.start_again(primary);
        let done = match kind {
            FaultKind::Crash => server.kill(primary).and_then(|()| again()),
            FaultKind::StopFast => server.shut_down(primary, Shutdown::Fast).and_then(|()| again()),
            FaultKind::StopImmediate => server.shut_down(primary, Shutdown::Immediate).and_then(|()| again()),
            FaultKind::Freeze(seconds) => {
                server.freeze(primary);
                wait(seconds);
                server.thaw(primary);
                Ok(())
            }
            FaultKind::Partition(seconds) => {
                server.hold_up();
                wait(seconds);
                server.let_pass();
                Ok(())
            }
            FaultKind::PartitionStandby(seconds) => {
                if !server.hold_up_standbys() {
                    return Err("no standby received anything that could be held up".to_owned());
                }
                wait(seconds);
                server.let_standbys_receive();
                Ok(())
            }
            FaultKind::Disconnect => {
                server.cut();
                Ok(())
            }
            FaultKind::Command => return program(),
            FaultKind::Backend => return self.kill_backend(server, primary),
            FaultKind::Promote => {
                server.kill(primary).map_err(|error| error.to_string())?;
                *node = self.promote()?;
                return Ok(());
            }
        };
        done.map_err(|error| error.to_string())
    }

    fn kill_backend(&self, server: &Server, node: usize) -> Result<(), String> {
        if !server.kill_backend(node) {
            return Err("no client was connected whose process could be killed".to_owned());
        }
        let began = Instant::now();
        let mut was_busy = false;
        while began.elapsed() < LIMITS.recovery {
            match Connection::open(&self.nodes[node]) {
                Ok(connection) => {
                    connection.close();
                    // It may not have noticed yet, or recover faster than it can be asked.
                    if was_busy || began.elapsed() > LIMITS.notice {
                        return Ok(());
                    }
                }
                Err(_) => was_busy = true,
            }
            sleep(PAUSE);
        }
        Err(format!("the server wasn't ready within {} s", LIMITS.recovery.as_secs()))
    }

    /// Makes the standby that has the most the primary, as tools for failover do. Returns its node.
    fn promote(&self) -> Result<usize, String> {
        let mut best: Option<(u64, usize, Connection)> = None;
        let mut problem = "there is no standby".to_owned();
        for (node, options) in self.nodes.iter().enumerate().skip(1) {
            match received(options) {
                Ok((position, connection)) => {
                    if best.as_ref().is_none_or(|(most, ..)| position > *most) {
                        best = Some((position, node, connection));
                    }
                }
                Err(error) => problem = error,
            }
        }
        let (_, node, mut connection) = best.ok_or(problem)?;
        let seconds = LIMITS.recovery.as_secs();
        let promoted = connection.value(&format!("SELECT pg_catalog.pg_promote(true, {seconds})"));
        connection.close();
        match promoted {
            Ok(answer) if answer.as_deref() == Some("t") => Ok(node),
            Ok(_) => Err(format!("the standby wasn't promoted within {seconds} s")),
            Err(error) => Err(format!("the standby wasn't promoted: {error}")),
        }
    }
}

/// Runs a program of the user's, and waits until it has ended. One that is still busy a minute after the
/// clients have finished is killed.
fn run(program: &str, over: &Receiver<()>) -> Result<(), String> {
    let failed = |why: &dyn std::fmt::Display| format!("--fault-command {program}: {why}");
    let mut child = Command::new(program)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    // It isn't to wait for somebody who reads what it says.
    let (heard, said) = channel();
    if let Some(mut errors) = child.stderr.take() {
        std::thread::spawn(move || {
            let mut buffer = vec![0; SHOWN];
            while let Ok(read @ 1..) = errors.read(&mut buffer) {
                let _ = heard.send(buffer[..read].to_vec());
            }
        });
    }
    let status = ended(&mut child, over).map_err(|why| failed(&why))?;
    if status.success() {
        return Ok(());
    }
    // A server that it has started may keep what it says open for ever.
    let end = Instant::now() + HEARD;
    let next = || said.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
    let said: Vec<u8> = std::iter::from_fn(next).flatten().take(MOST).collect();
    let last = String::from_utf8_lossy(&said[said.len().saturating_sub(SHOWN)..]).trim().to_owned();
    let last = if last.is_empty() { String::new() } else { format!(": {last}") };
    Err(failed(&format!("{status}{last}")))
}

fn ended(child: &mut Child, over: &Receiver<()>) -> Result<ExitStatus, String> {
    let mut finished: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(status);
        }
        if over.recv_timeout(PAUSE) == Err(RecvTimeoutError::Disconnected) {
            let since = *finished.get_or_insert_with(Instant::now);
            if since.elapsed() > LIMITS.recovery {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!(
                    "it was still busy {} s after the clients had finished",
                    LIMITS.recovery.as_secs()
                ));
            }
            sleep(PAUSE);
        }
    }
}

/// How far a standby has received the log, as a number of bytes, and the session that said so.
fn received(options: &ConnectOptions) -> Result<(u64, Connection), String> {
    const QUESTION: &str = "SELECT pg_catalog.pg_wal_lsn_diff(coalesce(pg_catalog.pg_last_wal_receive_lsn(), \
        pg_catalog.pg_last_wal_replay_lsn()), '0/0')::bigint";
    let mut connection = Connection::open(options).map_err(|error| error.to_string())?;
    let answer = connection.value(QUESTION).map_err(|error| error.to_string())?;
    let position = answer.and_then(|text| text.parse().ok());
    position.map(|position| (position, connection)).ok_or_else(|| "a standby has received nothing".to_owned())
}

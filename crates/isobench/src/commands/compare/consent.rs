//! The user's consent to a comparison that changes the user's own data (`--schema`).
//!
//! Not here: what is about to happen (`isobench_comparison`).

use std::io::{self, BufRead, IsTerminal};
use std::os::fd::AsFd;
use std::time::Duration;

use isobench_comparison::{Failure, Outcome};
use isobench_runner::{Control, Urgency};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Interval at which requests to stop are looked for while the user thinks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Tells what is about to happen, and asks for the schema's name on the terminal, unless the user
/// has agreed already.
///
/// # Errors
/// The user doesn't agree, can't be asked, or asks to stop.
pub fn require(announcement: &str, schema: &str, agreed: bool, control: &Control) -> Outcome {
    eprintln!("warning: {announcement}");
    if agreed {
        return Ok(());
    }
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Failure::setup(format!(
            "--schema {schema}: nothing was touched, because there is no terminal to ask on; add --yes to go ahead"
        )));
    }
    eprint!("Type the schema's name to go ahead: ");
    let answer = answer(control)?;
    if answer.trim() == schema {
        return Ok(());
    }
    Err(Failure::setup(format!(
        "--schema {schema}: nothing was touched: the answer wasn't the schema's name"
    )))
}

/// Waits for a line on standard input; a signal ends the wait.
fn answer(control: &Control) -> Outcome<String> {
    let stdin = io::stdin();
    let failed = |error: io::Error| Failure::setup(format!("--schema: no answer can be read: {error}"));
    let tick = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK_EVERY.subsec_nanos()) };
    loop {
        if control.urgency() > Urgency::None {
            return Err(Failure::Incomplete("interrupted before anything was touched".to_owned()));
        }
        let mut waiting = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
        match poll(&mut waiting, Some(&tick)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => return Err(failed(error.into())),
        }
    }
    let mut line = String::new();
    stdin.lock().read_line(&mut line).map_err(failed)?;
    Ok(line)
}

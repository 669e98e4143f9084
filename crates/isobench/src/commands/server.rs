//! `isobench server`: an embedded PostgreSQL in the foreground.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use isobench_runner::{Control, Urgency};

use crate::interrupt;
use crate::options::ServerOptions;
use crate::output;
use crate::servers;
use isobench_comparison::{Failure, Outcome};

/// Starts the server, prints how to connect, and stops it on Ctrl-C.
///
/// # Errors
/// The server doesn't start, or dies.
pub fn server(options: &ServerOptions) -> Outcome {
    let control = Arc::new(Control::new());
    interrupt::watch(&control)?;
    let server = servers::start(&options.embedded)?;
    output::print(&format!(
        "PostgreSQL {} ({}) is running; Ctrl-C stops it and removes it\n{}\n",
        server.version(),
        server.origin(),
        server.psql_line()
    ))?;
    while control.urgency() == Urgency::None {
        if !server.is_running() {
            return Err(Failure::Incomplete(format!("the server has ended:\n{}", server.log_tail())));
        }
        thread::sleep(Duration::from_millis(100));
    }
    server.stop().map_err(Failure::setup)
}

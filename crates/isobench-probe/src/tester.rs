//! Runs a specification: each permutation of its steps, over a connection for each session.
//!
//! Not here: one session's stream (`tester/session.rs`), the order of events within a permutation
//! (`tester/permutation.rs`), how waiting is recognised (`tester/waiting.rs`).

mod error;
mod permutation;
mod session;
mod waiting;

use std::time::Duration;

use isobench_database::{Error, Product};
use isobench_isolation::Level;
use isobench_pgwire::Connection;

pub use self::error::RunError;
use self::permutation::Run;
use self::session::Session;
use self::waiting::Waits;
use crate::event::Event;
use crate::spec::Spec;

/// How long things may take, and what ends them.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How long a step may take; then it is cancelled, and after the same time again its session is ended. The isolation
    /// tester's is 360 s.
    pub step_timeout: Duration,
    /// Where no view tells who waits: how long a step goes without an answer until it counts as waiting.
    pub waits_after: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { step_timeout: Duration::from_secs(30), waits_after: Duration::from_millis(300) }
    }
}

/// Runs specifications against a server.
pub struct Tester<'a> {
    /// Opens a session in the place where tables may be made.
    pub open: &'a dyn Fn() -> Result<Connection, Error>,
    /// What the server is.
    pub product: &'static Product,
    /// The level of the sessions; `None`: whatever the server gives.
    pub level: Option<Level>,
    /// The limits.
    pub options: Options,
    /// Asked again and again whether to stop.
    pub stopped: &'a dyn Fn() -> bool,
}

/// The control connection's name, as the server is told it.
const CONTROL: &str = "control connection";

impl Tester<'_> {
    /// Runs all permutations and tells what happens.
    ///
    /// # Errors
    /// A session can't be opened, the setup fails, a step never ends, steps wait for each other's reports, a session is lost
    /// before a step of it is launched, or somebody stopped it. What was told before stands.
    pub fn run(&self, spec: &Spec, tell: &mut dyn FnMut(Event)) -> Result<(), RunError> {
        tell(Event::Begin(spec.sessions.len()));
        for step in spec.unused() {
            tell(Event::Warning(format!("unused step name: {step}")));
        }
        let mut control = self.session(CONTROL, None)?;
        let mut sessions = Vec::new();
        for session in &spec.sessions {
            sessions.push(self.session(&session.name, self.level)?);
        }
        let waits = Waits::find(self.product, self.options.waits_after, &mut control, &sessions);
        let mut run = Run::new(spec, self, control, sessions, waits, tell);
        spec.permutations().try_for_each(|permutation| run.permutation(&permutation))
    }

    /// Opens one session and sets it up.
    fn session(&self, name: &str, level: Option<Level>) -> Result<Session, RunError> {
        let opened = |source| RunError::Connection { session: name.to_owned(), source };
        let mut connection = (self.open)().map_err(opened)?;
        if let Some(level) = level {
            let sql = self.product.set_level(level);
            connection.execute(&sql).map_err(|error| opened(error.into()))?;
        }
        // So the isolation tester marks its sessions. Other products may lack the function; nothing depends on it.
        let quoted = name.replace('\'', "''");
        let mark = format!(
            "SELECT set_config('application_name', current_setting('application_name') || '/{quoted}', false)"
        );
        if let Err(error) = connection.execute(&mark)
            && error.is_connection_lost()
        {
            return Err(opened(error.into()));
        }
        let id = waiting::own_name(self.product, &mut connection);
        connection.take_notices();
        Ok(Session::new(name, id, connection.into_established()))
    }
}

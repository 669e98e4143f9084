//! Runs a specification: each permutation of its steps, with a connection for each session.
//!
//! `tester/session.rs` handles a session's messages, `tester/permutation.rs` the order of events
//! within a permutation, and `tester/waiting.rs` the detection of waiting steps.

mod bounded;
mod error;
mod options;
mod permutation;
mod session;
mod waiting;

use std::sync::Arc;

use isobench_database::{Error, Product};
use isobench_isolation::Level;
use isobench_limits::LIMITS;
use isobench_pgwire::Connection;

use self::bounded::{BoundedError, bounded};
pub use self::error::RunError;
pub use self::options::Options;
use self::permutation::Run;
pub(crate) use self::session::{Patience, Reply, TestSession};
pub(crate) use self::waiting::Waits;
use crate::event::Event;
use crate::spec::Spec;

/// Opens the session of this name, in which tables can be created; one whose name begins with `standby` is
/// on a standby, if there is one. It may block, so it is called in a thread of its own.
pub type Opener = Arc<dyn Fn(&str) -> Result<Connection, Error> + Send + Sync>;

/// The method of detecting whether a session waits for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitDetection {
    /// The product's view of waiting sessions, if it has one.
    View,
    /// Time alone: see [`Options::waits_after`].
    Time,
}

/// Runs specifications against a server.
pub struct Tester<'a> {
    /// Opens a session.
    pub open: Opener,
    /// The product of the server.
    pub product: &'static Product,
    /// The isolation level of the sessions; `None` for the server's default.
    pub level: Option<Level>,
    /// The time limits.
    pub options: Options,
    /// The method of detecting waiting steps.
    pub wait_detection: WaitDetection,
    /// Called repeatedly; if it returns true, the run is stopped.
    pub stopped: &'a dyn Fn() -> bool,
}

/// The control connection's name, as reported to the server.
const CONTROL: &str = "control connection";

impl Tester<'_> {
    /// Runs all permutations and reports events.
    ///
    /// # Errors
    /// If a session can't be opened, the setup fails, a step never ends, markers make steps wait
    /// for each other, a session is lost before one of its steps is launched, or the run is
    /// stopped. Events are reported until then.
    pub fn run(&self, spec: &Spec, emit: &mut dyn FnMut(Event)) -> Result<(), RunError> {
        for step in spec.unused() {
            emit(Event::Warning(format!("unused step name: {step}")));
        }
        emit(Event::Begin(spec.sessions.len()));
        let mut control = self.session(CONTROL, None)?;
        let mut sessions = Vec::new();
        for session in &spec.sessions {
            sessions.push(self.session(&session.name, self.level)?);
        }
        let view = match self.wait_detection {
            WaitDetection::View => Waits::find(self.product, &mut control, &sessions, self.stopped)?,
            WaitDetection::Time => None,
        };
        let waits = view.unwrap_or(Waits::Timed(self.options.waits_after));
        let mut run = Run::new(spec, self.options, self.stopped, control, sessions, waits, emit);
        spec.permutations().try_for_each(|permutation| run.permutation(&permutation))
    }

    /// Opens a session and sets it up.
    pub(crate) fn session(&self, name: &str, level: Option<Level>) -> Result<TestSession, RunError> {
        let (product, marked) = (self.product, name.to_owned());
        let (id, connection) = self.with_session(name, move |connection| {
            if let Some(level) = level {
                product.apply_level(connection, level)?;
            }
            mark(connection, &marked)?;
            Ok(waiting::own_name(product, connection))
        })?;
        Ok(TestSession::new(name, id, connection.into_established()))
    }

    /// Opens a session and does some work in it, unless the run is stopped.
    ///
    /// # Errors
    /// If it can't be opened, the work fails or takes too long, or the run is stopped.
    pub(crate) fn with_session<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<(T, Connection), RunError> {
        let (open, named) = (Arc::clone(&self.open), name.to_owned());
        let done = bounded(LIMITS.probe_session, self.stopped, move || {
            let mut connection = open(&named)?;
            let done = work(&mut connection)?;
            connection.take_notices();
            Ok((done, connection))
        });
        let failed = |source| RunError::Connection { session: name.to_owned(), source };
        match done {
            Ok(done) => done.map_err(failed),
            Err(BoundedError::Stopped) => Err(RunError::Stopped),
            Err(BoundedError::TooLong) => {
                Err(failed(isobench_pgwire::Error::Timeout(LIMITS.probe_session).into()))
            }
            Err(BoundedError::NoThread(why)) => Err(RunError::NoThread(why)),
        }
    }
}

/// Sets the session's application name as the isolation tester does. Other products may lack the
/// function, and nothing depends on it.
fn mark(connection: &mut Connection, name: &str) -> Result<(), Error> {
    let quoted = name.replace('\'', "''");
    let sql = format!(
        "SELECT set_config('application_name', current_setting('application_name') || '/{quoted}', false)"
    );
    match connection.execute(&sql) {
        Err(error) if error.is_connection_lost() => Err(error.into()),
        _ => Ok(()),
    }
}

//! Runs a specification: each permutation of its steps, over a connection for each session.
//!
//! Not here: one session's stream (`tester/session.rs`), the order of events within a permutation
//! (`tester/permutation.rs`), how waiting is recognised (`tester/waiting.rs`).

mod bounded;
mod error;
mod permutation;
mod session;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use isobench_database::{Error, Product};
use isobench_isolation::Level;
use isobench_pgwire::Connection;

use self::bounded::{GivenUp, OPENING, bounded};
pub use self::error::RunError;
use self::permutation::Run;
use self::session::Session;
use self::waiting::Waits;
use crate::event::Event;
use crate::spec::Spec;

/// How long things may take, and what ends them.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How long a step may take; then it is cancelled, and after the same time again its session is
    /// ended. The isolation tester's is 360 s.
    pub step_timeout: Duration,
    /// Where no view tells who waits: how long a step goes without an answer until it counts as
    /// waiting.
    pub waits_after: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { step_timeout: Duration::from_secs(30), waits_after: Duration::from_millis(300) }
    }
}

/// Opens a session in the place where tables may be made. It may block: that is done in a thread of
/// its own.
pub type Opener = Arc<dyn Fn() -> Result<Connection, Error> + Send + Sync>;

/// How it is found out whether a session waits for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhoWaits {
    /// By the product's view of who waits, if it has one.
    View,
    /// By time alone: see [`Options::waits_after`].
    Time,
}

/// Runs specifications against a server.
pub struct Tester<'a> {
    /// Opens a session.
    pub open: Opener,
    /// What the server is.
    pub product: &'static Product,
    /// The level of the sessions; `None`: whatever the server gives.
    pub level: Option<Level>,
    /// The limits.
    pub options: Options,
    /// How waiting is recognised.
    pub who_waits: WhoWaits,
    /// Asked again and again whether to stop.
    pub stopped: &'a dyn Fn() -> bool,
}

/// The control connection's name, as the server is told it.
const CONTROL: &str = "control connection";

impl Tester<'_> {
    /// Runs all permutations and tells what happens.
    ///
    /// # Errors
    /// A session can't be opened, the setup fails, a step never ends, steps wait for each other's
    /// reports, a session is lost before a step of it is launched, or somebody stopped it. What was
    /// told before stands.
    pub fn run(&self, spec: &Spec, tell: &mut dyn FnMut(Event)) -> Result<(), RunError> {
        for step in spec.unused() {
            tell(Event::Warning(format!("unused step name: {step}")));
        }
        tell(Event::Begin(spec.sessions.len()));
        let mut control = self.session(CONTROL, None)?;
        let mut sessions = Vec::new();
        for session in &spec.sessions {
            sessions.push(self.session(&session.name, self.level)?);
        }
        let waits = match self.who_waits {
            WhoWaits::View => Waits::find(self, &mut control, &sessions)?,
            WhoWaits::Time => Waits::Timed(self.options.waits_after),
        };
        let mut run = Run::new(spec, self, control, sessions, waits, tell);
        spec.permutations().try_for_each(|permutation| run.permutation(&permutation))
    }

    /// Opens one session and sets it up.
    fn session(&self, name: &str, level: Option<Level>) -> Result<Session, RunError> {
        let (product, marked) = (self.product, name.to_owned());
        let (id, connection) = self.with_session(name, move |connection| {
            if let Some(level) = level {
                connection.execute(&product.set_level(level))?;
            }
            mark(connection, &marked)?;
            Ok(waiting::own_name(product, connection))
        })?;
        Ok(Session::new(name, id, connection.into_established()))
    }

    /// Opens a session and does something in it, unless somebody stops the run.
    ///
    /// # Errors
    /// It can't be opened, or what is done there fails; it takes too long; the run is stopped.
    pub(crate) fn with_session<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&mut Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<(T, Connection), RunError> {
        let open = Arc::clone(&self.open);
        let done = bounded(OPENING, self.stopped, move || {
            let mut connection = open()?;
            let done = work(&mut connection)?;
            connection.take_notices();
            Ok((done, connection))
        });
        let failed = |source| RunError::Connection { session: name.to_owned(), source };
        match done {
            Ok(done) => done.map_err(failed),
            Err(GivenUp::Stopped) => Err(RunError::Stopped),
            Err(GivenUp::TooLong) => Err(failed(isobench_pgwire::Error::Timeout(OPENING).into())),
            Err(GivenUp::NoThread(why)) => Err(RunError::NoThread(why)),
        }
    }
}

/// Marks a session as the isolation tester marks its own. Other products may lack the function;
/// nothing depends on it.
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

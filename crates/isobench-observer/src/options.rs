//! Options of an observer, and the way to open its session.

use std::time::Duration;

use isobench_database::Error;
use isobench_limits::LIMITS;
use isobench_pgwire::Connection;

/// Opens a session in the database that is measured.
pub type OpenSession = Box<dyn Fn() -> Result<Connection, Error> + Send>;

/// Options of an observer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserverOptions {
    /// The time between two samples of the sessions; longer if they turn out to take more than a
    /// twentieth of it.
    pub every: Duration,
    /// The time between two samples of the locks; longer if they turn out to take more than a
    /// hundredth of it. The first ones of a measured part are taken after a fifth, two fifths, and
    /// four fifths of it.
    pub locks_every: Duration,
    /// The name that the observer's session has in `pg_stat_activity`.
    pub application_name: String,
    /// The longest wait of any call of the [`Observer`](crate::Observer) for the thread. When it
    /// expires, the observer gives up.
    pub patience: Duration,
}

impl Default for ObserverOptions {
    fn default() -> Self {
        ObserverOptions {
            every: Duration::from_millis(100),
            locks_every: Duration::from_secs(1),
            application_name: "isobench observer".to_owned(),
            patience: LIMITS.observer,
        }
    }
}

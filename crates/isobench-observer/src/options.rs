//! How to observe, and how a session to observe in is opened.

use std::time::Duration;

use isobench_database::Error;
use isobench_pgwire::Connection;

/// Opens a session in the database that is measured.
pub type Connect = Box<dyn Fn() -> Result<Connection, Error> + Send>;

/// How to observe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserverOptions {
    /// The time between two samples of the sessions; more if they turn out to cost more than a
    /// twentieth of it.
    pub every: Duration,
    /// The time between two samples of the locks; more if they turn out to cost more than a
    /// hundredth of it. The first ones of a measured part come after a fifth, two fifths, and four
    /// fifths of it.
    pub locks_every: Duration,
    /// The name that the observer's session has in `pg_stat_activity`.
    pub application_name: String,
    /// The longest that any call of the [`Observer`](crate::Observer) waits for the thread. Once it
    /// was too short, the observer has given up.
    pub patience: Duration,
}

impl Default for ObserverOptions {
    fn default() -> Self {
        ObserverOptions {
            every: Duration::from_millis(100),
            locks_every: Duration::from_secs(1),
            application_name: "isobench observer".to_owned(),
            patience: Duration::from_secs(10),
        }
    }
}

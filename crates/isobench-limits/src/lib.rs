//! How long isobench waits for what may never come: all time limits in one table.
//!
//! ```
//! use isobench_limits::LIMITS;
//!
//! assert!(LIMITS.cleanup < LIMITS.call);
//! ```
//!
//! Not here: the limits that users choose, what is measured (warm-ups, back-offs, intervals of
//! sampling), and pauses between two looks. `isobench_pgwire::Patience` decides which limit a call to
//! the server has.

use std::sync::LazyLock;
use std::time::Duration;

/// The environment variable by which tests shorten the limits of a server that falls silent.
const FACTOR: &str = "ISOBENCH_PATIENCE";

/// The limits of this process.
pub static LIMITS: LazyLock<Limits> = LazyLock::new(|| {
    let factor = std::env::var(FACTOR).ok().and_then(|text| text.parse().ok());
    factor.map_or(Limits::STANDARD, |factor| Limits::STANDARD.scaled(factor))
});

const fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

macro_rules! limits {
    (
        fixed { $($(#[doc = $fixed_text:literal])* $fixed:ident: $fixed_limit:expr;)* }
        scaled { $($(#[doc = $text:literal])* $name:ident: $limit:expr;)* }
    ) => {
        /// The longest waits.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Limits {
            $($(#[doc = $fixed_text])* pub $fixed: Duration,)*
            $($(#[doc = $text])* pub $name: Duration,)*
        }

        impl Limits {
            /// Those that users have.
            pub const STANDARD: Limits = Limits { $($fixed: $fixed_limit,)* $($name: $limit,)* };

            /// The same, where those for a server that has fallen silent are multiplied by a factor, if
            /// that is a number above 0.
            #[must_use]
            pub fn scaled(self, factor: f64) -> Limits {
                let scaled = |limit: Duration| {
                    let scaled = Duration::try_from_secs_f64(limit.as_secs_f64() * factor);
                    scaled.ok().filter(|scaled| !scaled.is_zero()).unwrap_or(limit)
                };
                Limits { $($name: scaled(self.$name),)* ..self }
            }
        }
    };
}

limits! {
    // A healthy server may come near to these on a slow machine, so tests leave them alone.
    fixed {
        /// A call during a measurement, unless a call before it took longer than a tenth of this.
        call: seconds(120);
        /// The second session, which a pool with a single session of the server never opens.
        second_session: seconds(10);
        /// One more session of a pool, which a smaller pool doesn't have.
        pooled_session: seconds(1);
        /// The server's reading of its configuration.
        reload: seconds(10);
        /// The first record of the write-ahead log, which waits for transactions in progress.
        wal: seconds(60);
        /// A standby's replay of what makes the tables.
        catch_up: seconds(60);

        /// A statement of the observer, on the server.
        observation: seconds(1);
        /// The same on the client: longer, because the server's limit gives a better message.
        observation_answer: seconds(2);

        /// Opening a session of the probe and asking it a few questions.
        probe_session: seconds(60);
        /// The probe's query for waiting sessions.
        waiting_query: seconds(30);

        /// The recovery of a server to which a fault happened, or the end of the program that caused it.
        recovery: seconds(60);
        /// A sign that the server has noticed the end of a backend.
        notice: seconds(1);

        /// The start of an embedded server. A new one takes a tenth of a second.
        start: seconds(60);
        /// The set-up of its shared memory.
        shared_memory: seconds(10);
        /// An immediate shutdown. The server itself kills remaining processes after 5 s.
        stop: seconds(8);
        /// The end of processes after SIGKILL, which the disk may block.
        kill: seconds(5);
        /// Storing the password.
        password: seconds(30);

        /// A step that all machines take together. A machine that is gone is noticed much sooner.
        step: seconds(600);
        /// A step of a check that machines make together, which is as long as their history. A machine that
        /// is gone is noticed much sooner.
        check: seconds(24 * 3600);
        /// The end, for all machines to hear that nothing more is to be done.
        end: seconds(5);
        /// A step of `isobench peers`.
        peers: seconds(30);
        /// An exchange of a few hundred bytes between machines.
        exchange: seconds(5);
        /// Saying to other machines why this one can't take part.
        refusal: seconds(1);
        /// A sign of life of a machine whose connections stand.
        silence: seconds(15);

        /// A request for metrics and its answer, or a push of them.
        metrics: seconds(2);
        /// The end of the program after the second Ctrl-C.
        end_of_program: seconds(30);
    }
    scaled {
        /// A call after one that wasn't answered in time.
        doubtful_call: seconds(10);
        /// What remains of a call, or of transactions in progress, after the first Ctrl-C: the command ends
        /// within 5 s on a server that works.
        hurried: seconds(3);
        /// A call to a server that has been silent for `hurried` and `cleanup` since the first Ctrl-C.
        silent_call: Duration::from_millis(250);
        /// A call after the second Ctrl-C: enough to clean up on a server that works.
        cleanup: seconds(2);
        /// A cancel request, unless `connect_timeout` is set.
        cancel_request: seconds(10);
        /// Telling the server that the reply to a call that took too long isn't needed any more.
        farewell: seconds(1);

        /// Making the tables for the schedules that `advise` tries, unless three times the time for trying one
        /// is more.
        making: seconds(10);

        /// Transactions in progress at the end of a run.
        grace: seconds(10);
        /// The answers to cancelled statements.
        cancelled: seconds(2);
        /// One attempt of a client to replace its lost session, during which its worker is blocked.
        new_session: seconds(1);
        /// The last answer of a session.
        last_answer: seconds(5);
        /// The end of the clients' sessions on the server.
        leaving: seconds(2);
        /// The answer of the observer's thread.
        observer: seconds(10);

        /// A lost server's return before the invariants are checked. (PostgreSQL restarts by itself
        /// after a backend has crashed.)
        comeback: seconds(10);
        /// A session after a run with faults, and the end of transactions in progress then.
        settlement: seconds(30);
        /// The removal of schema, slot or publication, which sessions of an interrupted run may block.
        removal: seconds(30);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_wait_for_silent_servers_for_a_shorter_time() {
        let scaled = Limits::STANDARD.scaled(0.05);
        assert_eq!((scaled.grace, scaled.call), (Duration::from_millis(500), Limits::STANDARD.call));
        for unusable in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Limits::STANDARD.scaled(unusable), Limits::STANDARD);
        }
    }
}

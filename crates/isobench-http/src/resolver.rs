//! Resolves host names for a download, within a time limit.
//!
//! The system's lookup can hang and can't be stopped, so it runs in a thread of its own, which is
//! abandoned when the time is up. ureq's own resolver does the same, but panics if a thread can't
//! be created.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::unversioned::transport::time::Duration;

/// Work for a thread.
type Work = Box<dyn FnOnce() + Send>;

/// A resolver that uses the system's.
pub(crate) struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let (uri, config) = (uri.clone(), config.clone());
        // Without a time limit, ureq's resolver doesn't start a thread.
        let unlimited = NextTimeout { after: Duration::NotHappening, ..timeout };
        let look_up = move || DefaultResolver::default().resolve(&uri, &config, unlimited);
        within(timeout, spawn, look_up)
    }
}

impl fmt::Debug for SystemResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemResolver")
    }
}

fn spawn(work: Work) -> io::Result<()> {
    thread::Builder::new().name("resolver".to_owned()).spawn(work).map(drop)
}

/// Runs a lookup in a thread, and waits for it up to the time limit. If a thread can't be created,
/// runs it here without a limit.
fn within<T: Send + 'static>(
    timeout: NextTimeout,
    spawn: fn(Work) -> io::Result<()>,
    look_up: impl Fn() -> Result<T, Error> + Send + Sync + 'static,
) -> Result<T, Error> {
    let look_up = Arc::new(look_up);
    let (sender, receiver) = sync_channel(1);
    let in_thread = Arc::clone(&look_up);
    // The receiver may no longer be waiting for the result.
    let work = Box::new(move || drop(sender.send(in_thread())));
    if spawn(work).is_err() {
        return look_up();
    }
    match receiver.recv_timeout(*timeout.after) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout) => Err(Error::Timeout(timeout.reason)),
        Err(RecvTimeoutError::Disconnected) => Err(Error::HostNotFound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(seconds: u64) -> NextTimeout {
        NextTimeout {
            after: std::time::Duration::from_secs(seconds).into(),
            reason: ureq::Timeout::Resolve,
            ..NextTimeout::default()
        }
    }

    #[test]
    fn an_answer_comes_from_a_thread() {
        let here = thread::current().id();
        let there = within(limit(60), spawn, || Ok(thread::current().id())).expect("an answer");
        assert_ne!(here, there);
    }

    #[test]
    fn without_a_thread_names_are_looked_up_here() {
        let here = thread::current().id();
        let refuse = |_: Work| Err(io::ErrorKind::WouldBlock.into());
        assert_eq!(within(limit(60), refuse, || Ok(thread::current().id())).expect("an answer"), here);
    }

    #[test]
    fn waiting_for_a_name_has_an_end() {
        // Kept, so that the sender isn't dropped, like that of a thread that never answers.
        let forget = |work: Work| {
            std::mem::forget(work);
            Ok(())
        };
        let error = within(limit(0), forget, || Ok(())).expect_err("no answer");
        assert!(matches!(error, Error::Timeout(ureq::Timeout::Resolve)), "{error}");
    }

    #[test]
    fn a_thread_that_died_is_an_error() {
        let drop_it = |work: Work| {
            drop(work);
            Ok(())
        };
        assert!(matches!(within(limit(60), drop_it, || Ok(())), Err(Error::HostNotFound)));
    }
}

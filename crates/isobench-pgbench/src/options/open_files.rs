//! The limit of open files: one for each client and a few more.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::console::Message;

/// pgbench's own allowance beside its clients.
const BESIDE: u64 = 3;
/// Files that this program needs in addition to pgbench's allowance: those of its threads.
const OWN: u64 = 1024;

/// Checks that this many clients can connect. The limit is raised to its maximum if necessary;
/// `raises` says whether pgbench does so, or refuses.
///
/// # Errors
/// The limit is too low, in pgbench's words.
pub(super) fn allow(clients: u64, raises: bool) -> Result<(), Message> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let counted = if raises { maximum } else { current };
    let needed = clients.saturating_add(BESIDE);
    if let Some(limit) = counted.filter(|limit| needed > *limit) {
        return Err(Message::error(format_args!(
            "need at least {needed} open files, but system limit is {limit}"
        ))
        .hint("Reduce number of clients, or use limit/ulimit to increase the system limit."));
    }
    if current.is_some_and(|current| needed.saturating_add(OWN) > current) {
        // If it can't be raised, it may be enough nevertheless.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_clients_are_refused() {
        allow(1, false).expect("one client");
        let Some(maximum) = getrlimit(Resource::Nofile).maximum else { return };
        let error = allow(maximum, true).expect_err("three too many");
        let text = format!(
            "pgbench: error: need at least {} open files, but system limit is {maximum}\n\
             pgbench: hint: Reduce number of clients, or use limit/ulimit to increase the system limit.",
            maximum + 3
        );
        assert_eq!(error.to_string(), text);
    }
}

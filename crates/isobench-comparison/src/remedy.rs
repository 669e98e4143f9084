//! What to do about an error of a script: advice that isn't in the server's message, or in pgbench's.
//!
//! Not here: advice on errors of any statement, by their code (`sessions.rs`).

use isobench_pgwire::{ServerError, SqlState};
use isobench_runner::{AbortCause, CommandPlace, Job, Protocol};
use isobench_script::CommandKind;

use crate::sessions::advice;

/// Codes of errors when the parameters of a statement aren't those that it was prepared with: a
/// different number, or one without a type.
const PARAMETERS: [SqlState; 2] = [SqlState(*b"08P01"), SqlState(*b"42P18")];

/// Advice if the server has no room for another predicate lock.
const PREDICATE_LOCKS: &str = "\n  the server ran out of predicate locks, which all serializable transactions share; \
    raise max_pred_locks_per_transaction, which takes a restart (embedded server: --server-setting \
    max_pred_locks_per_transaction=128), or run fewer of them at a time";

/// True if the server had no room for another predicate lock. Its hint names the setting in every language.
fn lacks_predicate_locks(error: &ServerError) -> bool {
    let names = |hint: &String| hint.contains("max_pred_locks_per_transaction");
    error.code == SqlState::OUT_OF_MEMORY && error.hint.as_ref().is_some_and(names)
}

/// Returns lines of advice on what ended a client at this place, or nothing.
pub fn remedy(cause: &AbortCause, job: &Job, place: CommandPlace) -> String {
    match cause {
        AbortCause::Result { name: None, problem, .. } if problem.ends_with("got 0") => {
            "\n  where there may be no row, set the variable first, read it by \\aset, which leaves it alone then, and \
             branch by \\if"
                .to_owned()
        }
        AbortCause::Server(failed) if PARAMETERS.contains(&failed.error.code) && quotes(job, place) => {
            "\n  unless the protocol is simple (-M), a variable inside quotes becomes text ($1) and no parameter: \
             write 'text' || :variable"
                .to_owned()
        }
        AbortCause::Server(failed) if lacks_predicate_locks(&failed.error) => PREDICATE_LOCKS.to_owned(),
        AbortCause::Server(failed) => advice(Some(failed.error.code)),
        AbortCause::Lost(_, last) => advice(last.as_ref().map(|error| error.code)),
        _ => String::new(),
    }
}

/// True if the command there has a variable inside quotes, and isn't sent by the simple protocol.
fn quotes(job: &Job, place: CommandPlace) -> bool {
    let scripts = job.workload().mix.scripts();
    let script = scripts.get(place.script).map(|weighted| &weighted.script);
    let command = script.and_then(|script| script.commands.get(place.command));
    let in_quotes = |text: &str| {
        let quoted = text.split('\'').skip(1).step_by(2);
        quoted.into_iter().any(|text| {
            text.split('$').skip(1).any(|after| after.starts_with(|first: char| first.is_ascii_digit()))
        })
    };
    match command.map(|command| &command.kind) {
        Some(CommandKind::Sql(sql)) => {
            job.spec().protocol != Protocol::Simple && in_quotes(&sql.parameterized)
        }
        _ => false,
    }
}

//! Which recorded instances of scripts find on the copy what they found when they were recorded; and the
//! copy taken back for those that don't.

use isobench_comparison::{Failure, Outcome};
use isobench_pgwire::Connection;
use isobench_replay::{ExpectedScript, Folder, Instance};
use isobench_script::Script;
use serde::{Deserialize, Serialize};

use super::execution::{Why, carry_out};

/// The share of a script's instances below which the copy is taken back for it.
const ENOUGH: f64 = 0.5;

/// The most instances of a script that are looked at.
const LOOKED_AT: usize = 200;

/// How the copy was taken back.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Fitted {
    /// The number of statements that take the tables back.
    pub statements: usize,
    /// The scripts for which it was done: their names, how many instances of how many find what they found.
    pub scripts: Vec<(String, usize, usize)>,
    /// The scripts among them that use up what they find: each instance works once.
    pub once: Vec<String>,
    /// The scripts that the copy's tables don't permit, with the reason; they are no part of the plan.
    #[serde(default)]
    pub left_out: Vec<(String, String)>,
}

impl Fitted {
    /// What was done, in words; nothing if the copy is as it was.
    pub fn lines(&self) -> Vec<String> {
        let left_out = self.left_out.iter();
        let mut lines: Vec<String> = left_out
            .map(|(name, why)| {
                format!("Left out of the plan, as the copy doesn't permit it: {name} ({why}).")
            })
            .collect();
        if self.statements == 0 {
            return lines;
        }
        let scripts = self.scripts.iter().map(|(name, now, all)| format!("{name} ({now} of {all})"));
        lines.push(format!(
            "What transactions used up is put back in the copy, by {} statements in setup.sql, so that these find again \
             what they found: {}.",
            self.statements,
            scripts.collect::<Vec<_>>().join(", ")
        ));
        lines
    }

    /// Why a measurement says nothing, if it would run out of what scripts use up.
    pub fn runs_out(&self) -> Option<String> {
        (!self.once.is_empty()).then(|| {
            format!(
                "Each input works once in {}, which use up what they find; a measurement runs out of it, so no cost is \
                 claimed for the application.",
                self.once.join(", ")
            )
        })
    }
}

/// Looks which instances fit, and takes the copy back where too few do. The server's tables are those of
/// the folder before; if the folder changes, they aren't any more.
///
/// # Errors
/// The server is gone.
pub fn fit(connection: &mut Connection, folder: &mut Folder, scripts: &[Script]) -> Outcome<Fitted> {
    connection.execute("BEGIN").map_err(Failure::setup)?;
    let fitted = within(connection, folder, scripts);
    connection.execute("ROLLBACK").map_err(Failure::setup)?;
    let mut fitted = fitted?;
    for (number, script) in scripts.iter().enumerate() {
        connection.execute("BEGIN").map_err(Failure::setup)?;
        if let Err(Why::Mistake(why)) = carry_out(connection, script, 0, true, &mut |_, _| {}) {
            fitted.left_out.push((folder.expected.scripts[number].name.clone(), why));
        }
        connection.execute("ROLLBACK").map_err(Failure::setup)?;
    }
    // A plan of no script is none.
    if fitted.left_out.len() == scripts.len() {
        fitted.left_out.clear();
    }
    for (name, _) in &fitted.left_out {
        folder.leave_out(name);
    }
    Ok(fitted)
}

fn within(connection: &mut Connection, folder: &mut Folder, scripts_of: &[Script]) -> Outcome<Fitted> {
    let all = |connection: &mut Connection, folder: &Folder| -> Outcome<Vec<Vec<usize>>> {
        let scripts = folder.expected.scripts.iter().zip(scripts_of);
        scripts.map(|(expected, script)| fitting(connection, expected, script)).collect()
    };
    let before = all(connection, folder)?;
    let expected = &folder.expected.scripts;
    let few = |number: usize, fitting: &[Vec<usize>]| {
        (fitting[number].len() as f64) < ENOUGH * looked_at(&expected[number]).count() as f64
    };
    let wanted: Vec<usize> =
        (0..expected.len()).filter(|number| expected[*number].writes && few(*number, &before)).collect();
    let begin = |number: &usize| -> Vec<usize> {
        expected[*number].instances.iter().filter_map(|one| one.transactions.first().copied()).collect()
    };
    let wanted_instances: Vec<Vec<usize>> = wanted.iter().map(begin).collect();
    let mut back = Vec::new();
    for sql in folder.past.back_to(&wanted_instances) {
        // What can't be undone alone stays: what fits then, is seen below.
        let alone = format!("{sql}; SET CONSTRAINTS ALL IMMEDIATE");
        if kept(connection, |connection| connection.execute(&alone).is_ok(), true)? {
            back.push(sql.to_owned());
        }
    }
    if back.is_empty() {
        return Ok(Fitted::default());
    }
    let after = all(connection, folder)?;
    let won: Vec<usize> =
        (0..expected.len()).filter(|number| few(*number, &before) && !after[*number].is_empty()).collect();
    if !won.iter().any(|number| expected[*number].writes && before[*number].is_empty()) {
        return Ok(Fitted::default());
    }
    let scripts = won.iter().map(|number| {
        let of = &expected[*number];
        (of.name.clone(), after[*number].len(), of.instances.len())
    });
    let mut fitted = Fitted { statements: back.len(), scripts: scripts.collect(), ..Fitted::default() };
    for number in &won {
        let first = after[*number][0];
        let (script, instance) = (&scripts_of[*number], &expected[*number].instances[first]);
        let find = |connection: &mut Connection| finds(connection, script, first, instance);
        let again = kept(
            connection,
            |connection| {
                let first = find(connection) && connection.execute("SET CONSTRAINTS ALL DEFERRED").is_ok();
                first && find(connection)
            },
            false,
        )?;
        if !again {
            fitted.once.push(expected[*number].name.clone());
        }
    }
    let kept = expected.iter().zip(after).map(|(script, fitting)| {
        // A script of which nothing fits is as well off with all.
        if fitting.is_empty() { (0..script.instances.len()).collect() } else { fitting }
    });
    let kept: Vec<Vec<usize>> = kept.collect();
    folder.put_back(&back, &kept);
    Ok(fitted)
}

/// The places of the instances that are looked at.
fn looked_at(script: &ExpectedScript) -> impl Iterator<Item = usize> {
    let count = script.instances.len();
    (0..count).step_by(count.div_ceil(LOOKED_AT).max(1))
}

/// The places of the instances that find what they found.
fn fitting(connection: &mut Connection, expected: &ExpectedScript, script: &Script) -> Outcome<Vec<usize>> {
    let mut found = Vec::new();
    for place in looked_at(expected) {
        let instance = &expected.instances[place];
        if kept(connection, |connection| finds(connection, script, place, instance), false)? {
            found.push(place);
        }
    }
    Ok(found)
}

/// True if each statement of a script finds rows where it found some, and none where it found none, as far
/// as that is recorded.
fn finds(connection: &mut Connection, script: &Script, place: usize, instance: &Instance) -> bool {
    let alike = |statement: usize, rows: u64| {
        instance.found.get(statement).is_some_and(|found| found.is_none_or(|found| found == (rows > 0)))
    };
    let mut all = true;
    let mut see = |statement, rows| all &= alike(statement, rows);
    let carried_out = carry_out(connection, script, place, true, &mut see);
    // Keys may be checked when a transaction commits.
    carried_out.is_ok() && all && connection.execute("SET CONSTRAINTS ALL IMMEDIATE").is_ok()
}

/// Does something that may fail within the open transaction; what it did stays if it didn't, and if that is
/// wanted.
fn kept(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> bool,
    stays: bool,
) -> Outcome<bool> {
    connection.execute("SAVEPOINT isobench_fitting").map_err(Failure::setup)?;
    let done = work(connection);
    let end = if done && stays { "" } else { "ROLLBACK TO SAVEPOINT isobench_fitting; " };
    let end = format!("{end}RELEASE SAVEPOINT isobench_fitting");
    connection.execute(&end).map_err(Failure::setup)?;
    Ok(done)
}

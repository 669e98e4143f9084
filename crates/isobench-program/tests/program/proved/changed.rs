//! Changes of random scripts that are called proved, on a server: no split schedule of the changed scripts may have an
//! outcome that no order of its transactions has, and transactions wait for each other only where that is said.

use std::collections::BTreeSet;
use std::convert::Infallible;

use isobench_advice::{ChangeSet, Executed, NotChanged, Question, ScriptText, TriedSet, Tries};
use isobench_database::Asked;
use isobench_isolation::Level;
use isobench_program::{Templates, templates};
use isobench_robustness::deadlocks;
use isobench_script::{CommandKind, Script as Parsed, Symbols, parse};
use isobench_sql::Catalog;

use super::dice::Dice;
use super::schedules::{Stage, Tally};
use super::scripts::Script;
use super::{Set, catalog, number, stage};

/// The number of sets without the variable.
const SETS: u64 = 6;

/// Scripts with these texts as the server reads them.
fn read(
    stage: &mut Stage,
    catalog: &Catalog,
    texts: &[String],
    absent: bool,
) -> Option<(Vec<Parsed>, Templates)> {
    let mut symbols = Symbols::new();
    let parsed =
        texts.iter().zip(1..).map(|(text, number)| parse(&format!("{number}.sql"), text, &mut symbols));
    let parsed: Vec<Parsed> = parsed.collect::<Result<_, _>>().ok()?;
    let catalog = &mut catalog.clone();
    catalog.read_statements(&parsed, &mut Asked(&mut stage.monitor)).ok()?;
    let mut found = templates(&parsed, &symbols, catalog, &BTreeSet::new());
    if absent {
        let all = found.statements.iter().map(|statement| statement.at.clone()).collect();
        found = templates(&parsed, &symbols, catalog, &all);
    }
    Some((parsed, found))
}

/// Reads changed scripts, and tries nothing.
struct Reader<'s> {
    stage: &'s mut Stage,
    catalog: &'s Catalog,
}

impl Tries for Reader<'_> {
    type Error = Infallible;

    fn execute(
        &mut self,
        _: &ChangeSet,
        _: Option<&[Vec<usize>]>,
    ) -> Result<Result<TriedSet, NotChanged>, Infallible> {
        Ok(Ok(TriedSet { executed: Executed::Unshown(0), deadlock: None }))
    }

    fn read_again(&mut self, scripts: &[ScriptText]) -> Option<Templates> {
        let texts: Vec<String> = scripts.iter().map(|script| script.text.clone()).collect();
        read(self.stage, self.catalog, &texts, true).map(|(_, templates)| templates)
    }
}

/// The changes of a set that are proved.
fn changes(stage: &mut Stage, set: &Set) -> (Vec<ChangeSet>, bool) {
    let catalog = catalog(stage);
    let texts: Vec<String> = set.scripts.iter().map(Script::to_string).collect();
    let (parsed, found) = read(stage, &catalog, &texts, true).expect("scripts");
    let sql = |kind: &CommandKind| match kind {
        CommandKind::Sql(sql) => sql.as_written(),
        _ => String::new(),
    };
    let before: Vec<ScriptText> = parsed
        .iter()
        .zip(&texts)
        .map(|(script, text)| ScriptText {
            name: script.name.clone(),
            text: text.clone(),
            commands: script.commands.iter().map(|command| sql(&command.kind)).collect(),
        })
        .collect();
    let question = Question { templates: &found, stopped: &|| false };
    let nothing = || Executed::Untried(String::new());
    let decided = question.decide(|_| Ok::<_, Infallible>(nothing()), |_| Ok(nothing()));
    let Ok(decision) = decided;
    let mut reader = Reader { stage, catalog: &catalog };
    let Ok(all) = question.changes(&decision, &before, &mut reader);
    (all.into_iter().filter(|one| one.unproved.is_none()).collect(), !deadlocks(&found.programs).is_empty())
}

/// The changed scripts as a set of their own.
fn changed(set: &Set, change: &ChangeSet) -> Set {
    let level = |script: &ScriptText| change.allocation.of(&script.name).level;
    let levels: Vec<Level> = change.scripts.iter().map(level).collect();
    let scripts = change.scripts.iter().map(|script| Script::read(&script.text)).collect();
    Set { schema: set.schema.clone(), scripts, levels, unknown: 0 }
}

#[test]
fn no_change_that_is_proved_has_an_outcome_of_its_own() {
    let Some((_server, mut stage)) = stage("no_change_that_is_proved_has_an_outcome_of_its_own") else {
        return;
    };
    let first = number("ISOBENCH_PROVED_SEED", 5001);
    let count = number("ISOBENCH_PROVED_SETS", SETS);
    let (mut tally, mut proposed, mut failures, mut unnamed) = (Tally::default(), 0, Vec::new(), Vec::new());
    for seed in first..first + count {
        let set = Set::random(&mut stage, seed);
        let (all, known) = changes(&mut stage, &set);
        for change in all {
            proposed += 1;
            let with = changed(&set, &change);
            let (mut dice, mut own) = (Dice::of(seed), Tally::default());
            let said =
                || format!("ISOBENCH_PROVED_SEED={seed}, {}:\n{}", change.name, with.describe(&with.levels));
            if let Err(why) = with.judge(&mut stage, &with.levels, &mut dice, &mut own) {
                failures.push(format!("{}{why}", said()));
            }
            if own.with_deadlocks > 0 && change.deadlocks.is_empty() && !known {
                let mut before = Tally::default();
                let _ = set.judge(&mut stage, &set.levels, &mut Dice::of(seed), &mut before);
                if before.with_deadlocks == 0 {
                    unnamed.push(said());
                }
            }
            tally.add(own);
        }
    }
    eprintln!("{count} sets, {proposed} proved changes; {tally}; {} unnamed deadlocks", unnamed.len());
    for one in &unnamed {
        eprintln!("a deadlock that isn't named: {one}");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(2 * proposed >= count, "{proposed} changes of {count} sets");
}

//! What recorded histories say of the model: each dependency in them has to be one that it predicts.

use std::collections::BTreeSet;

use isobench_program::Templates;
use isobench_result::StatementDependencies;
use isobench_robustness::{How, Predicted, StatementId};

use crate::advice::Advice;
use crate::reason::Dependency;

impl Advice {
    /// Compares the dependencies of histories that these scripts left with those that their statements
    /// predict. If one isn't among them, the statements are wrongly understood: only the server's promise is left then.
    /// Returns the number of dependencies.
    pub fn compare_with<'v>(
        &mut self,
        templates: &Templates,
        recorded: impl IntoIterator<Item = &'v StatementDependencies>,
    ) -> u64 {
        let predicted = Predicted::of(&templates.programs);
        let (mut count, mut others) = (0, BTreeSet::new());
        for one in recorded {
            count += one.count;
            let places = Place::of(templates, &one.first).zip(Place::of(templates, &one.then));
            let Some(((first, then), how)) = places.zip(how(&one.dependency)) else { continue };
            let mut pairs =
                first.names.iter().flat_map(|first| then.names.iter().map(move |then| (first, then)));
            if !pairs.any(|(first, then)| predicted.has(first, then, how)) {
                let at = [first.at, then.at].map(|at| at.to_string());
                others.insert((first.script, then.script, how, at));
            }
        }
        let dependency = |(first, then, how, at): (&str, &str, How, [String; 2])| Dependency {
            first: first.to_owned(),
            then: then.to_owned(),
            how: Some(how.short()),
            at,
        };
        self.unpredicted = others.into_iter().map(dependency).collect();
        if !self.unpredicted.is_empty() {
            self.distrust();
        }
        count
    }
}

/// The place of a statement in the scripts.
struct Place<'t> {
    script: &'t str,
    /// The command.
    at: StatementId,
    /// The statements there, and those at which they count in the programs.
    names: Vec<StatementId>,
}

impl<'t> Place<'t> {
    /// The place of a statement of a history, which is named `pay.sql:7: SELECT …`.
    fn of(templates: &'t Templates, statement: &str) -> Option<Place<'t>> {
        let mut scripts = templates.programs.iter().map(|program| program.name.as_str());
        let line = |script: &str| {
            let (line, _) = statement.strip_prefix(script)?.strip_prefix(':')?.split_once(": ")?;
            line.parse::<u32>().ok()
        };
        let (script, line) = scripts.find_map(|script| Some((script, line(script)?)))?;
        let at = StatementId::new(script, line);
        // Those of one command are distinguished by what follows.
        let own = templates.statements.iter().map(|one| &one.at).filter(|one| one.command() == at);
        let mut names: Vec<StatementId> = own.cloned().collect();
        let others = names.iter().filter_map(|name| templates.stands_for.get(name)).flatten();
        let others: Vec<StatementId> = others.cloned().collect();
        names.extend(others);
        // A script with too many ways through it is one statement.
        names.push(StatementId::whole(script));
        Some(Place { script, at, names })
    }
}

/// The kind of a dependency, by its name in a result.
fn how(name: &str) -> Option<How> {
    let all = [How::WriteRead, How::WriteWrite, How::ReadWrite];
    all.into_iter().find(|how| name.split(' ').next() == Some(how.short()))
}

#[cfg(test)]
mod tests {
    use super::*;

    use isobench_program::TemplateStatement;
    use isobench_robustness::{Branch, Operation, Program};

    use crate::decision::Question;
    use crate::shown::Executed;
    use crate::text::{agreed, details as answer};

    /// A script that reads an account, and writes it back in its second line.
    fn templates() -> Templates {
        let operations = vec![
            Operation::read("account", [("id", ":a")], ["balance"]).in_statement("a: b/pay.sql:1"),
            Operation::update("account", [("id", ":a")], [], ["balance"]).in_statement("a: b/pay.sql:2#2"),
        ];
        let statement =
            |at: &Operation| TemplateStatement { line: 1, at: at.at.clone(), ..TemplateStatement::default() };
        Templates {
            statements: operations.iter().map(statement).collect(),
            programs: vec![Program::new("a: b/pay.sql", vec![Branch::new("pay", operations)])],
            ..Templates::default()
        }
    }

    fn compared(recorded: &[(&str, &str, &str)]) -> Advice {
        let templates = templates();
        let question = Question { templates: &templates, stopped: &|| false };
        let untried = || Ok::<Executed, ()>(Executed::Untried("there is no server".to_owned()));
        let decision = question.decide(|_| untried(), |_| untried()).expect("nothing fails");
        let mut advice = Advice::of(&templates, &decision, Vec::new());
        let one = |(first, then, dependency): &(&str, &str, &str)| StatementDependencies {
            first: (*first).to_owned(),
            then: (*then).to_owned(),
            dependency: (*dependency).to_owned(),
            count: 3,
        };
        let recorded: Vec<StatementDependencies> = recorded.iter().map(one).collect();
        let dependencies = advice.compare_with(&templates, &recorded);
        advice.measured = Some(crate::advice::Measured {
            to: "levels".to_owned(),
            dependencies,
            candidates: Vec::new(),
            unmeasured: Vec::new(),
            left_out: Vec::new(),
        });
        advice
    }

    const READS: &str = "a: b/pay.sql:1: SELECT balance FROM account WHERE id = :a;";
    const WRITES: &str = "a: b/pay.sql:2: SELECT 1; UPDATE account SET balance = :b WHERE id = :a;";

    #[test]
    fn what_is_predicted_agrees() {
        let advice = compared(&[(READS, WRITES, "rw"), (WRITES, READS, "wr"), (WRITES, WRITES, "ww")]);
        assert_eq!(advice.unpredicted, []);
        assert!(agreed(&advice).is_some_and(|sentence| sentence.contains(" 9 dependencies ")));
        assert_eq!(advice.transactions[0].status, compared(&[]).transactions[0].status);
        assert_eq!(agreed(&compared(&[])), None, "nothing was recorded");
    }

    #[test]
    fn what_is_not_predicted_withholds_the_proof() {
        let unknown = "a: b/pay.sql:9: SELECT 1;";
        for (recorded, said) in [
            ((READS, WRITES, "wr"), "a: b/pay.sql:2 on a: b/pay.sql:1 (wr)"),
            ((READS, WRITES, "rw (predicate)"), ""),
            ((unknown, WRITES, "rw"), "a: b/pay.sql:2 on a: b/pay.sql:9 (rw)"),
        ] {
            let advice = compared(&[recorded]);
            let text = answer(&advice, 10_000);
            assert_eq!(advice.unpredicted.is_empty(), said.is_empty(), "{recorded:?}");
            assert_eq!(
                advice.transactions[0].status == crate::Status::Promised,
                !said.is_empty(),
                "{recorded:?}"
            );
            assert!(text.contains(said), "{text}");
        }
    }
}

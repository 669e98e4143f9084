//! UPDATEs that depend on fewer values that were read before, and changes that require what was read of their row.

use isobench_program::{Rewritten, TemplateStatement, Templates};
use isobench_robustness::Kind;

use super::{Ground, Made, ReadAgain};
use crate::change_set::{Changed, Edit};
use crate::patch::rewritten;

/// UPDATEs that depend on fewer values.
pub(super) fn make(ground: &Ground<'_>, read_again: &mut ReadAgain<'_>) -> Vec<Made> {
    all(ground, read_again, |statement| statement.rewritten.as_ref(), Edit::Sets)
}

/// UPDATEs and DELETEs that require what was read (compare and set). To theory one that finds no row is a refusal, but a
/// script that doesn't look at the number of rows goes on: so they are tried.
pub(super) fn make_tested(ground: &Ground<'_>, read_again: &mut ReadAgain<'_>) -> Vec<Made> {
    let proved = all(ground, read_again, |statement| statement.tested.as_ref(), Edit::Requires);
    proved.into_iter().map(|made| Made::to_try(made.set)).collect()
}

fn all(
    ground: &Ground<'_>,
    read_again: &mut ReadAgain<'_>,
    new: impl Fn(&TemplateStatement) -> Option<&Rewritten>,
    edit: fn(String) -> Edit,
) -> Vec<Made> {
    let templates = ground.templates();
    let mut all: Vec<&TemplateStatement> = Vec::new();
    for statement in templates.statements.iter().filter(|statement| new(statement).is_some()) {
        if !all.iter().any(|known| (known.script, &known.text) == (statement.script, &statement.text)) {
            all.push(statement);
        }
    }
    ground.fewest(&all, read_again, |set| {
        let changes = set.iter().filter_map(|statement| {
            let to = edit(new(statement)?.sets.clone());
            Some(Changed { at: statement.at.clone(), table: table_of(templates, statement), to })
        });
        let text = |statement: &TemplateStatement| Some(new(statement)?.text.clone());
        Some((rewritten(templates, ground.before, set, text)?, changes.collect()))
    })
}

/// The table whose rows a statement changes.
fn table_of(templates: &Templates, statement: &TemplateStatement) -> String {
    let branches = &templates.programs[statement.script].branches;
    let mut operations = branches.iter().flat_map(|branch| &branch.operations);
    let change = operations.find(|operation| {
        operation.at == statement.at && matches!(operation.kind, Kind::Update | Kind::Delete)
    });
    change.map(|operation| operation.table.clone()).unwrap_or_default()
}

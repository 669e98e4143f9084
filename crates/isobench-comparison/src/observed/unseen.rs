//! What the statements of each script may read without showing it.

use isobench_isolation::observed::{MayRead, ObservedTable};
use isobench_observation::{Dark, SeenStatement};
use isobench_script::Script;
use isobench_sql::Catalog;

/// What each script may read unseen, in their order; empty if none may read anything. `seen` has the
/// statements of all scripts, in order.
pub fn may_read<'s>(
    scripts: impl Iterator<Item = &'s Script>,
    seen: &[SeenStatement],
    tables: &[ObservedTable],
    catalog: &Catalog,
) -> Vec<MayRead> {
    let mut rest = seen.iter();
    let of_script = |script: &Script| {
        let count = script.sql().map(|sql| sql.statements.len()).sum();
        let mut found = MayRead::Nothing;
        for dark in rest.by_ref().take(count).flat_map(|statement| &statement.dark) {
            match table(dark, tables, catalog) {
                Some(table) => found.add(table),
                None => found = MayRead::Anything,
            }
        }
        found
    };
    let all: Vec<MayRead> = scripts.map(of_script).collect();
    if all.iter().all(|one| *one == MayRead::Nothing) { Vec::new() } else { all }
}

/// The number of the table to which what isn't seen is limited; `None` if it may be any.
fn table(dark: &Dark, tables: &[ObservedTable], catalog: &Catalog) -> Option<u16> {
    let stored = catalog.stored_in(dark.reads_only()?)?;
    (0..).zip(tables).find(|(_, table)| table.name == stored).map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use isobench_isolation::observed::KeyForm;
    use isobench_script::{Symbols, parse};

    use super::*;

    fn statement(dark: &[Dark]) -> SeenStatement {
        SeenStatement {
            file: "a.sql".to_owned(),
            line: 1,
            place: 0,
            text: String::new(),
            rewritten: false,
            tables: Vec::new(),
            dark: dark.to_vec(),
        }
    }

    #[test]
    fn what_is_not_limited_to_a_table_that_is_known_may_be_anything() {
        let mut symbols = Symbols::new();
        let mut script = |text: &str| parse("a.sql", text, &mut symbols).expect("a script");
        let scripts = [script("BEGIN;\nSELECT 1;\nCOMMIT;\n"), script("SELECT 1\\; SELECT 2;\n")];
        let table = ObservedTable {
            name: "doctors".to_owned(),
            key: KeyForm::Integer,
            columns: Vec::new(),
            closed: true,
        };
        let subquery = Dark::Subquery { table: "doctors".to_owned() };
        let found = |first: &[Dark], second: &[Dark], catalog: &Catalog| {
            let seen = [&[], first, &[], &[], second].map(statement);
            may_read(scripts.iter(), &seen, std::slice::from_ref(&table), catalog)
        };
        let empty = Catalog::default();
        assert_eq!(found(&[], &[], &empty), []);
        assert_eq!(found(&[Dark::RollbackTo], &[], &empty), [MayRead::Anything, MayRead::Nothing]);
        let only_doctors = std::slice::from_ref(&subquery);
        assert_eq!(found(&[], only_doctors, &empty), [MayRead::Nothing, MayRead::Anything]);
        let catalog = with_table("doctors");
        let only = MayRead::Tables(BTreeSet::from([0]));
        assert_eq!(found(&[], only_doctors, &catalog), [MayRead::Nothing, only]);
        assert_eq!(
            found(&[subquery.clone(), Dark::Prepared], &[], &catalog),
            [MayRead::Anything, MayRead::Nothing]
        );
    }

    fn with_table(name: &str) -> Catalog {
        use isobench_sql::{Inheritance, Relation, RelationKind, Triggers};
        let relation = Relation {
            oid: 1,
            schema: "public".to_owned(),
            name: name.to_owned(),
            visible: true,
            shadowed: false,
            kind: RelationKind::Table,
            temporary: false,
            inheritance: Inheritance::None,
            columns: Vec::new(),
            key: Vec::new(),
            unique: Vec::new(),
            only_key: true,
            triggers: Triggers::default(),
            rules: false,
            row_security: false,
            selectable: true,
            calls_writing: false,
            calls: false,
            checks: Vec::new(),
            uniqueness: Vec::new(),
        };
        Catalog { relations: vec![relation], ..Catalog::default() }
    }
}

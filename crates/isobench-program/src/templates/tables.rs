//! What scripts do with the rows and keys of tables, taken together.

use std::collections::{BTreeMap, BTreeSet};

use isobench_robustness::Columns;

use super::Read;
use crate::statement::{Access, Deed, anything};
use isobench_sql::{Catalog, Column, Hides, Relation, RelationId, RelationKind, name_in_sql};

/// The tables of which rows come and go, or change their keys.
pub(super) struct Changing(pub(super) BTreeSet<RelationId>);

impl Changing {
    pub(super) fn of<'r>(catalog: &Catalog, statements: impl Iterator<Item = &'r Read>) -> Changing {
        let mut tables = BTreeSet::new();
        for statement in statements {
            match &statement.accesses {
                Ok(accesses) => tables.extend(
                    accesses
                        .iter()
                        .filter(|access| {
                            let stays = access.deed == Deed::Update && keeps_keys(access, catalog);
                            !stays && access.deed.writes()
                        })
                        .map(|access| access.table),
                ),
                Err(_) => tables.extend(&statement.tables),
            }
        }
        Changing(tables)
    }
}

/// True if an access changes no column of a key.
pub(super) fn keeps_keys(access: &Access, catalog: &Catalog) -> bool {
    let relation = &catalog.relations[access.table];
    let mut of_keys = relation.keys().flatten().map(|place| &relation.columns[*place].name);
    match &access.writes {
        Columns::These(names) => !of_keys.any(|name| names.contains(name)),
        Columns::All => false,
    }
}

/// The tables in which a script may take a key away from a row and give it to another one: who waits for the row at
/// read committed finds none, though one was there all the time.
pub(super) struct Replaced(pub(super) BTreeSet<RelationId>);

impl Replaced {
    pub(super) fn of(read: &[Vec<Vec<Read>>], catalog: &Catalog) -> Replaced {
        let mut tables = BTreeSet::new();
        for script in read {
            let (mut gone, mut there) = (BTreeSet::new(), BTreeSet::new());
            for statement in script.iter().flatten() {
                for access in statement.accesses.iter().flatten() {
                    let moves = matches!(access.deed, Deed::Update | Deed::InsertOrUpdate | Deed::Cascade)
                        && !keeps_keys(access, catalog);
                    let inserts = access.deed.inserts();
                    if moves || access.deed == Deed::Delete {
                        gone.insert(access.table);
                    }
                    if moves || inserts {
                        there.insert(access.table);
                    }
                }
                if statement.accesses.is_err() {
                    gone.extend(&statement.tables);
                    there.extend(&statement.tables);
                }
            }
            tables.extend(gone.intersection(&there));
        }
        Replaced(tables)
    }
}

/// Adds columns of a table.
pub(super) fn add(all: &mut BTreeMap<RelationId, Columns>, table: RelationId, columns: &Columns) {
    match (all.entry(table).or_insert(Columns::NONE), columns) {
        (Columns::These(own), Columns::These(more)) => own.extend(more.iter().cloned()),
        (own, _) => *own = Columns::All,
    }
}

/// The columns of rows whose values transactions give free: all of those of tables that they delete from.
pub(super) struct Freed(pub(super) BTreeMap<RelationId, Columns>);

impl Freed {
    pub(super) fn of<'r>(catalog: &Catalog, statements: impl Iterator<Item = &'r Read>) -> Freed {
        let mut found: BTreeMap<RelationId, Columns> = BTreeMap::new();
        let mut free = |table: RelationId, columns: &Columns| add(&mut found, table, columns);
        for statement in statements {
            for access in statement.accesses.iter().flatten() {
                match access.deed {
                    Deed::Update | Deed::InsertOrUpdate => free(access.table, &access.writes),
                    Deed::Delete | Deed::Cascade => free(access.table, &Columns::All),
                    _ => {}
                }
            }
            let Some(hides) = &statement.hides else { continue };
            for table in &statement.behind {
                let changed = Columns::These(changed_columns(hides, *table, catalog));
                let columns = if hides.deletes { Columns::All } else { changed };
                if !columns.is_empty() {
                    free(*table, &columns);
                }
            }
        }
        Freed(found)
    }

    /// True if a transaction may give values of these columns free.
    pub(super) fn has(&self, table: RelationId, columns: &Columns) -> bool {
        match (self.0.get(&table), columns) {
            (None, _) => false,
            (Some(Columns::These(freed)), Columns::These(columns)) => !freed.is_disjoint(columns),
            (Some(freed), _) => !freed.is_empty(),
        }
    }
}

/// The columns of a table to which code that isn't analysed may give other values: those that it assigns, and
/// generated ones. Columns of views may have other names, so that it may be any.
fn changed_columns(hides: &Hides, table: RelationId, catalog: &Catalog) -> BTreeSet<String> {
    let columns = &catalog.relations[table].columns;
    let is_view = |relation: &Relation| {
        relation.kind == RelationKind::View && hides.words.contains(&relation.name.to_lowercase())
    };
    if hides.replaces || !hides.assigned.is_empty() && catalog.relations.iter().any(is_view) {
        return columns.iter().map(|column| column.name.clone()).collect();
    }
    let is_assigned = |column: &Column| hides.assigned.contains(&column.name.to_lowercase());
    let any = columns.iter().any(is_assigned);
    let changed = columns.iter().filter(|column| is_assigned(column) || any && column.generated);
    changed.map(|column| column.name.clone()).collect()
}

/// The checks of unique indexes and foreign keys that a statement may make whose code isn't analysed.
pub(super) fn hidden_checks(read: &Read, catalog: &Catalog) -> Vec<Access> {
    let Some(hides) = &read.hides else { return Vec::new() };
    let mut found = Vec::new();
    let mut check = |table: RelationId, deed: Deed, columns: Columns| {
        found.push(Access { reads: columns, writes: Columns::NONE, ..anything(table, deed) });
    };
    let these = |columns: &[String]| Columns::These(columns.iter().cloned().collect());
    for table in &read.behind {
        let changed = changed_columns(hides, *table, catalog);
        let changes = |column: &String| hides.inserts || changed.contains(column);
        for index in catalog.members(*table).flat_map(|member| &member.uniqueness) {
            let whole = !index.columns.is_empty() && !index.partial;
            if hides.inserts || index.columns.iter().any(changes) || !whole && !changed.is_empty() {
                let columns = if whole { Columns::These(index.columns.clone()) } else { Columns::All };
                check(*table, Deed::Vacant, columns);
            }
        }
        for key in &catalog.foreign_keys {
            let Some((referenced, referencing)) = catalog.ends(key) else { continue };
            if referencing == *table && key.columns.iter().any(changes) {
                check(referenced, Deed::Refer, these(&key.referenced_columns));
            }
            if referenced == *table && (hides.deletes || key.referenced_columns.iter().any(changes)) {
                check(referencing, Deed::Vacant, these(&key.columns));
            }
        }
    }
    found
}

/// The columns that every UPDATE of their table raises: with the same value of such a column a row is the
/// same. By tables in which rows neither come nor go.
pub(super) struct Versions(pub(super) BTreeMap<RelationId, BTreeSet<String>>);

impl Versions {
    pub(super) fn of<'r>(changing: &Changing, statements: impl Iterator<Item = &'r Read>) -> Versions {
        let mut found: BTreeMap<RelationId, BTreeSet<String>> = BTreeMap::new();
        for statement in statements {
            for access in statement.accesses.iter().flatten().filter(|access| access.deed == Deed::Update) {
                let known = found.entry(access.table).or_insert_with(|| statement.raises.clone());
                known.retain(|column| statement.raises.contains(column));
            }
        }
        found.retain(|table, _| !changing.0.contains(table));
        Versions(found)
    }
}

/// Functions that give the time.
pub(crate) const CLOCKS: [&str; 10] = [
    "clock_timestamp",
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "now",
    "statement_timestamp",
    "timeofday",
    "transaction_timestamp",
];

/// Values whose order programs leave out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ignored {
    /// Numbers that sequences give.
    pub sequences: bool,
    /// Times that clocks give: in statements, or in triggers, defaults and conditions of tables that they write.
    pub clocks: bool,
    /// Rows that workers take: `SKIP LOCKED`.
    pub queues: bool,
}

impl Ignored {
    pub(super) fn of<'r>(catalog: &Catalog, statements: impl Iterator<Item = &'r Read>) -> Ignored {
        let mut ignored = Ignored::default();
        let mut written = BTreeSet::new();
        for statement in statements {
            ignored.sequences |= statement.named.contains("nextval");
            ignored.clocks |= CLOCKS.iter().any(|clock| statement.named.contains(*clock));
            for access in statement.accesses.iter().flatten() {
                ignored.queues |= statement.finds && matches!(access.deed, Deed::Pick(_));
                let inserts = access.deed.inserts();
                ignored.sequences |=
                    inserts && catalog.relations[access.table].columns.iter().any(|column| column.fresh);
                if inserts || access.deed == Deed::Update {
                    written.insert(access.table);
                }
            }
            written.extend(&statement.behind);
            let behind = statement.hides.iter().flat_map(|hides| &hides.words);
            ignored.clocks |= behind.into_iter().any(|word| CLOCKS.contains(&word.as_str()));
        }
        let tells_time = |table: &RelationId| {
            let words = catalog.hidden.behind(&name_in_sql(&catalog.relations[*table].name)).words;
            CLOCKS.iter().any(|clock| words.contains(*clock))
        };
        ignored.clocks |= written.iter().any(tells_time);
        ignored
    }
}

//! What writing a row means for others: conditions of its table, unique indexes and foreign keys.

use std::collections::{BTreeMap, BTreeSet};

use isobench_robustness::Columns;
use isobench_sql::{Check, OnChange, RelationId, RelationKind};

use super::accesses::{Access, Accesses, Deed, OfTriggers, Unknown, anything, of};
use super::operand::Operand;

impl Accesses<'_> {
    /// The columns that an UPDATE of these depends on, because conditions of the table have both.
    pub(super) fn read_by_checks(
        &self,
        table: RelationId,
        set: &BTreeSet<String>,
        reads: Columns,
    ) -> Columns {
        let Columns::These(mut names) = reads else { return Columns::All };
        let concerns = |check: &&Check| !check.valid || !check.columns.is_disjoint(set);
        let of_parts = self.catalog.members(table).filter(|member| **member != self.catalog.relations[table]);
        if of_parts
            .flat_map(|member| &member.checks)
            .any(|check| concerns(&check) && !self.catalog.relations[table].checks.contains(check))
        {
            // The columns that choose the partition decide which conditions hold.
            return Columns::All;
        }
        let checks = self.catalog.members(table).flat_map(|member| &member.checks);
        let again = checks.filter(|check| !check.valid || !check.columns.is_disjoint(set));
        names.extend(again.flat_map(|check| check.columns.iter().cloned()));
        Columns::These(names)
    }

    /// The checks of unique indexes for a row that gets these values by an UPDATE of the columns of `set`,
    /// or by an INSERT.
    pub(super) fn unique(
        &mut self,
        table: RelationId,
        values: &BTreeMap<String, Operand>,
        set: Option<&BTreeSet<String>>,
    ) {
        let catalog = self.catalog;
        for index in catalog.members(table).flat_map(|member| &member.uniqueness) {
            let whole = !index.columns.is_empty() && !index.partial;
            if whole && set.is_some_and(|set| index.columns.is_disjoint(set)) {
                continue;
            }
            let known =
                index.columns.iter().filter_map(|column| Some((column.clone(), values.get(column)?.clone())));
            let reads = if whole { Columns::These(index.columns.clone()) } else { Columns::All };
            let (equal, deferrable) = (known.collect(), index.deferrable);
            let access = Access { equal, reads, deferrable, ..of(table, Deed::Vacant) };
            if !self.found.contains(&access) {
                self.found.push(access);
            }
        }
    }

    /// The same for a new row; `given` are the columns that the INSERT names.
    pub(super) fn unique_of_new(
        &mut self,
        table: RelationId,
        values: &BTreeMap<String, Operand>,
        given: &BTreeSet<String>,
    ) {
        let before = self.found.len();
        self.unique(table, values, None);
        let relation = &self.catalog.relations[table];
        let triggers = self.catalog.triggers(table);
        let fresh: BTreeSet<String> = relation
            .columns
            .iter()
            .filter(|column| column.fresh && !given.contains(&column.name))
            .filter(|column| !triggers.before_row.insert && !triggers.on_insert.contains(&column.name))
            .map(|column| column.name.clone())
            .collect();
        let fresh_value = |access: &Access| match &access.reads {
            Columns::These(columns) => !columns.is_disjoint(&fresh),
            Columns::All => false,
        };
        for access in &mut self.found[before..] {
            access.fresh = fresh_value(access);
        }
    }

    /// Refuses tables of which writing isn't what the statement says.
    pub(super) fn require_plain(&self, table: RelationId, fires: bool) -> Result<(), Unknown> {
        let relation = &self.catalog.relations[table];
        match () {
            () if fires && self.triggers == OfTriggers::Unknown => {
                Err(format!("isobench doesn't know what triggers of {} do", relation.name))
            }
            () if relation.rules => Err(format!("{} has rules", relation.name)),
            () if relation.calls_writing => {
                Err(format!("isobench doesn't know what defaults of {} do", relation.name))
            }
            () if !matches!(relation.kind, RelationKind::Table | RelationKind::Partitioned) => {
                Err(format!("{} isn't a table", relation.name))
            }
            () => Ok(()),
        }
    }

    /// The locks by which foreign keys of a row that is written hold on to other rows. The row is written by the
    /// name of a relation, and lies in a table or below.
    pub(super) fn parents(
        &mut self,
        (named, table): (RelationId, RelationId),
        values: &BTreeMap<String, Operand>,
        set: Option<&BTreeSet<String>>,
        certain: bool,
    ) {
        let catalog = self.catalog;
        for key in &catalog.foreign_keys {
            let Some((referenced, referencing)) = catalog.ends(key) else { continue };
            let checked = set.is_none_or(|set| key.columns.iter().any(|column| set.contains(column)));
            if referencing != table || !checked {
                continue;
            }
            let pairs = key.referenced_columns.iter().zip(&key.columns);
            let equal: BTreeMap<String, Operand> =
                pairs.filter_map(|(parent, own)| Some((parent.clone(), values.get(own)?.clone()))).collect();
            // Tables that inherit don't inherit foreign keys, and a partition may have one that others don't have.
            let own = catalog.resolve(Some(&key.table.0), &key.table.1);
            let partitioned = catalog.relations[table].kind == RelationKind::Partitioned;
            let has_it = own == Some(named) && !catalog.relations[named].has_children()
                || own == Some(table) && partitioned;
            // NULLs aren't checked.
            let certain = certain && has_it && key.valid && equal.len() == key.columns.len();
            let reads = Columns::These(key.referenced_columns.iter().cloned().collect());
            let deferrable = key.deferrable;
            self.found.push(Access { equal, reads, certain, deferrable, ..of(referenced, Deed::Refer) });
        }
    }

    /// What foreign keys check and do when rows of a table with these values are deleted, or the columns of
    /// `set` change.
    pub(super) fn children(
        &mut self,
        table: RelationId,
        values: &BTreeMap<String, Operand>,
        set: Option<&BTreeSet<String>>,
    ) -> Result<(), Unknown> {
        let catalog = self.catalog;
        let changed = catalog.cascades(table, set);
        for key in &catalog.foreign_keys {
            let Some((referenced, referencing)) = catalog.ends(key) else { continue };
            let own = referenced == table
                && set.is_none_or(|set| key.referenced_columns.iter().any(|column| set.contains(column)));
            let pairs = key.columns.iter().zip(&key.referenced_columns);
            let equal = pairs.filter_map(|(child, parent)| {
                Some((child.clone(), values.get(parent).filter(|_| own)?.clone()))
            });
            if own || changed.contains(&referenced) {
                self.found.push(Access {
                    equal: equal.collect(),
                    reads: Columns::These(key.columns.iter().cloned().collect()),
                    deferrable: key.deferrable,
                    ..of(referencing, Deed::Vacant)
                });
            }
            let defaults = [key.on_delete, key.on_update].contains(&OnChange::SetDefault);
            if defaults && changed.contains(&referencing) {
                let reads = Columns::These(key.referenced_columns.iter().cloned().collect());
                self.found.push(Access { reads, ..of(referenced, Deed::Refer) });
            }
        }
        for child in changed {
            let fires = self.catalog.triggers(child).may(|event| event.update || event.delete);
            self.require_plain(child, fires)?;
            if let Some(member) = catalog.members(child).find(|member| member.calls) {
                return Err(format!("rows of {} that change with it may call functions", member.qualified()));
            }
            self.found.push(anything(child, Deed::Cascade));
        }
        Ok(())
    }
}

//! WITH: what common table expressions pass on, and what data-modifying statements in them write.

use sqlparser::ast::{Query, Select, SetExpr, TableFactor};
use sqlparser::tokenizer::Token;

use super::from::{Items, Source};
use super::query::Shape;
use super::{Cte, Examiner, Level, NotUnderstood, Packing, Role, Scope, Shown, Understood, ident};
use crate::dark::{Clause, Dark, Unshown};

impl Examiner<'_> {
    /// The common table expressions of a query, added to those around it.
    pub(super) fn with(&mut self, query: &Query, scope: &Scope) -> Understood<Scope> {
        let mut scope = scope.clone();
        // What a data-modifying statement around the query wrote is dealt with there.
        scope.ctes.values_mut().for_each(|cte| {
            if cte.writes {
                cte.passes.clear();
                cte.writes = false;
            }
        });
        let Some(with) = &query.with else { return Ok(scope) };
        for cte in &with.cte_tables {
            if cte.from.is_some() {
                return Err(NotUnderstood);
            }
            let name = ident(&cte.alias.name);
            let place = self.token(cte.alias.name.span)?;
            self.known_names.insert(place);
            let end = self.token(cte.closing_paren_token.0.span)?;
            if with.recursive {
                scope.ctes.insert(name.clone(), Cte { passes: Vec::new(), writes: false });
            }
            let writes = matches!(
                &*cte.query.body,
                SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
            );
            let mut passes = match &*cte.query.body {
                SetExpr::Insert(statement)
                | SetExpr::Update(statement)
                | SetExpr::Delete(statement)
                | SetExpr::Merge(statement) => {
                    let inner = self.with(&cte.query, &scope)?;
                    self.write(statement, end, &inner, false)?
                }
                _ => self.query(&cte.query, &scope, false)?,
            };
            if with.recursive {
                self.lose(&passes, Clause::Recursive);
                passes.clear();
            }
            scope.ctes.insert(name, Cte { passes, writes });
        }
        Ok(scope)
    }

    /// Shows, or gives up, the rows that data-modifying statements in WITH write.
    pub(super) fn written_in_ctes(
        &mut self,
        query: &Query,
        select: &Select,
        scope: &Scope,
        shape: &Shape,
        items: &Items,
        shown: &mut Vec<Shown>,
    ) {
        let each_row = !shape.limited
            && !shape.set
            && !shape.skips
            && !shape.grouping_sets
            && select.distinct.is_none()
            && select.having.is_none()
            && select.selection.is_none();
        // The result has one row whatever the tables hold, and nothing is evaluated after its columns.
        let mut once = each_row
            && !shape.grouped
            && (shape.aggregated || select.from.is_empty())
            && query.order_by.is_none()
            && query.locks.is_empty();
        // In the order in which the server completes what the main query hasn't read: the last one first.
        // So the columns, which come last, do what the end of the statement would do.
        let names =
            query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| ident(&cte.alias.name)).rev();
        for (name, cte) in
            names.filter_map(|name| scope.ctes.get_key_value(&name)).filter(|(_, cte)| cte.writes)
        {
            let passed = |source: &Source| match source {
                Source::Passed { writes, shown } => *writes && !shown.is_empty(),
                _ => false,
            };
            let alone =
                matches!(items.list.as_slice(), [item] if passed(&item.source) && is_cte(select, name));
            let visible = self.starred() || self.whole_row(name);
            if alone && each_row && !visible {
                continue;
            }
            shown.retain(|rows| !cte.passes.iter().any(|own| same_place(own, rows)));
            if visible || !once || cte.passes.is_empty() {
                self.lose(&cte.passes, Clause::With);
                // Those before it are completed after it.
                once = false;
                continue;
            }
            for rows in &cte.passes {
                let mut rows = rows.clone();
                let qualifier = self.cte_name(query, name);
                rows.levels.push(Level { at: shape.at, before: shape.before, qualifier });
                rows.packed = Packing::Subquery;
                rows.searches.clear();
                shown.push(rows);
            }
        }
    }

    /// True if `*` may show the columns of a CTE somewhere.
    fn starred(&self) -> bool {
        // A `*` after anything but the parenthesis of `count(*)`, a factor, or RETURNING.
        let tokens = &self.text.tokens;
        self.range.clone().skip(1).any(|place| {
            let before = &tokens[place - 1];
            let list = ["select", "all", "distinct"].iter().any(|word| before.is(word));
            let sign = matches!(before.token.token, Token::Comma | Token::Period | Token::RParen);
            tokens[place].token.token == Token::Mul && (list || sign)
        })
    }

    /// The name of a CTE as written where it is defined.
    fn cte_name(&self, query: &Query, name: &str) -> String {
        let found =
            query.with.iter().flat_map(|with| &with.cte_tables).find(|cte| ident(&cte.alias.name) == name);
        found.and_then(|cte| self.written(&cte.alias.name).ok()).unwrap_or_else(|| name.to_owned())
    }

    /// Notes the writes of CTEs whose rows nothing passes on.
    pub(super) fn lost_writes(&mut self, scope: &Scope) {
        let lost: Vec<Shown> =
            scope.ctes.values().filter(|cte| cte.writes).flat_map(|cte| cte.passes.clone()).collect();
        self.lose(&lost, Clause::With);
    }

    /// Notes the rows that no list of output columns passes on to the statement's own: writes must never
    /// be forgotten.
    pub(super) fn not_passed(&mut self) {
        for rows in std::mem::take(&mut self.offered) {
            if self.found.shown.iter().any(|shown| same_place(shown, &rows)) {
                continue;
            }
            let table = self.catalog.relations[rows.table].qualified();
            if rows.role != Role::Read {
                self.found.unseen.insert(rows.table);
                self.note(Dark::Unshown { table, reason: Unshown::With });
            } else if !self
                .found
                .dark
                .iter()
                .any(|dark| matches!(dark, Dark::Hidden { table: known, .. } if *known == table))
            {
                self.note(Dark::Hidden { table, clause: Clause::With });
            }
        }
    }

    /// Notes the writes among the items of a query that doesn't pass them on.
    pub(super) fn items_lost(&mut self, items: &Items) {
        for item in &items.list {
            if let Source::Passed { shown, writes: true, .. } = &item.source {
                self.lose(&shown.clone(), Clause::With);
            }
        }
    }

    fn lose(&mut self, lost: &[Shown], clause: Clause) {
        for rows in lost {
            let table = self.catalog.relations[rows.table].qualified();
            if rows.role == Role::Read {
                self.note(Dark::Hidden { table, clause });
            } else {
                self.found.unseen.insert(rows.table);
                self.note(Dark::Unshown { table, reason: Unshown::With });
            }
        }
    }
}

/// True if the only table of FROM is that CTE.
fn is_cte(select: &Select, name: &str) -> bool {
    match select.from.as_slice() {
        [table] if table.joins.is_empty() => match &table.relation {
            TableFactor::Table { name: table, .. } => {
                table.0.len() == 1 && table.0[0].as_ident().is_some_and(|found| ident(found) == name)
            }
            _ => false,
        },
        _ => false,
    }
}

/// True if two entries show the rows of one place in the text.
fn same_place(own: &Shown, other: &Shown) -> bool {
    match (own.levels.first(), other.levels.first()) {
        (Some(own), Some(other)) => own.at == other.at && own.qualifier == other.qualifier,
        _ => false,
    }
}

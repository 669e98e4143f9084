//! The clauses and tables of statements that are understood completely.
//!
//! The list is of what is allowed. All else is a gap: the statement may read and write anything. The
//! reader of accesses ([`super::accesses`]) answers only for statements without a gap. Which functions a statement
//! calls, and whether all columns are seen, is decided by the server's own reading (`catalog/reading.rs`).

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Cte, Delete, GroupByExpr, Insert, JoinOperator, LimitClause, ObjectName, Query, Select, SelectItem,
    SetExpr, Statement, TableAlias, TableFactor, TableWithJoins, Update, UpdateTableFromKind,
};

use super::clauses::{is_plain_delete, is_plain_insert, is_plain_select, is_plain_update};
use super::walk::{Node, walk};
use super::{Examiner, ident};
use crate::catalog::{Inheritance, RelationId, RelationKind};

/// The system's catalogs and views whose rows change with what transactions do.
const CHANGING_CATALOGS: [&str; 8] = [
    "pg_cursors",
    "pg_largeobject",
    "pg_largeobject_metadata",
    "pg_locks",
    "pg_prepared_statements",
    "pg_prepared_xacts",
    "pg_sequences",
    "pg_class",
];

impl Examiner<'_> {
    /// Why the statement isn't understood completely; `None` if it is.
    pub(super) fn gap(&self, statement: &Statement) -> Option<String> {
        // Such strings end elsewhere for the server.
        if !self.catalog.standard_strings && self.text.written(&self.range).contains('\\') {
            return Some("backslashes are part of its strings".to_owned());
        }
        self.form(statement).or_else(|| self.shadow(statement))
    }

    /// A WITH query that has the name of a table: which of both a name means depends on where it stands.
    fn shadow(&self, statement: &Statement) -> Option<String> {
        let named = named_queries(statement);
        let shadows = |name: &&String| self.catalog.resolve(None, name).is_some();
        named.iter().find(shadows).map(|name| format!("its WITH query {name} has the name of a table"))
    }

    /// True if a WITH query of the statement has the name of a table.
    pub(super) fn shadows_tables(&self, statement: &Statement) -> bool {
        self.shadow(statement).is_some()
    }

    /// A part of the statement that isn't on the list.
    fn form(&self, statement: &Statement) -> Option<String> {
        let mut found = match statement {
            Statement::Query(_) => None,
            Statement::Insert(insert) => self.insert_form(insert),
            Statement::Update(update) => self.update_form(update),
            Statement::Delete(delete) => self.delete_form(delete),
            _ => Some(unlisted("this kind of statement")),
        };
        if found.is_some() {
            return found;
        }
        let _ = walk(statement, &mut |node| {
            found = match node {
                Node::Query(query) => self.query_form(query),
                Node::Select(select) => self.select_form(select),
                Node::Expr(_) | Node::QueryEnd | Node::SelectEnd | Node::Relation(_) => None,
            };
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found
    }

    fn query_form(&self, query: &Query) -> Option<String> {
        let Query { with, body, limit_clause, for_clause, settings, format_clause, pipe_operators, .. } =
            query;
        if for_clause.is_some() || settings.is_some() || format_clause.is_some() || !pipe_operators.is_empty()
        {
            return Some(unlisted("a clause of its query"));
        }
        if let Some(LimitClause::OffsetCommaLimit { .. }) = limit_clause {
            return Some(unlisted("its LIMIT"));
        }
        let named = |cte: &Cte| cte.from.is_some() || cte.alias.at.is_some();
        if with.as_ref().is_some_and(|with| with.cte_tables.iter().any(named)) {
            return Some(unlisted("its WITH"));
        }
        self.body_form(body)
    }

    fn body_form(&self, body: &SetExpr) -> Option<String> {
        match body {
            SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => None,
            SetExpr::SetOperation { left, right, .. } => {
                self.body_form(left).or_else(|| self.body_form(right))
            }
            SetExpr::Insert(Statement::Insert(insert)) => self.insert_form(insert),
            SetExpr::Update(Statement::Update(update)) => self.update_form(update),
            SetExpr::Delete(Statement::Delete(delete)) => self.delete_form(delete),
            _ => Some(unlisted("a part of its query")),
        }
    }

    fn select_form(&self, select: &Select) -> Option<String> {
        let grouped = match &select.group_by {
            GroupByExpr::All(_) => false,
            GroupByExpr::Expressions(_, modifiers) => modifiers.is_empty(),
        };
        if !is_plain_select(select) || select.into.is_some() || !grouped {
            return Some(unlisted("a clause of its SELECT"));
        }
        let listed = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(_)
            | SelectItem::ExprWithAlias { .. }
            | SelectItem::Wildcard(_)
            | SelectItem::QualifiedWildcard(..) => true,
            SelectItem::ExprWithAliases { .. } => false,
        };
        if !select.projection.iter().all(listed) {
            return Some(unlisted("an output column"));
        }
        self.tables_form(&select.from)
    }

    fn tables_form(&self, from: &[TableWithJoins]) -> Option<String> {
        from.iter().find_map(|table| {
            let joins = || table.joins.iter();
            let operator = |operator: &JoinOperator| {
                let listed = matches!(
                    operator,
                    JoinOperator::Join(_)
                        | JoinOperator::Inner(_)
                        | JoinOperator::Left(_)
                        | JoinOperator::LeftOuter(_)
                        | JoinOperator::Right(_)
                        | JoinOperator::RightOuter(_)
                        | JoinOperator::FullOuter(_)
                        | JoinOperator::CrossJoin(_)
                );
                (!listed).then(|| unlisted("a join"))
            };
            self.factor_form(&table.relation)
                .or_else(|| joins().find_map(|join| self.factor_form(&join.relation)))
                .or_else(|| joins().find_map(|join| operator(&join.join_operator)))
        })
    }

    fn factor_form(&self, factor: &TableFactor) -> Option<String> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality: _,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                let plain = with_hints.is_empty()
                    && version.is_none()
                    && partitions.is_empty()
                    && json_path.is_none()
                    && sample.is_none()
                    && index_hints.is_empty();
                if !plain {
                    return Some(unlisted("a clause of a table"));
                }
                let renames = |alias: &TableAlias| !alias.columns.is_empty() || alias.at.is_some();
                match self.resolved(name).filter(|_| args.is_none()) {
                    Some(_) if alias.as_ref().is_some_and(renames) => {
                        Some(format!("the alias of {name} renames its columns"))
                    }
                    Some(relation) => self.relation_form(relation),
                    None => None,
                }
            }
            TableFactor::Derived { sample: None, .. }
            | TableFactor::Function { .. }
            | TableFactor::UNNEST { .. } => None,
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.tables_form(std::slice::from_ref(&**table_with_joins))
            }
            _ => Some(unlisted("an item of FROM")),
        }
    }

    /// Why isobench doesn't know all that reading a table does.
    fn relation_form(&self, relation: RelationId) -> Option<String> {
        let found = &self.catalog.relations[relation];
        let name = found.qualified();
        if found.kind == RelationKind::System {
            let changes =
                CHANGING_CATALOGS.contains(&found.name.as_str()) || found.name.starts_with("pg_stat");
            return changes.then(|| format!("{name} changes with what other transactions do"));
        }
        let several = |other: &crate::catalog::Relation| other.inheritance == Inheritance::Several;
        let inherits = matches!(
            found.inheritance,
            Inheritance::Parent | Inheritance::Child { .. } | Inheritance::Several
        );
        if inherits && self.catalog.relations.iter().any(several) {
            return Some(format!("{name} has to do with tables that inherit from several"));
        }
        self.catalog.members(relation).find_map(|member| {
            let kind = matches!(member.kind, RelationKind::Table | RelationKind::Partitioned);
            match () {
                () if member.row_security => Some(format!("policies decide which rows of {name} it sees")),
                () if !kind => Some(format!("{} isn't a table", member.qualified())),
                () => None,
            }
        })
    }

    fn insert_form(&self, insert: &Insert) -> Option<String> {
        if !is_plain_insert(insert) {
            return Some(unlisted("a clause of its INSERT"));
        }
        let sqlparser::ast::TableObject::TableName(name) = &insert.table else {
            return Some(unlisted("its table"));
        };
        self.target_form(name)
    }

    fn update_form(&self, update: &Update) -> Option<String> {
        let Update { table, from, .. } = update;
        if !is_plain_update(update) {
            return Some(unlisted("a clause of its UPDATE"));
        }
        let from = match from {
            None => &[],
            Some(UpdateTableFromKind::AfterSet(from)) => from.as_slice(),
            Some(UpdateTableFromKind::BeforeSet(_)) => return Some(unlisted("its FROM")),
        };
        self.tables_form(std::slice::from_ref(table)).or_else(|| self.tables_form(from)).or_else(|| {
            let TableFactor::Table { name, .. } = &table.relation else {
                return Some(unlisted("its table"));
            };
            self.target_form(name)
        })
    }

    fn delete_form(&self, delete: &Delete) -> Option<String> {
        let (sqlparser::ast::FromTable::WithFromKeyword(from)
        | sqlparser::ast::FromTable::WithoutKeyword(from)) = &delete.from;
        let [TableWithJoins { relation: TableFactor::Table { name, .. }, joins }] = from.as_slice() else {
            return Some(unlisted("its table"));
        };
        if !is_plain_delete(delete) || !joins.is_empty() {
            return Some(unlisted("a clause of its DELETE"));
        }
        self.tables_form(from)
            .or_else(|| self.tables_form(delete.using.as_deref().unwrap_or_default()))
            .or_else(|| self.target_form(name))
    }

    /// What writing a table may call.
    fn target_form(&self, name: &ObjectName) -> Option<String> {
        let Some(relation) = self.resolved(name) else {
            return Some(format!("{name} isn't a table that is known"));
        };
        if let Some(gap) = self.relation_form(relation) {
            return Some(gap);
        }
        self.catalog.members(relation).find(|member| member.calls).map(|member| {
            let table = member.qualified();
            format!("a default, a condition, an index or a policy of {table} may call a function of a user")
        })
    }
}

/// The names of a statement's WITH queries, at any depth.
fn named_queries(statement: &Statement) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let _ = walk(statement, &mut |node| {
        if let Node::Query(query) = node {
            let all = query.with.iter().flat_map(|with| &with.cte_tables);
            names.extend(all.map(|cte| ident(&cte.alias.name)));
        }
        ControlFlow::Continue(())
    });
    names
}

fn unlisted(part: &str) -> String {
    format!("isobench doesn't know {part}")
}

//! SELECT: the rows that its list of output columns can show.

use isobench_script::{RowLimit, SearchValue, SearchWhen};
use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, LimitClause, NonBlock, OrderByKind, Query, Select, SelectItem, SetExpr,
    SetOperator, SetQuantifier,
};
use sqlparser::tokenizer::Token;

use super::aggregates::Calls;
use super::clauses::is_plain_select;
use super::condition::LIST_ENDS;
use super::from::{Item, Items, Source};
use super::known::count_of_all;
use super::order::Order;
use super::{Condition, Examiner, NotUnderstood, Packing, Role, Scope, Search, Shown, Understood};
use crate::dark::{Clause, Dark, Unshown};
use isobench_sql::RelationId;

/// What decides how a SELECT's rows can be shown.
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a query")]
pub(super) struct Shape {
    /// A list place follows, not a first column.
    pub before: &'static str,
    /// The place after the list of output columns.
    pub at: usize,
    pub grouped: bool,
    pub aggregated: bool,
    pub set: bool,
    pub grouping_sets: bool,
    pub limited: bool,
    pub windows: bool,
    pub skips: bool,
}

impl Examiner<'_> {
    /// The rows that a query can show in its output columns, which are extended after those that it
    /// has. The statement's own query is `main`: its rows may be packed.
    pub(super) fn query(&mut self, query: &Query, scope: &Scope, main: bool) -> Understood<Vec<Shown>> {
        if query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty()
        {
            return Err(NotUnderstood);
        }
        let scope = self.with(query, scope)?;
        let passed = match &*query.body {
            SetExpr::Select(select) => return self.select(query, select, &scope, main),
            SetExpr::Query(inner) if is_plain(query) => return self.query(inner, &scope, main),
            SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier: SetQuantifier::All,
                left,
                right,
            } if main && is_unordered(query) => match (&**left, &**right) {
                (SetExpr::Select(left), SetExpr::Select(right)) => {
                    return self.union_all(query, [left, right], &scope);
                }
                _ => Clause::SetOperation,
            },
            // Tables in there are noted as those of subqueries are, but with the clause.
            SetExpr::SetOperation { .. } => Clause::SetOperation,
            SetExpr::Values(_) | SetExpr::Table(_) => Clause::Table,
            _ => return Err(NotUnderstood),
        };
        self.lost_writes(&scope);
        self.hide_tables(&query.body, passed, &scope)?;
        Ok(Vec::new())
    }

    /// The rows of both branches of a UNION ALL. Where a row of one is shown, the other has NULLs.
    fn union_all(&mut self, query: &Query, branches: [&Select; 2], scope: &Scope) -> Understood<Vec<Shown>> {
        let mut found = Vec::new();
        for (branch, other) in [(branches[0], branches[1]), (branches[1], branches[0])] {
            let before = if other.projection.is_empty() { " " } else { ", " };
            let end = (self.list_end(other)?, before);
            for mut rows in self.select(query, branch, scope, false)? {
                rows.alongside = Some(end);
                rows.nullable = true;
                found.push(rows);
            }
        }
        Ok(found)
    }

    /// Notes the tables directly in FROM of a set operation's branches.
    fn hide_tables(&mut self, body: &SetExpr, clause: Clause, scope: &Scope) -> Understood<()> {
        match body {
            SetExpr::Select(select) => {
                let items = self.items(&select.from, scope)?;
                self.hide(&items, clause);
                self.items_lost(&items);
                Ok(())
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.hide_tables(left, clause, scope)?;
                self.hide_tables(right, clause, scope)
            }
            SetExpr::Query(query) => {
                let scope = self.with(query, scope)?;
                self.hide_tables(&query.body, clause, &scope)
            }
            // `TABLE t`: the table is noted as one of a subquery is.
            SetExpr::Values(_) | SetExpr::Table(_) => Ok(()),
            _ => Err(NotUnderstood),
        }
    }

    fn select(
        &mut self,
        query: &Query,
        select: &Select,
        scope: &Scope,
        main: bool,
    ) -> Understood<Vec<Shown>> {
        if !is_plain_select(select) {
            return Err(NotUnderstood);
        }
        let items = self.items(&select.from, scope)?;
        let shape = self.shape(query, select, &items)?;
        let clause = if select.into.is_some() {
            Some(Clause::Into)
        } else if matches!(select.distinct, Some(Distinct::Distinct)) {
            Some(Clause::Distinct)
        } else if shape.aggregated && !main {
            Some(Clause::Derived)
        } else {
            None
        };
        if let Some(clause) = clause {
            self.hide(&items, clause);
            self.items_lost(&items);
            self.lost_writes(scope);
            return Ok(Vec::new());
        }
        let items = self.without_stars(select, items);
        let mut shown = self.readable(&items, shape.at, shape.before);
        for rows in &mut shown {
            if shape.aggregated {
                rows.packed = Packing::Aggregate;
            }
        }
        let searches = self.searches_of_select((query, select), scope, &items, &shape, main);
        if searches.len() == shown.len() {
            let page =
                if main || !is_page(query, &items, &shape) { None } else { page_of(&self.limit(query)) };
            for (rows, searches) in shown.iter_mut().zip(searches) {
                rows.searches = searches;
                rows.page = rows.page.take().or_else(|| page.clone());
            }
        }
        if main {
            self.answers(select, scope);
            self.answer_of_row(select, scope);
            self.found.count = if shape.grouped { None } else { count_of_all(select) };
            self.written_in_ctes(query, select, scope, &shape, &items, &mut shown);
        } else {
            self.lost_writes(scope);
        }
        if select.having.is_some() {
            self.hide(&items, Clause::Having);
        }
        Ok(shown)
    }

    fn shape(&self, query: &Query, select: &Select, items: &Items) -> Understood<Shape> {
        let names = items.names();
        let mut calls = Calls::new(self.catalog, &names);
        calls.look(&select.projection);
        let set = calls.set;
        calls.look(&select.having);
        if let Some(order) = &query.order_by {
            match &order.kind {
                OrderByKind::Expressions(list) => calls.look(list),
                OrderByKind::All(_) => return Err(NotUnderstood),
            }
        }
        if calls.doubtful {
            return Err(NotUnderstood);
        }
        let (grouped, grouping_sets) = match &select.group_by {
            GroupByExpr::All(_) => return Err(NotUnderstood),
            GroupByExpr::Expressions(list, modifiers) => {
                let sets = |expr: &Expr| {
                    matches!(expr, Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) | Expr::Tuple(_))
                };
                (!list.is_empty() || !modifiers.is_empty(), !modifiers.is_empty() || list.iter().any(sets))
            }
        };
        let skips = query.locks.iter().any(|lock| matches!(lock.nonblock, Some(NonBlock::SkipLocked)));
        Ok(Shape {
            before: if select.projection.is_empty() { " " } else { ", " },
            at: self.list_end(select)?,
            grouped,
            aggregated: grouped || calls.aggregate || select.having.is_some(),
            set,
            grouping_sets,
            limited: is_limited(query),
            windows: self.text.tokens[self.range.clone()].iter().any(|token| token.is("over")),
            skips,
        })
    }

    /// The place after the last output column.
    fn list_end(&self, select: &Select) -> Understood<usize> {
        let start = self.token(select.select_token.0.span)?;
        let tokens = &self.text.tokens;
        let mut depth = 0_usize;
        for place in start + 1..self.range.end {
            let token = &tokens[place];
            let before = &tokens[place - 1];
            match token.token.token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket if depth == 0 => return Ok(before.range.end),
                Token::RParen | Token::RBracket => depth -= 1,
                _ => {}
            }
            // A word after AS or a period is a name.
            if depth > 0 || before.is("as") || before.is("within") || before.token.token == Token::Period {
                continue;
            }
            if token.is("from") && !(before.is("distinct") && place >= 2 && follows_is(tokens, place - 1)) {
                return if select.from.is_empty() { Err(NotUnderstood) } else { Ok(before.range.end) };
            }
            if LIST_ENDS.iter().any(|word| token.is(word)) {
                return if select.from.is_empty() { Ok(before.range.end) } else { Err(NotUnderstood) };
            }
        }
        let last = &tokens[self.range.end - 1];
        if select.from.is_empty() { Ok(last.range.end) } else { Err(NotUnderstood) }
    }

    /// Takes the subqueries away whose added columns `*` or a whole-row reference would show.
    fn without_stars(&mut self, select: &Select, items: Items) -> Items {
        let star = select.projection.iter().any(|item| matches!(item, SelectItem::Wildcard(_)));
        let natural = items.natural;
        let mut kept = Items { list: Vec::new(), natural };
        for mut item in items.list {
            if let Source::Passed { shown, writes, .. } = &item.source
                && (star || natural || item.name.is_empty() || self.whole_row(&item.name))
            {
                for rows in shown {
                    let table = self.catalog.relations[rows.table].qualified();
                    if rows.role == Role::Read {
                        self.note(Dark::Hidden { table, clause: Clause::Star });
                    } else {
                        self.found.unseen.insert(rows.table);
                        self.note(Dark::Unshown { table, reason: Unshown::With });
                    }
                }
                item.source = Source::Passed { shown: Vec::new(), writes: *writes };
            }
            kept.list.push(item);
        }
        kept
    }

    /// True if a name may stand for a whole row somewhere: it isn't followed by a column's name.
    pub(super) fn whole_row(&self, name: &str) -> bool {
        let tokens = &self.text.tokens;
        let is_name = |place: usize| tokens[place].name().is_some_and(|found| found == name);
        let follows = |place: usize| (place + 1 < self.range.end).then(|| &tokens[place + 1].token.token);
        self.range.clone().filter(|place| is_name(*place)).any(|place| match follows(place) {
            Some(Token::Period) => matches!(follows(place + 1), Some(Token::Mul)),
            _ => !self.known_names.contains(&place) && !self.is_item(place),
        })
    }

    /// True if a name directly follows FROM or JOIN, as in a subquery that wasn't examined.
    fn is_item(&self, place: usize) -> bool {
        let word = |back: usize, keyword: &str| {
            place.checked_sub(back).is_some_and(|before| self.text.tokens[before].is(keyword))
        };
        word(1, "join") || word(1, "from") && !word(2, "distinct")
    }

    /// What the SELECT searched for in each of its tables; nothing if that isn't known.
    fn searches_of_select(
        &mut self,
        (query, select): (&Query, &Select),
        scope: &Scope,
        items: &Items,
        shape: &Shape,
        main: bool,
    ) -> Vec<Vec<Search>> {
        let part = items.list.iter().any(|item| matches!(item.source, Source::Table { part: true, .. }));
        let limit = self.limit(query);
        let unlimited = matches!(limit, Ok(None));
        let page = if is_page(query, items, shape) { page_of(&limit) } else { None };
        let obstacle = [
            // The statement would search among what it writes itself.
            (scope.ctes.values().any(|cte| cte.writes), Clause::With),
            (part, Clause::Part),
            (limit.is_err() || !main && !unlimited && page.is_none(), Clause::Limit),
            (shape.skips, Clause::SkipLocked),
            (select.having.is_some(), Clause::Having),
            (shape.set, Clause::Set),
            (shape.grouping_sets, Clause::GroupingSets),
            (matches!(select.distinct, Some(Distinct::On(_))), Clause::Distinct),
        ];
        let found = obstacle.iter().find(|(present, _)| *present).map(|(_, clause)| *clause);
        if let Some(clause) = found {
            self.unsearched(items, clause);
            return Vec::new();
        }
        let limit = limit.ok().flatten();
        if main {
            self.found.limit.clone_from(&limit);
        }
        match limit.as_ref().and_then(|limit| limit.offset.as_ref()) {
            None => {}
            Some(SearchValue::Constant(_)) => self.unsearched(items, Clause::Skipped),
            Some(_) => self.unsearched(items, Clause::Offset),
        }
        let cut = limit.is_some_and(|limit| limit.rows.is_some());
        if items.list.len() != 1 {
            return self.searches_of_join((query, select), items, shape, (main, cut));
        }
        let Some(search) = self.search_of_one((query, select), scope, items, main) else { return Vec::new() };
        // Without GROUP BY an aggregate has one row, whatever the limit; and so has a key.
        if !cut || shape.aggregated && !shape.grouped || search.key.is_some() && !shape.grouped {
            return vec![vec![search]];
        }
        let whole = Search { when: SearchWhen::Unlimited, ..search };
        if shape.grouped || shape.windows {
            self.unsearched(items, Clause::Limit);
            return vec![vec![whole]];
        }
        // Without an order any of the rows are as good as others: nothing follows from what is left out.
        if query.order_by.is_none() {
            return vec![vec![whole]];
        }
        self.searches_of_first((query, select), items, whole)
    }

    /// The searches of a query of one table that returns the first rows of an order.
    fn searches_of_first(
        &mut self,
        (query, select): (&Query, &Select),
        items: &Items,
        whole: Search,
    ) -> Vec<Vec<Search>> {
        let order = match items.list.first() {
            Some(item @ Item { source: Source::Table { relation, .. }, .. }) => {
                self.order(query, select, (&self.catalog.relations[self.catalog.root(*relation)], item))
            }
            _ => None,
        };
        if order.as_ref().is_none_or(|order| !order.decides) {
            self.unsearched(items, Clause::Limit);
        }
        let mut searches = vec![whole.clone()];
        if let Some(before) = order.and_then(Order::before) {
            let condition = match whole.condition.clone() {
                Condition::True => before,
                condition => Condition::And(vec![condition, before]),
            };
            searches.push(Search { when: SearchWhen::Limited, condition, ..whole });
        }
        vec![searches]
    }

    /// The searches of a join, which the result may be cut off.
    fn searches_of_join(
        &mut self,
        (query, select): (&Query, &Select),
        items: &Items,
        shape: &Shape,
        (main, cut): (bool, bool),
    ) -> Vec<Vec<Search>> {
        let (condition, locks) = (select.selection.as_ref(), !query.locks.is_empty());
        let searches = main.then(|| self.join_searches(&select.from, condition, items, locks));
        let mut searches = searches.flatten().unwrap_or_default();
        // Of an inner join without a row it isn't known which table lacks one.
        let always = |search: &Search| search.when == SearchWhen::Always;
        let cut = cut && (shape.grouped || !self.finds_one(items, &searches));
        let known = searches.iter().flatten().any(always);
        if cut {
            for searches in &mut searches {
                searches.retain(always);
                for search in searches {
                    search.when = SearchWhen::Unlimited;
                }
            }
        }
        if !known {
            self.unsearched(items, Clause::Join);
        } else if cut && (query.order_by.is_some() || shape.aggregated || shape.windows) {
            self.unsearched(items, Clause::Limit);
        }
        searches
    }

    /// True if a join has one row at most: it looks up each table by its key.
    fn finds_one(&self, items: &Items, searches: &[Vec<Search>]) -> bool {
        let one = |(item, searches): (&Item, &Vec<Search>)| {
            let Source::Table { relation, .. } = item.source else { return false };
            let relation = &self.catalog.relations[self.catalog.root(relation)];
            let key = relation.key_names();
            let by_key = |condition: &Condition| matches!(condition, Condition::OneOf(name, ..) if key.as_slice() == [name.as_str()] && !relation.has_children());
            searches.first().is_some_and(|search| {
                let looked_up = match &search.condition {
                    Condition::And(parts) => parts.iter().any(by_key),
                    condition => by_key(condition),
                };
                search.key.is_some() || looked_up
            })
        };
        searches.len() == items.list.len() && items.list.iter().zip(searches).all(one)
    }

    /// What a SELECT of one table, or of one subquery that searched, searched for.
    fn search_of_one(
        &mut self,
        (query, select): (&Query, &Select),
        scope: &Scope,
        items: &Items,
        main: bool,
    ) -> Option<Search> {
        let [item] = items.list.as_slice() else { return None };
        match &item.source {
            Source::Table { relation, .. } => {
                let whole = main && !is_limited(query) && query.locks.is_empty();
                let condition = select.selection.as_ref().filter(|_| whole);
                let found = condition
                    .and_then(|condition| self.search_by_key_of_others(*relation, item, condition, scope));
                found.or_else(|| self.search(*relation, item, select.selection.as_ref()))
            }
            Source::Passed { shown, .. } => match shown.as_slice() {
                [Shown { searches, page, .. }]
                    if !searches.is_empty()
                        && select.selection.is_none()
                        && (page.is_none() || self.found.limit.is_none()) =>
                {
                    if let (Some(page), true) = (page, main) {
                        self.found.limit = Some(RowLimit { of: Some(0), ..page.clone() });
                    }
                    searches.first().cloned()
                }
                _ => {
                    self.unsearched(items, Clause::Derived);
                    None
                }
            },
            Source::Nothing => None,
        }
    }

    /// The search of a statement that reads or writes all rows of a table that match.
    pub(super) fn search(
        &mut self,
        relation: RelationId,
        item: &Item,
        condition: Option<&Expr>,
    ) -> Option<Search> {
        let found = self.condition(relation, item, condition);
        if found.is_none() {
            let table = self.catalog.relations[self.catalog.root(relation)].qualified();
            let condition = condition.map(|condition| self.condition_text(condition)).unwrap_or_default();
            self.note(Dark::Search { table, condition });
        }
        found
    }
}

/// True if `DISTINCT` at a place belongs to `IS [NOT] DISTINCT FROM`.
fn follows_is(tokens: &[isobench_sql::Placed], distinct: usize) -> bool {
    let before = |steps: usize| distinct.checked_sub(steps).map(|place| &tokens[place]);
    let is = |steps: usize, word: &str| before(steps).is_some_and(|token| token.is(word));
    is(1, "is") || is(1, "not") && is(2, "is")
}

/// True if a subquery has the rows of one table as they are, in no order.
fn is_page(query: &Query, items: &Items, shape: &Shape) -> bool {
    let table = matches!(items.list.as_slice(), [Item { source: Source::Table { .. }, .. }]);
    table && query.order_by.is_none() && !shape.aggregated && !shape.windows
}

/// What a query is limited to, if that is understood.
fn page_of(limit: &Understood<Option<RowLimit>>) -> Option<RowLimit> {
    limit.as_ref().ok().cloned().flatten()
}

fn is_limited(query: &Query) -> bool {
    let limit = match &query.limit_clause {
        None => false,
        Some(LimitClause::LimitOffset { limit: None, offset: None, limit_by }) => !limit_by.is_empty(),
        Some(_) => true,
    };
    limit || query.fetch.is_some()
}

/// True if nothing but parentheses is around the inner query.
fn is_plain(query: &Query) -> bool {
    query.with.is_none() && is_unordered(query)
}

/// True if all rows of a query's body are its result, as they come.
fn is_unordered(query: &Query) -> bool {
    query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty()
}

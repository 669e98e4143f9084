//! Rows that columns tell apart, perhaps only those that a condition picks: `WHERE lock_key = … AND doing`.
//!
//! If a statement looks for such rows before it adds one, a unique index on the column of the rows that the condition
//! picks may be missing (PostgreSQL manual, "Partial Indexes"). They are found by the words of the statement; the server
//! says whether it takes the index.

use std::collections::BTreeSet;
use std::ops::Range;

use isobench_sql::{Placed, Relation, Token, name_in_sql};

use super::Statement;

/// Columns that tell rows apart, among those that a condition picks. If only constants pick them, as in `WHERE role =
/// 'admin'`, there is one such row, and the columns are those of the constants.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartialKey {
    /// The table, by schema and name.
    pub table: String,
    /// The columns.
    pub columns: BTreeSet<String>,
    /// The condition, as SQL; `None` for all rows.
    pub condition: Option<String>,
}

/// A table, the name by which it is known, and the parts of a condition on it, which AND connects.
pub(super) type Parts<'s> = (&'s Relation, String, Vec<Range<usize>>);

/// A part of a condition.
pub(super) enum Part {
    /// A column is equal to something else than a constant.
    Equal(String),
    /// A condition on a row of its own, as SQL; true if it requires a column to be equal to a constant.
    Own(String, bool),
}

impl Statement<'_> {
    /// Those of the statement's queries of one table, and of a MERGE.
    pub(crate) fn partial_keys(&self) -> BTreeSet<PartialKey> {
        let tokens = &self.text.tokens;
        let froms = self.range.clone().filter(|at| tokens[*at].is("from"));
        let found = froms.filter_map(|from| self.parts_of_condition(from)).chain(self.parts_of_update());
        found.filter_map(|parts| self.partial_key(parts)).chain(self.merged_key()).collect()
    }

    fn partial_key(&self, (relation, known, parts): Parts<'_>) -> Option<PartialKey> {
        let (mut columns, mut constant, mut conditions) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for part in parts {
            match self.part(part.clone(), &known) {
                Some(Part::Equal(column)) => drop(columns.insert(column)),
                Some(Part::Own(condition, is_equal)) => {
                    constant.extend(self.first_column(part, &known).filter(|_| is_equal));
                    conditions.insert(condition);
                }
                None => {}
            }
        }
        if columns.is_empty() && !self.takes_first() {
            columns = constant;
        }
        may_be_missing(relation, &columns).then_some(())?;
        (!conditions.is_empty()).then(|| PartialKey {
            table: relation.qualified(),
            columns,
            condition: Some(conditions.into_iter().collect::<Vec<_>>().join(" AND ")),
        })
    }

    /// The columns by which a MERGE finds the rows that it inserts otherwise.
    fn merged_key(&self) -> Option<PartialKey> {
        let (tokens, range) = (&self.text.tokens, self.range.clone());
        let [on] = self.outer("on")[..] else { return None };
        let inserts = range.clone().any(|at| tokens[at].is("insert"));
        if !tokens[range.start].is("merge") || !tokens.get(range.start + 1)?.is("into") || !inserts {
            return None;
        }
        let target = range.start + 2;
        let relation = self.catalog.resolve(None, &tokens[target].name()?)?;
        let relation = &self.catalog.relations[self.catalog.root(relation)];
        let alias = target + 1 + usize::from(tokens.get(target + 1)?.is("as"));
        let known = if tokens.get(alias)?.is("using") { target } else { alias };
        let known = tokens[known].name()?;
        let end = self.outer("when").into_iter().find(|at| *at > on)?;
        if tokens[on..end].iter().any(|token| token.is("or") || token.is("not")) {
            return None;
        }
        let mut columns = BTreeSet::new();
        for part in tokens[on + 1..end].split(|token| token.is("and")) {
            let part: Vec<&Placed> = part.iter().filter(|token| !is_parenthesis(token)).collect();
            let at = part.iter().position(|token| token.token.token == Token::Eq)?;
            let column = |side: &[&Placed]| match side {
                [name, point, column] if point.token.token == Token::Period && name.name()? == known => {
                    column.name()
                }
                _ => None,
            };
            columns.insert(column(&part[..at]).or_else(|| column(&part[at + 1..]))?);
        }
        may_be_missing(relation, &columns).then(|| PartialKey {
            table: relation.qualified(),
            columns,
            condition: None,
        })
    }

    /// True if it takes the first rows of some.
    fn takes_first(&self) -> bool {
        self.range.clone().any(|at| self.text.tokens[at].is("limit") || self.text.tokens[at].is("fetch"))
    }

    /// The column that a part of a condition names first.
    fn first_column(&self, range: Range<usize>, known: &str) -> Option<String> {
        let mut names = self.text.tokens[range].iter().filter_map(Placed::name);
        names.find(|name| name != known && name != "not")
    }

    /// The only table of the FROM at a token, the name by which it is known, and the parts of its condition, which AND
    /// connects.
    pub(super) fn parts_of_condition(&self, from: usize) -> Option<Parts<'_>> {
        const ENDS: [&str; 10] =
            ["group", "order", "limit", "for", "union", "returning", "having", "fetch", "offset", "window"];
        let (tokens, depths, start) = (&self.text.tokens, self.depths(), self.range.start);
        let depth = depths[from - start];
        let end = |at: &usize| {
            let own = depths[at - start] == depth && ENDS.iter().any(|word| tokens[*at].is(word));
            depths[at - start] < depth || own
        };
        let end = (from..self.range.end).find(end).unwrap_or(self.range.end);
        let (known, place) = self.only_table(from + 1..end)?;
        let relation = self.catalog.resolve(None, &tokens[from + 1].name()?)?;
        let relation = &self.catalog.relations[self.catalog.root(relation)];
        let own = |at: &usize| depths[at - start] == depth;
        let or = |at: usize| own(&at) && (tokens[at].is("or") || tokens[at].is("between"));
        if (place..end).any(or) {
            return None;
        }
        Some((relation, known, self.parts_of(place, end)))
    }

    /// The same of an UPDATE of one table.
    fn parts_of_update(&self) -> Option<Parts<'_>> {
        let (tokens, start) = (&self.text.tokens, self.range.start);
        let ([set], [place]) = (&self.outer("set")[..], &self.outer("where")[..]) else { return None };
        let several = ["from", "or", "between"].iter().any(|word| !self.outer(word).is_empty());
        if several || !tokens[start].is("update") || *set != start + 2 {
            return None;
        }
        let name = tokens[start + 1].name()?;
        let relation = self.catalog.resolve(None, &name)?;
        let relation = &self.catalog.relations[self.catalog.root(relation)];
        let end = self.outer("returning").first().copied().unwrap_or(self.range.end);
        Some((relation, name, self.parts_of(*place, end)))
    }

    /// The parts of the condition from WHERE to its end.
    fn parts_of(&self, place: usize, end: usize) -> Vec<Range<usize>> {
        let (tokens, depths, start) = (&self.text.tokens, self.depths(), self.range.start);
        let own = |at: &usize| depths[at - start] == depths[place - start];
        let (mut parts, mut first) = (Vec::new(), place + 1);
        for stop in (place + 1..end).filter(|at| own(at) && tokens[*at].is("and")).chain([end]) {
            parts.push(first..stop);
            first = stop + 1;
        }
        parts
    }

    /// What a part of a condition says of the table that is known by this name.
    pub(super) fn part(&self, range: Range<usize>, known: &str) -> Option<Part> {
        let tokens = &self.text.tokens[range];
        let (is_negated, tokens) = match tokens {
            [first, rest @ ..] if first.is("not") => (true, rest),
            all => (false, all),
        };
        // `column` or `name.column`.
        let column = |tokens: &[Placed]| match tokens {
            [column] => column.name(),
            [name, point, column] if point.token.token == Token::Period && name.name()? == known => {
                column.name()
            }
            _ => None,
        };
        let own = |column: &str, rest: &str| Part::Own(format!("{}{rest}", name_in_sql(column)), false);
        let find = |token: Token| tokens.iter().position(|one| one.token.token == token);
        if let Some(at) = find(Token::Eq) {
            let (left, right) = (&tokens[..at], &tokens[at + 1..]);
            let (column, other) = match (column(left), column(right)) {
                (Some(column), _) if self.literal(left).is_none() => (column, right),
                (_, Some(column)) if self.literal(right).is_none() => (column, left),
                _ => return None,
            };
            return match self.literal(other) {
                _ if is_negated => None,
                Some(value) => Some(Part::Own(format!("{} = {value}", name_in_sql(&column)), true)),
                None => Some(Part::Equal(column)),
            };
        }
        if let Some(at) = find(Token::Neq).filter(|_| !is_negated) {
            let value = self.literal(&tokens[at + 1..])?;
            return Some(own(&column(&tokens[..at])?, &format!(" <> {value}")));
        }
        if let Some(at) = tokens.iter().position(|token| token.is("is")).filter(|_| !is_negated) {
            let name = column(&tokens[..at])?;
            return match &tokens[at + 1..] {
                [null] if null.is("null") => Some(own(&name, " IS NULL")),
                [not, null] if not.is("not") && null.is("null") => Some(own(&name, " IS NOT NULL")),
                _ => None,
            };
        }
        if let Some(at) = tokens.iter().position(|token| token.is("in")).filter(|_| !is_negated) {
            let before = at.checked_sub(1)?;
            let (end, not) = if tokens[before].is("not") { (before, " NOT") } else { (at, "") };
            let [open, values @ .., close] = &tokens[at + 1..] else { return None };
            let values = values.split(|token| token.token.token == Token::Comma);
            let values: Vec<String> = values.map(|one| self.literal(one)).collect::<Option<_>>()?;
            let is_list = is_parenthesis(open) && is_parenthesis(close);
            let rest = format!("{not} IN ({})", values.join(", "));
            return is_list.then(|| column(&tokens[..end])).flatten().map(|name| own(&name, &rest));
        }
        let not = if is_negated { "NOT " } else { "" };
        Some(Part::Own(format!("{not}{}", name_in_sql(&column(tokens)?)), true))
    }

    /// A constant, as SQL.
    fn literal(&self, tokens: &[Placed]) -> Option<String> {
        let [one] = tokens else { return None };
        match &one.token.token {
            Token::Number(number, _) => Some(number.clone()),
            Token::SingleQuotedString(text) if !self.text.is_partly_variable(one.token.span.start) => {
                Some(format!("'{}'", text.replace('\'', "''")))
            }
            _ => ["true", "false"].iter().find(|word| one.is(word)).map(|word| (*word).to_owned()),
        }
    }
}

/// True if these are columns of a table, and no unique index is on some of them.
fn may_be_missing(relation: &Relation, columns: &BTreeSet<String>) -> bool {
    let has = |name: &String| relation.columns.iter().any(|column| column.name == *name);
    let named = |place: &usize| columns.contains(&relation.columns[*place].name);
    let is_unique = relation.keys().any(|key| !key.is_empty() && key.iter().all(named));
    !columns.is_empty() && columns.iter().all(has) && !is_unique
}

fn is_parenthesis(placed: &Placed) -> bool {
    matches!(placed.token.token, Token::LParen | Token::RParen)
}

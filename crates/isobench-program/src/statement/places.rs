//! Places in a statement where a lock or a further condition can stand.
//!
//! They are found by the words of the statement. Whether the server takes the changed statement, and what follows from
//! it, its own reading of that says.

use std::ops::Range;

use isobench_sql::{Token, is_reserved, name_in_sql};

use super::Statement;
use super::changes::LockWithin;

/// The words that end a query at its own depth.
const ENDS: [&str; 6] = ["union", "intersect", "except", "returning", "on", "window"];

/// The words with which a query's rows aren't rows of its tables.
const GROUPS: [&str; 3] = ["group", "having", "distinct"];

/// An UPDATE or DELETE, where a further condition can stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conditioned {
    /// The statement as far as the end of its condition, with the names of variables.
    pub before: String,
    /// The rest.
    pub after: String,
}

impl Statement<'_> {
    /// The statement with a lock at the end of one of its queries, each in turn, or of the rows that a query of a single
    /// table counts or sums up. The first of a queue comes first, with SKIP LOCKED.
    pub(crate) fn locks_within(&self) -> Vec<LockWithin> {
        let queries = self.range.clone().filter(|at| self.text.tokens[*at].is("select"));
        self.first_unlocked().into_iter().chain(queries.filter_map(|at| self.lock_of(at))).collect()
    }

    /// That of the query that begins at a token.
    fn lock_of(&self, select: usize) -> Option<LockWithin> {
        let (tokens, depths, start) = (&self.text.tokens, self.depths(), self.range.start);
        let depth = depths[select - start];
        let outside = |at: &usize| depths[at - start] < depth;
        let own = |at: &usize, words: &[&str]| {
            depths[at - start] == depth && words.iter().any(|word| tokens[*at].is(word))
        };
        let rest = select + 1..self.range.end;
        let from = rest.clone().take_while(|at| !outside(at)).find(|at| own(at, &["from"]));
        let from = from?;
        // ON belongs to a join where no query has ended: an INSERT's ON CONFLICT comes last.
        let ends = |at: &usize| {
            let joins = tokens[*at].is("on") && !tokens.get(at + 1).is_some_and(|next| next.is("conflict"));
            outside(at) || own(at, &ENDS) && !joins
        };
        let end = (from..self.range.end).find(ends).unwrap_or(self.range.end);
        let mut query = select..end;
        if query.any(|at| own(&at, &GROUPS) || own(&at, &["for"])) {
            return None;
        }
        let bytes = self.text.bytes(&self.range);
        let (open, close) = (self.text.start_of(from + 1, &self.range), self.text.bytes(&(select..end)).end);
        let written = |bytes: Range<usize>| self.text.in_lines(bytes);
        let after = written(close..bytes.end);
        let calls = |at: &usize| tokens[at + 1].token.token == Token::LParen;
        let names = (select + 1..from).filter(calls).filter_map(|at| tokens[at].name());
        let skips_locked = false;
        if names.into_iter().any(|name| self.catalog.function(&name).aggregate) {
            let (known, _) = self.only_table(from + 1..end)?;
            let order = self.order_of(from + 1, &known);
            let before =
                format!("{}(SELECT * FROM {}{order}", written(bytes.start..open), written(open..close));
            return Some(LockWithin { before, after: format!(") AS {known}{after}"), skips_locked });
        }
        // At the end of a plain query it's a lock as any other.
        let is_inner = depth > 0 || !tokens[start].is("select");
        is_inner.then(|| LockWithin { before: written(bytes.start..close), after, skips_locked })
    }

    /// The order of the key of the table at a token, which is known by this name, so that transactions that lock the same rows don't wait for each other.
    pub(super) fn order_of(&self, table: usize, known: &str) -> String {
        let tokens = &self.text.tokens;
        let is_schema = tokens.get(table + 1).is_some_and(|next| next.token.token == Token::Period);
        let (schema, at) = if is_schema { (tokens[table].name(), table + 2) } else { (None, table) };
        let name = tokens.get(at).and_then(isobench_sql::Placed::name);
        let relation = name.and_then(|name| self.catalog.resolve(schema.as_deref(), &name));
        let key = relation.map(|id| self.catalog.relations[id].key_names()).unwrap_or_default();
        let key: Vec<String> =
            key.into_iter().map(|column| format!("{known}.{}", name_in_sql(column))).collect();
        if key.is_empty() { String::new() } else { format!(" ORDER BY {}", key.join(", ")) }
    }

    /// The name by which the only table of a FROM is known, and the token WHERE; `None` if there is more, or no condition.
    pub(super) fn only_table(&self, items: Range<usize>) -> Option<(String, usize)> {
        let tokens = &self.text.tokens;
        let is_name = |at: usize| {
            let name = tokens.get(at).filter(|_| at < items.end)?;
            let quoted = matches!(&name.token.token, Token::Word(word) if word.quote_style.is_some());
            let word = name.name().filter(|word| quoted || !is_reserved(word))?;
            Some((word, self.text.written(&(at..at + 1)).to_owned()))
        };
        let is = |at: usize, token: &Token| at < items.end && tokens[at].token.token == *token;
        let mut at = items.start;
        let (_, mut known) = is_name(at)?;
        at += 1;
        while is(at, &Token::Period) {
            (_, known) = is_name(at + 1)?;
            at += 2;
        }
        if at < items.end && tokens[at].is("as") {
            at += 1;
        }
        if let Some((_, alias)) = is_name(at) {
            known = alias;
            at += 1;
        }
        (at < items.end && tokens[at].is("where")).then_some((known, at))
    }

    /// An UPDATE or DELETE of one table, up to the end of its condition, and the rest.
    pub(crate) fn conditioned(&self) -> Option<Conditioned> {
        let tokens = &self.text.tokens;
        let first = &tokens[self.range.start];
        let depths = self.depths();
        let own = |at: &usize| depths[at - self.range.start] == 0;
        let find = |word: &str| self.range.clone().filter(own).find(|at| tokens[*at].is(word));
        let of_several = match first {
            _ if first.is("update") => find("from"),
            _ if first.is("delete") => find("using"),
            _ => return None,
        };
        let condition = find("where").filter(|_| of_several.is_none())?;
        let end = find("returning").unwrap_or(self.range.end);
        let other = |at: usize| own(&at) && (tokens[at].is("or") || tokens[at].is("current"));
        if (condition..end).any(other) {
            return None;
        }
        let (bytes, until) = (self.text.bytes(&self.range), self.text.bytes(&(condition..end)).end);
        let [before, after] = [bytes.start..until, until..bytes.end].map(|part| self.text.in_lines(part));
        Some(Conditioned { before, after })
    }
}

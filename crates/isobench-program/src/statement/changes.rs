//! How a query could be written so that it locks the rows that it reads, or writes them back.

use std::collections::BTreeMap;
use std::ops::Range;

use isobench_robustness::Strength;
use isobench_sql::{BoundRelation, RelationId, Wait, name_in_sql};

use super::Statement;

/// Other ways to write a query, for the rows of one of its tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fix {
    /// What is added at its end to lock the rows, but for the strength: `OF a`, or nothing. `None` if
    /// its rows can't be locked.
    pub lock: Option<String>,
    /// The weaker lock that it has already, as written, at its end; the other one takes its place.
    pub weaker: Option<String>,
    /// The whole statement as an UPDATE that writes a column back and returns the same. `None` if there
    /// is none.
    pub write: Option<String>,
}

/// A statement that can lock rows by more than a clause at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockWithin {
    /// The statement as far as the lock, with the names of variables.
    pub before: String,
    /// The rest.
    pub after: String,
    /// Rows that others have locked are passed over.
    pub skips_locked: bool,
}

impl LockWithin {
    /// The lock.
    pub fn clause(&self) -> &'static str {
        if self.skips_locked { "FOR UPDATE SKIP LOCKED" } else { Strength::NoKeyUpdate.clause() }
    }

    /// The statement with it.
    pub fn text(&self) -> String {
        self.with(self.clause())
    }

    /// The statement with another lock in its place.
    pub fn with(&self, clause: &str) -> String {
        format!("{} {clause}{}", self.before, self.after)
    }
}

impl Statement<'_> {
    /// How a query of tables could be written, by table.
    pub(crate) fn fixes(&self) -> BTreeMap<RelationId, Fix> {
        let mut fixes = BTreeMap::new();
        let Ok(bound) = &self.bound else { return fixes };
        if !bound.shape.shows_rows || !self.text.tokens[self.range.start].is("select") {
            return fixes;
        }
        let own: Vec<&BoundRelation> = bound.relations.iter().filter(|relation| relation.own).collect();
        let alone = own.len() == 1;
        let locked: Vec<&&BoundRelation> = own.iter().filter(|relation| !relation.locks.is_empty()).collect();
        let weaker = if locked.is_empty() { None } else { self.weaker_lock().filter(|_| alone) };
        // Of a join the rows of one table may be locked already, to which those of others can be added.
        let may_add = match locked[..] {
            [] => true,
            [one] if !alone => one.locks.iter().all(|lock| lock.wait == Wait::Blocks),
            _ => weaker.is_some(),
        };
        for relation in own.iter().filter(|_| may_add || alone) {
            let Some(id) = self.catalog.relation_of(relation) else { return BTreeMap::new() };
            let is_locked = !alone && !relation.locks.is_empty();
            let of = || if alone { String::new() } else { format!(" OF {}", name_in_sql(&relation.alias)) };
            let waits = relation.locks.iter().all(|lock| lock.wait == Wait::Blocks);
            let plain = alone && waits && !bound.shape.ordered && !bound.shape.limited;
            let write = if plain { self.written_back(id) } else { None };
            let fix = Fix { lock: (may_add && !is_locked).then(of), weaker: weaker.clone(), write };
            // Of the same table twice, either may be meant.
            if fixes.insert(self.catalog.root(id), fix).is_some() {
                return BTreeMap::new();
            }
        }
        fixes
    }

    /// The only lock of a query, at its end, if there are stronger ones that readers don't mind: `FOR SHARE`
    /// or `FOR KEY SHARE`.
    fn weaker_lock(&self) -> Option<String> {
        let [at] = self.outer("for")[..] else { return None };
        let tokens = &self.text.tokens[at..self.range.end];
        let is = |words: &[&str]| tokens.iter().zip(words).all(|(token, word)| token.is(word));
        let waits = !tokens.iter().any(|token| token.is("nowait") || token.is("skip"));
        let clause = at..self.range.end;
        (waits && (is(&["for", "share"]) || is(&["for", "key", "share"]))).then(|| self.text.named(&clause))
    }

    /// The statement with a lock at the end of its only query with LIMIT, so that two transactions that
    /// each take the first of a queue take different ones (PostgreSQL manual, SELECT, "The Locking
    /// Clause"). The server may refuse it.
    pub(super) fn first_unlocked(&self) -> Option<LockWithin> {
        let (tokens, depths, start) = (&self.text.tokens, self.depths(), self.range.start);
        let mut limits =
            self.range.clone().filter(|place| tokens[*place].is("limit") || tokens[*place].is("fetch"));
        let (Some(limit), None) = (limits.next(), limits.next()) else { return None };
        // Deeper ones are parts of expressions: `substring(name for 3)`.
        let locks = |place: usize| tokens[place].is("for") && depths[place - start] <= depths[limit - start];
        if self.range.clone().any(locks) {
            return None;
        }
        let end = (limit..self.range.end).find(|place| depths[place - start] < depths[limit - start]);
        let end = end.unwrap_or(self.range.end);
        let (bytes, close) = (self.text.bytes(&self.range), self.text.bytes(&(start..end)).end);
        let [before, after] = [bytes.start..close, close..bytes.end].map(|part| self.text.in_lines(part));
        Some(LockWithin { before, after, skips_locked: true })
    }

    /// The query of one table as an UPDATE, without its locks.
    fn written_back(&self, relation: RelationId) -> Option<String> {
        let (from, condition) = (self.outer("from").first().copied(), self.outer("where").last().copied());
        let (from, condition) = (from?, condition?);
        let end = self.outer("for").first().copied().unwrap_or(self.range.end);
        let table = &self.catalog.relations[relation];
        let column = table
            .columns
            .iter()
            .enumerate()
            .find(|(place, column)| !table.key.contains(place) && !column.generated);
        let column = name_in_sql(&column?.1.name);
        let named = |range: Range<usize>| self.text.named(&range);
        Some(format!(
            "UPDATE {} SET {column} = {column} WHERE {} RETURNING {}",
            named(from + 1..condition),
            named(condition + 1..end),
            named(self.range.start + 1..from),
        ))
    }
}

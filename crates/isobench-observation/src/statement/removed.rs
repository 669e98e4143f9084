//! The rows that scripts may take away below others that refer to them: a deferrable foreign key is
//! fulfilled by what is committed, but not by what a transaction sees of its own work.

use std::collections::BTreeSet;
use std::ops::Range;

use sqlparser::tokenizer::Token;

use isobench_sql::{Catalog, RelationId};
use isobench_sql::{Placed, Text};

/// What scripts may delete, and which columns they assign, by the last parts of names.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    tables: BTreeSet<String>,
    columns: BTreeSet<(String, String)>,
    /// True if any row may be removed.
    anything: bool,
}

impl Removed {
    /// Notes what a statement may remove.
    pub(crate) fn note(&mut self, text: &Text<'_>, range: &Range<usize>, catalog: &Catalog) {
        let tokens = &text.tokens[range.clone()];
        let is = |place: usize, word: &str| tokens.get(place).is_some_and(|token| token.is(word));
        if ["call", "do", "execute"].iter().any(|word| is(0, word)) {
            self.anything = true;
        }
        if is(0, "truncate") {
            self.tables.extend(tokens.iter().filter_map(Placed::name));
        }
        for (place, token) in tokens.iter().enumerate() {
            let called = tokens.get(place + 1).is_some_and(|next| next.token.token == Token::LParen);
            if called && token.name().is_some_and(|name| catalog.function(&name).writes) {
                self.anything = true;
            }
            if token.is("delete") && is(place + 1, "from") || token.is("merge") && is(place + 1, "into") {
                self.tables.extend(named(tokens, place + 2));
            }
            // Not of `FOR UPDATE` or `DO UPDATE`.
            let updates =
                token.is("update") && (place == 0 || !is(place - 1, "for") && !is(place - 1, "key"));
            if updates {
                self.assigned(tokens, place);
            }
        }
    }

    /// Notes the columns that an UPDATE assigns, whose first token is at a place.
    fn assigned(&mut self, tokens: &[Placed], update: usize) {
        let table = named(tokens, update + 1);
        let Some(set) = (update..tokens.len()).find(|place| tokens[*place].is("set")) else { return };
        let mut depth = 0_usize;
        for (place, token) in tokens.iter().enumerate().skip(set + 1) {
            match token.token.token {
                Token::LParen if place == set + 1 || tokens[place - 1].token.token == Token::Comma => {
                    // Several columns at once.
                    self.tables.extend(table.clone());
                    depth += 1;
                }
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ if depth == 0 && ["where", "from", "returning"].iter().any(|word| token.is(word)) => break,
                _ => {}
            }
            let equals = tokens.get(place + 1).is_some_and(|next| next.token.token == Token::Eq);
            if let (true, Some(table), Some(name)) = (equals && depth == 0, &table, token.name()) {
                self.columns.insert((table.clone(), name));
            }
        }
    }

    /// True if a transaction may take rows of a table away, or change these columns of them, before the
    /// constraints that refer to them are checked.
    pub(crate) fn concerns(&self, table: RelationId, columns: &[String], catalog: &Catalog) -> bool {
        let named = |relation: RelationId| self.tables.contains(&catalog.relations[relation].name);
        let any = || 0..catalog.relations.len();
        self.anything
            || named(table)
            || columns.iter().any(|column| catalog.triggers(table).on_update.contains(column))
            || columns
                .iter()
                .any(|column| self.columns.contains(&(catalog.relations[table].name.clone(), column.clone())))
            || any().any(|relation| {
                let events = catalog.relations[relation].triggers.unknown;
                events.insert || events.update || events.delete
            })
            || any()
                .filter(|relation| named(*relation))
                .any(|relation| catalog.cascades(relation, None).contains(&table))
            || catalog.foreign_keys.iter().any(|key| {
                let own = catalog.resolve(Some(&key.table.0), &key.table.1) == Some(table);
                own && key.on_update != isobench_sql::OnChange::Nothing
                    && key.columns.iter().any(|column| columns.contains(column))
            })
    }
}

/// The last part of the name that starts at a place.
fn named(tokens: &[Placed], place: usize) -> Option<String> {
    let mut place = if tokens.get(place)?.is("only") { place + 1 } else { place };
    while tokens.get(place + 1).is_some_and(|token| token.token.token == Token::Period) {
        place += 2;
    }
    tokens.get(place)?.name()
}

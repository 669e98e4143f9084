//! The columns that a statement returns, by their own names: object-relational mappers give each column
//! that they read another one (`SELECT s.allocated AS s_allocated`).
//!
//! Not here: which table they are of, which the server says.

use isobench_script::lexer::{Kind, Token, words};

/// The name of the column behind each output of a SELECT or RETURNING; `None` for what isn't a column as it
/// is. `None` for all if there is a `*`, or the statement isn't of this kind.
pub fn columns(statement: &str) -> Option<Vec<Option<String>>> {
    let tokens = words(statement);
    let list = match tokens.first() {
        Some(first) if first.is("SELECT") => &tokens[1..],
        _ => {
            let depth = depths(&tokens);
            let returning = (0..tokens.len()).find(|at| depth[*at] == 0 && tokens[*at].is("RETURNING"))?;
            &tokens[returning + 1..]
        }
    };
    let depth = depths(list);
    let ends = |at: &usize| depth[*at] == 0 && list[*at].is_any(&["FROM", ";"]);
    let end = (0..list.len()).find(ends).unwrap_or(list.len());
    let mut items = vec![Vec::new()];
    for at in 0..end {
        if depth[at] == 0 && list[at].is(",") {
            items.push(Vec::new());
        } else if let Some(item) = items.last_mut() {
            item.push(list[at]);
        }
    }
    let whole = |item: &Vec<Token<'_>>| item.last().is_none_or(|last| last.is("*"));
    (!items.iter().any(whole)).then(|| items.iter().map(|item| column(item)).collect())
}

/// For each token, the number of parentheses around it.
fn depths(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut depth = 0_usize;
    let mut all = Vec::with_capacity(tokens.len());
    for token in tokens {
        depth = depth.saturating_sub(usize::from(token.is_any(&[")", "]"])));
        all.push(depth);
        depth += usize::from(token.is_any(&["(", "["]));
    }
    all
}

/// The column that an output is, without the name that it is given.
fn column(item: &[Token<'_>]) -> Option<String> {
    let is_name = |token: &Token<'_>| matches!(token.kind, Kind::Word | Kind::Name);
    let path = match item {
        [path @ .., before, last] if before.is("AS") && is_name(last) => path,
        [path @ .., before, last] if is_name(before) && is_name(last) => &item[..=path.len()],
        _ => item,
    };
    let dotted = path.len() % 2 == 1
        && path
            .iter()
            .enumerate()
            .all(|(at, token)| if at % 2 == 0 { is_name(token) } else { token.is(".") });
    path.last().filter(|_| dotted)?.name()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(statement: &str) -> Option<Vec<String>> {
        let names = columns(statement)?;
        Some(names.into_iter().map(|name| name.unwrap_or_else(|| "-".to_owned())).collect())
    }

    #[test]
    fn columns_have_their_own_names() {
        let own = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            named(
                "SELECT \"S\".\"allocated\" AS \"S_allocated\", s.id s_id, V FROM stock \"S\" WHERE id = ?"
            ),
            own(&["allocated", "id", "v"])
        );
        assert_eq!(named("SELECT count(*) AS n, a + 1 b, 1, x::int FROM t"), own(&["-", "-", "-", "-"]));
        assert_eq!(named("SELECT (SELECT a FROM s) AS b, c FROM t"), own(&["-", "c"]));
        assert_eq!(named("UPDATE t SET v = ? WHERE id = ? RETURNING t.id AS key"), own(&["id"]));
        assert_eq!(named("SELECT t.*, u.v AS w FROM t, u"), None);
        assert_eq!(named("DELETE FROM t"), None);
        assert_eq!(named("SELECT"), None);
    }
}

//! Splits SQL text into statements at semicolons, and skips leading blanks and comments.
//!
//! It recognises quotes, dollar quotes and comments, but not the meaning of statements.

/// Splits off the first statement; the second part starts after its semicolon and is `None` at the
/// end.
pub fn split_statement(sql: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut at = 0;
    while at < sql.len() {
        match sql[at] {
            b';' => return (&sql[..at], Some(&sql[at + 1..])),
            _ => at += token_length(&sql[at..]),
        }
    }
    (sql, None)
}

/// The rest of a statement after leading blanks and comments.
pub fn trim_start(mut sql: &[u8]) -> &[u8] {
    loop {
        match sql {
            [first, rest @ ..] if first.is_ascii_whitespace() => sql = rest,
            [b'-', b'-', ..] | [b'/', b'*', ..] => sql = &sql[token_length(sql)..],
            _ => return sql,
        }
    }
}

/// The highest `$n` in a statement, outside quotes and comments; 0 if there is none.
pub fn parameter_count(sql: &[u8]) -> u16 {
    let mut highest = 0;
    let mut at = 0;
    while at < sql.len() {
        let length = token_length(&sql[at..]);
        if sql[at] == b'$' {
            let digits = sql[at + 1..].iter().take_while(|byte| byte.is_ascii_digit());
            let number = digits.fold(0_u16, |number, digit| {
                number.saturating_mul(10).saturating_add(u16::from(digit - b'0'))
            });
            highest = highest.max(number);
        }
        at += length;
    }
    highest
}

/// The length of the quoted text or comment that `sql` starts with, otherwise 1. Unterminated ones
/// extend to the end.
fn token_length(sql: &[u8]) -> usize {
    match sql {
        [quote @ (b'\'' | b'"'), rest @ ..] => {
            rest.iter().position(|byte| byte == quote).map_or(sql.len(), |end| end + 2)
        }
        [b'-', b'-', rest @ ..] => {
            rest.iter().position(|&byte| byte == b'\n').map_or(sql.len(), |end| end + 3)
        }
        [b'/', b'*', ..] => comment_length(sql),
        [b'$', rest @ ..] => {
            let name = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
            if rest.get(name) != Some(&b'$') || rest[0].is_ascii_digit() {
                return 1;
            }
            let (mark, body) = sql.split_at(name + 2);
            body.windows(mark.len())
                .position(|part| part == mark)
                .map_or(sql.len(), |end| end + 2 * mark.len())
        }
        _ => 1,
    }
}

/// The length of a block comment, which may be nested.
fn comment_length(sql: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at + 1 < sql.len() {
        match &sql[at..at + 2] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    sql.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(sql: &str) -> Vec<&str> {
        let mut found = Vec::new();
        let mut rest = Some(sql.as_bytes());
        while let Some(text) = rest {
            let (statement, next) = split_statement(text);
            found.push(std::str::from_utf8(statement).unwrap());
            rest = next;
        }
        found
    }

    #[test]
    fn semicolons_split_only_outside_quotes_and_comments() {
        assert_eq!(statements("a;b"), ["a", "b"]);
        assert_eq!(statements("a;"), ["a", ""]);
        assert_eq!(statements("';';\";\""), ["';'", "\";\""]);
        assert_eq!(statements("'it''s;';b"), ["'it''s;'", "b"]);
        assert_eq!(statements("-- ;\na;/* /* ; */ ; */b"), ["-- ;\na", "/* /* ; */ ; */b"]);
        assert_eq!(statements("$$;$$;$x$;$$;$x$;$1;$2"), ["$$;$$", "$x$;$$;$x$", "$1", "$2"]);
        assert_eq!(statements("'open;"), ["'open;"]);
        assert_eq!(statements("/* open;"), ["/* open;"]);
        assert_eq!(statements("$x$ open;"), ["$x$ open;"]);
    }

    #[test]
    fn blanks_and_comments_in_front_do_not_count() {
        assert_eq!(trim_start(b" \n-- x\n /* y */select 1"), b"select 1");
        assert_eq!(trim_start(b"-- only"), b"");
        assert_eq!(trim_start(b"/"), b"/");
    }

    #[test]
    fn parameters_are_counted_by_the_highest_number() {
        assert_eq!(parameter_count(b"select $2, $1"), 2);
        assert_eq!(parameter_count(b"select '$7', $$ $8 $$ -- $9"), 0);
        assert_eq!(parameter_count(b"select $99999999"), u16::MAX);
        assert_eq!(parameter_count(b"$"), 0);
    }
}

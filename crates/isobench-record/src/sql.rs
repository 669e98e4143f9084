//! Comments and literals of SQL, split off and replaced.

use isobench_script::lexer::{Kind, Token, tokens};

/// The text without the comments before its first and after its last word, and these comments. A
/// semicolon may stand before or after the last comment.
pub(crate) fn split_comment(sql: &str) -> (String, Option<String>) {
    if !sql.contains("/*") && !sql.contains("--") {
        return (sql.to_owned(), None);
    }
    let all = tokens(sql);
    let (text, comment) = split_tokens(&all);
    let (text, semicolon) = text;
    let Some(comment) = comment else { return (sql.to_owned(), None) };
    let text: String = text.iter().map(|token| token.text).collect();
    (if semicolon { format!("{text};") } else { text }, Some(comment))
}

/// The tokens of a text and whether a semicolon belongs after them.
type Rest<'t, 'a> = (&'t [Token<'a>], bool);

/// Splits off the comments before the first word and after the last one; `None` if there are none.
pub(crate) fn split_tokens<'t, 'a>(tokens: &'t [Token<'a>]) -> (Rest<'t, 'a>, Option<String>) {
    let mut comments = Vec::new();
    let mut rest = tokens;
    while let [first, after @ ..] = rest
        && matches!(first.kind, Kind::Blank | Kind::Comment)
    {
        if first.kind == Kind::Comment {
            comments.push(first.text);
        }
        rest = after;
    }
    let mut trailing = Vec::new();
    let (mut end, mut semicolons) = (rest.len(), 0);
    for at in (0..rest.len()).rev() {
        match rest[at].kind {
            Kind::Blank => {}
            Kind::Comment => {
                trailing.push(rest[at].text);
                end = at;
            }
            Kind::Other if rest[at].text == ";" && semicolons == 0 => semicolons = 1,
            _ => break,
        }
    }
    let semicolon = rest[end..].iter().any(|token| token.text == ";");
    rest = &rest[..end];
    while let [before @ .., last] = rest
        && last.kind == Kind::Blank
    {
        rest = before;
    }
    comments.extend(trailing.into_iter().rev());
    let comment = (!comments.is_empty()).then(|| comments.join(" "));
    ((rest, semicolon), comment)
}

/// The text of tokens with each string literal replaced, and without comments if `drop_comments`.
pub(crate) fn with_literals(
    tokens: &[Token<'_>],
    drop_comments: bool,
    mut replace: impl FnMut(&Token<'_>) -> String,
) -> String {
    let mut out = String::new();
    for token in tokens {
        match (token.kind, token.literal()) {
            (_, Some((open, _, close))) => out.extend([open, &replace(token), close]),
            (Kind::Comment, _) if drop_comments => out.push(' '),
            _ => out.push_str(token.text),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_at_either_end_are_split_off() {
        for (sql, text, comment) in [
            ("SELECT 1", "SELECT 1", None),
            ("SELECT 1 /*traceparent='00-a-b-01'*/", "SELECT 1", Some("/*traceparent='00-a-b-01'*/")),
            ("/* a */ SELECT 1 /* b */;", "SELECT 1;", Some("/* a */ /* b */")),
            ("SELECT 1; -- c", "SELECT 1;", Some("-- c")),
            ("-- a\nSELECT 1\n", "SELECT 1", Some("-- a")),
            ("SELECT /* inside */ 1", "SELECT /* inside */ 1", None),
            ("SELECT '/* no */'", "SELECT '/* no */'", None),
            ("SELECT '-- no'", "SELECT '-- no'", None),
            ("SELECT 1 /* a /* nested */ b */", "SELECT 1", Some("/* a /* nested */ b */")),
            ("SELECT E'\\'/* no */'", "SELECT E'\\'/* no */'", None),
            ("SELECT $a$ -- no $a$", "SELECT $a$ -- no $a$", None),
            ("/* only */", "", Some("/* only */")),
            ("SELECT 1 /* open", "SELECT 1", Some("/* open")),
        ] {
            assert_eq!(split_comment(sql), (text.to_owned(), comment.map(str::to_owned)), "{sql}");
        }
    }

    #[test]
    fn literals_are_found() {
        let inner =
            |token: &Token<'_>| token.literal().map_or(String::new(), |(_, inner, _)| format!("<{inner}>"));
        let marked = |sql: &str| with_literals(&tokens(sql), false, inner);
        for (sql, expected) in [
            ("SELECT 'a''b', \"c'd\"", "SELECT '<a''b>', \"c'd\""),
            ("SELECT e'\\'x', 'y'", "SELECT e'<\\'x>', '<y>'"),
            ("SELECT '\\', 'z'", "SELECT '<\\>', '<z>'"),
            ("SELECT $$a'b$$, $1, $x$c$x$", "SELECT $$<a'b>$$, $1, $x$<c>$x$"),
            ("SELECT a$b$c", "SELECT a$b$c"),
            ("SELECT '' -- 'no'", "SELECT '<>' -- 'no'"),
            ("SELECT 'open", "SELECT '<open>"),
            ("SELECT E'a'\n'it\\'s', 'b'", "SELECT E'<a'\n'it\\'s>', '<b>'"),
        ] {
            assert_eq!(marked(sql), expected);
        }
        assert_eq!(with_literals(&tokens("SELECT /* x */ 1"), true, inner), "SELECT   1");
    }
}

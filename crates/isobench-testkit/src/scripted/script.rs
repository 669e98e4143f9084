//! Parses the text of a script; `exchange` runs it.

/// The part of a script for one connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionScript {
    /// The line at which it starts.
    pub line: usize,
    /// The start-up parameters that must be sent.
    pub parameters: Vec<(String, String)>,
    /// The parameters that the server then reports.
    pub reported: Vec<(String, String)>,
    /// True if the server sends no key for cancel requests.
    pub keyless: bool,
    /// Queries and answers, in order.
    pub exchanges: Vec<Exchange>,
}

/// A query and its answers.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// The line of the query.
    pub line: usize,
    /// The query, with blanks collapsed.
    pub query: String,
    /// The answers, in order.
    pub answers: Vec<Answer>,
}

/// An answer of the server.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Columns(Vec<String>),
    Row(Vec<Option<String>>),
    Tag(String),
    Error(Vec<(u8, String)>),
    Notice(Vec<(u8, String)>),
    Copy,
    Close,
}

/// Collapses every run of blanks and line breaks to one blank.
pub(super) fn one_blank(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Parses a script.
pub(super) fn parse(text: &str) -> Result<Vec<ConnectionScript>, String> {
    let mut connections: Vec<ConnectionScript> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        let wrong = |what: &str| format!("script line {number}: {what}: {line}");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(parameters) = line.strip_prefix("== connect") {
            let parameters = parameters
                .split_whitespace()
                .map(|pair| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("a parameter is name=value"))?;
            connections.push(ConnectionScript { line: number, parameters, ..ConnectionScript::default() });
            continue;
        }
        let connection = connections.last_mut().ok_or_else(|| wrong("\"== connect\" comes first"))?;
        if let Some(greeting) = line.strip_prefix('!') {
            match greeting.trim().split_once(' ') {
                Some(("no", "key")) => connection.keyless = true,
                Some(("parameter", pair)) => {
                    let (name, value) =
                        pair.split_once('=').ok_or_else(|| wrong("a parameter is name=value"))?;
                    connection.reported.push((name.to_owned(), value.to_owned()));
                }
                _ => return Err(wrong("unknown greeting")),
            }
            continue;
        }
        if let Some(query) = line.strip_prefix('>') {
            connection.exchanges.push(Exchange {
                line: number,
                query: one_blank(query),
                answers: Vec::new(),
            });
            continue;
        }
        let exchange = connection.exchanges.last_mut().ok_or_else(|| wrong("a query comes first"))?;
        if let Some(answer) = line.strip_prefix('<') {
            exchange.answers.push(parse_answer(answer.trim()).ok_or_else(|| wrong("unknown answer"))?);
        } else if exchange.answers.is_empty() {
            exchange.query = one_blank(&format!("{} {line}", exchange.query));
        } else {
            return Err(wrong("neither query nor answer"));
        }
    }
    Ok(connections)
}

fn parse_answer(text: &str) -> Option<Answer> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim();
    let values = || rest.split(" | ").map(str::trim);
    Some(match word {
        "columns" => Answer::Columns(values().map(str::to_owned).collect()),
        "row" => Answer::Row(values().map(|value| (value != "NULL").then(|| value.to_owned())).collect()),
        "tag" => Answer::Tag(rest.to_owned()),
        "error" => Answer::Error(fields("ERROR", rest)?),
        "notice" => Answer::Notice(fields("NOTICE", rest)?),
        "copy" => Answer::Copy,
        "close" => Answer::Close,
        _ => return None,
    })
}

/// Parses `40001 "message" detail "…" hint "…"` into the fields of an error.
fn fields(severity: &str, text: &str) -> Option<Vec<(u8, String)>> {
    let (code, mut rest) = text.split_once(' ')?;
    let mut fields = vec![(b'S', severity.to_owned()), (b'V', severity.to_owned()), (b'C', code.to_owned())];
    let mut field = b'M';
    loop {
        let (value, after) = quoted(rest.trim_start())?;
        fields.push((field, value));
        rest = after.trim_start();
        let Some((word, after)) = rest.split_once(' ') else { break };
        field = match word {
            "detail" => b'D',
            "hint" => b'H',
            _ => return None,
        };
        rest = after;
    }
    rest.is_empty().then_some(fields)
}

/// The quoted text at the start (with `\"` for a quote and `\n` for a line break), and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut characters = inner.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &inner[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_code_message_detail_and_hint() {
        let field = |key, value: &str| (key, value.to_owned());
        assert_eq!(
            parse_answer(r#"error 40001 "a \"b\"" detail "c" hint "d\ne""#),
            Some(Answer::Error(vec![
                field(b'S', "ERROR"),
                field(b'V', "ERROR"),
                field(b'C', "40001"),
                field(b'M', "a \"b\""),
                field(b'D', "c"),
                field(b'H', "d\ne"),
            ]))
        );
        assert_eq!(parse_answer("error 40001 message"), None);
        assert_eq!(parse_answer(r#"error 40001 "a" etc "b""#), None);
    }

    #[test]
    fn mistakes_name_their_line() {
        assert!(parse("> a").unwrap_err().contains("line 1"));
        assert!(parse("== connect\n< tag X").unwrap_err().contains("line 2"));
        assert!(parse("== connect\n> a\n< what").unwrap_err().contains("unknown answer: < what"));
        assert!(parse("== connect x").is_err());
        assert!(parse("== connect\n! hello").unwrap_err().contains("unknown greeting: ! hello"));
    }
}

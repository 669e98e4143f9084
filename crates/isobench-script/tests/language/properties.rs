//! Properties: the parser accepts any text without panicking, its positions are valid, and printed
//! expressions parse back.

use isobench_script::{CommandKind, Dialect, ParseError, Script, Symbols, parse, parse_as};
use proptest::prelude::*;

use crate::support::execute::{Client, execute};
use crate::support::{blocks, expressions};

/// Parses the text and checks the properties that every text has.
fn checked(text: &str) -> Result<Script, ParseError> {
    let mut symbols = Symbols::new();
    let result = parse("x.sql", text, &mut symbols);
    match &result {
        Ok(script) => {
            assert!(!script.commands.is_empty());
            for (index, command) in script.commands.iter().enumerate() {
                assert!((command.line as usize) <= text.matches('\n').count() + 1);
                if let CommandKind::If(arm) | CommandKind::Elif(arm) | CommandKind::Else(arm) = &command.kind
                {
                    assert!(index < arm.next && arm.next <= arm.end && arm.end < script.commands.len());
                    assert!(matches!(script.commands[arm.end].kind, CommandKind::Endif));
                }
            }
        }
        Err(error) => {
            assert!(error.line >= 1 && error.line as usize <= text.matches('\n').count() + 1);
            if let Some(column) = error.column {
                // Line breaks that the message doesn't show count too, and so does one more at the
                // script's end.
                let ends = |at: usize| text[at..].bytes().take_while(|byte| b"\r\n".contains(byte)).count();
                let shown = text.match_indices(&error.source).map(|(at, shown)| at + shown.len());
                let hidden = shown.map(ends).max().expect("the script has the text that is shown");
                assert!(column as usize <= error.source.len() + hidden + 2, "{error:?}");
            }
            assert!(!error.to_string().is_empty());
        }
    }
    result
}

/// Texts made of the language's tokens.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "\\set x ",
        "\\if ",
        "\\elif 1",
        "\\else",
        "\\endif",
        "\\sleep ",
        "\\gset",
        "\\aset p",
        "\\shell ",
        "\\",
        "\\;",
        "\\:",
        "select",
        "begin",
        "end",
        "create",
        "function",
        "E'",
        "'",
        "\"",
        "$$",
        "$a$",
        "/*",
        "*/",
        "--",
        "\n--@ read t key=:x value=$1\n",
        "(",
        ")",
        ";",
        ":",
        ":x",
        "::",
        ":{?x}",
        "\n",
        "\r\n",
        " ",
        "\t",
        "1",
        "1.5",
        "1e",
        "é",
        "\u{2028}",
        "\0",
        "+",
        "-",
        "~",
        "not ",
        "case when ",
        "null",
        "random(",
        ",",
        "is ",
        "<",
        "=",
        "@",
        "5 ms",
        "\\\n",
        "\\\r\n",
        "9223372036854775808",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_parses_or_fails_well(text in any::<String>()) {
        let _ = checked(&text);
    }

    #[test]
    fn any_pieces_parse_or_fail_well(text in pieces()) {
        let _ = checked(&text);
    }

    /// Lines `--@` are comments to pgbench, so a script must send the same with and without them.
    #[test]
    fn observations_change_nothing_else(text in pieces()) {
        let strict = Dialect { annotations: false, ..Dialect::default() };
        let (mut symbols, mut others) = (Symbols::new(), Symbols::new());
        if let Ok(script) = parse("x.sql", &text, &mut symbols) {
            let plain = parse_as(strict, "x.sql", &text, &mut others).expect("a script without more errors");
            prop_assert!(plain.annotations().next().is_none());
            let sent = |script: &Script, symbols: &Symbols| -> Vec<_> {
                let commands = script.commands.iter();
                commands.map(|command| (command.line, command.text.clone(), match &command.kind {
                    CommandKind::Sql(sql) => {
                        let params: Vec<_> =
                            sql.params.iter().map(|slot| symbols.name(*slot).to_owned()).collect();
                        (sql.parameterized.clone(), params, sql.statements.clone())
                    }
                    other => (other.name().to_owned(), Vec::new(), Vec::new()),
                })).collect()
            };
            prop_assert_eq!(sent(&script, &symbols), sent(&plain, &others));
        }
    }

    #[test]
    fn mutations_parse_or_fail_well(
        choice in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        cut in 0_usize..8,
        insert in pieces(),
    ) {
        let mut blocks = blocks::read("parse.txt");
        blocks.append(&mut blocks::read("errors.txt"));
        let script = &blocks[choice.index(blocks.len())].script;
        let characters: Vec<char> = script.chars().collect();
        let at = at.index(characters.len() + 1);
        let head: String = characters[..at].iter().collect();
        let tail: String = characters.iter().skip(at + cut).collect();
        let _ = checked(&format!("{head}{insert}{tail}"));
        let _ = checked(&format!("{head}{tail}"));
    }

    #[test]
    fn printing_and_parsing_agree(text in expressions::expression()) {
        let line = format!("{}\\set v debug({text})\n", expressions::SETUP);
        let mut symbols = Symbols::new();
        let script = parse("x.sql", &line, &mut symbols).expect("the generator writes what parses");
        let Some(CommandKind::Set { expr, .. }) = script.commands.last().map(|command| &command.kind) else {
            panic!("the last command is a \\set");
        };
        let shown = expr.display(&symbols).to_string();
        let again = parse("x.sql", &format!("{}\\set v {shown}\n", expressions::SETUP), &mut symbols);
        let again = again.unwrap_or_else(|error| panic!("{error}"));
        let mut client = Client::new(0, 1, &mut symbols);
        let mut twin = Client::new(0, 1, &mut symbols);
        let first = execute(&script, &symbols, &mut client);
        let second = execute(&again, &symbols, &mut twin);
        prop_assert_eq!((first.debug, first.error), (second.debug, second.error));
        prop_assert_eq!(client.rng, twin.rng);
    }
}

#[test]
fn deep_and_long_expressions_are_refused_not_fatal() {
    let deep = |open: &str, middle: &str, close: &str, count: usize| {
        format!("\\set x {}{middle}{}\n", open.repeat(count), close.repeat(count))
    };
    for text in [
        deep("(", "1", ")", 100_000),
        deep("- ", "1", "", 100_000),
        deep("not ", "1", "", 100_000),
        deep("case when ", "1", " then 1 end", 100_000),
        deep("abs(", "1", ")", 100_000),
        deep("", "1", " + 1", 100_000),
        deep("", "1", " is null", 100_000),
    ] {
        let error = checked(&text).expect_err("too deep").to_string();
        assert!(error.contains("expression is nested too deeply"), "{}", &error[..100]);
    }
    // Within the bounds, both must succeed on the small stack of a test thread.
    for text in [deep("(", "1", ")", 190), deep("", "1", " + 1", 990), deep("abs(", "1", ")", 190)] {
        let mut symbols = Symbols::new();
        let script = parse("x.sql", &text, &mut symbols).expect("within bounds");
        let mut client = Client::new(0, 1, &mut symbols);
        assert!(execute(&script, &symbols, &mut client).error.is_none());
    }
}

#[test]
fn snapshots_of_numbers_reuse_their_room() {
    let mut symbols = Symbols::new();
    let script = parse("x.sql", "\\set a 1\n\\set b 2.5\n\\set c null\n", &mut symbols).expect("valid");
    let mut client = Client::new(0, 1, &mut symbols);
    execute(&script, &symbols, &mut client);
    let mut snapshot = client.variables.clone();
    client.variables.set(symbols.intern("a"), isobench_script::Value::Int(7));
    snapshot.clone_from(&client.variables);
    for name in ["a", "b", "c", "scale"] {
        let slot = symbols.lookup(name).expect("interned");
        assert_eq!(snapshot.get(slot), client.variables.get(slot));
    }
}

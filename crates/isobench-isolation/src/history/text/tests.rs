//! Printed histories are parsed back, and errors name the expected element and the position.

use proptest::prelude::*;

use super::super::samples;
use super::{parse, print};

proptest! {
    // Generating whole histories takes a long time, especially in a debug build.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_printed_is_read(history in samples::histories()) {
        let text = print(&history);
        let read = parse(&text).expect(&text);
        // Unused tables aren't mentioned, and tables are numbered in the order of mention.
        prop_assert_eq!(print(&read), text);
        prop_assert_eq!(read.transactions(), history.transactions());
        prop_assert_eq!(read.dropped(), history.dropped());
        prop_assert_eq!(read.operation_count(), history.operation_count());
    }

    #[test]
    fn no_text_makes_it_panic(text in "[T0-9rwialg=\\[\\]v/,:. \\n\"\\\\u{}#-]{0,60}|(?s).{0,40}") {
        let _ = parse(&text);
    }

    /// Modified texts get further into the parser than random ones.
    #[test]
    fn a_changed_text_makes_no_panic(
        history in samples::histories(),
        at in any::<prop::sample::Index>(),
        with in any::<char>(),
    ) {
        let mut letters: Vec<char> = print(&history).chars().collect();
        if !letters.is_empty() {
            let at = at.index(letters.len());
            letters[at] = with;
        }
        let _ = parse(&letters.into_iter().collect::<String>());
    }
}

const EXAMPLE: &str = r#"# comment
T1 client=0 10..20 committed: r registers 5 = v3/17, w registers 5 = v4/1, i mytab 9 in 3, g mytab 3 = [9]
T4: a lists 1 += 7, l lists 1 = [7 8]

   T2 unknown 7..  client=4:w registers 5=v4,r registers -6=init,r "a \"b\"\u{e4}\n\\"=-9 # also a comment
dropped 3
T3:
"#;

#[test]
fn the_grammar() {
    let printed = print(&parse(EXAMPLE).expect("parses"));
    assert_eq!(
        printed,
        r#"dropped 3
T1 client=0 10..20: r registers 5 = v3/17, w registers 5 = v4/1, i mytab 9 in 3, g mytab 3 = [9]
T4 client=5 0..: a lists 1 += 7, l lists 1 = [7 8]
T2 client=4 7.. unknown: w registers 5 = v4, r registers -6 = init, r "a \"b\"ä\n\\" = -9
T3 client=6 0..:
"#
    );
}

#[test]
fn without_instants_there_are_none() {
    let history = parse("T5: w x = 1\nT6: w y 0 = 2\nT7 client=1:").expect("parses");
    let shown: Vec<_> = history.transactions().iter().map(|t| (t.id, t.client, t.begin, t.end)).collect();
    assert_eq!(shown, [(5, 2, 0, 0), (6, 3, 0, 0), (7, 1, 0, 0)]);
    assert_eq!(print(&history), "T5 client=2: w x = 1\nT6 client=3: w y = 2\nT7 client=1:\n");
}

#[test]
fn initial_values_are_stated() {
    let text = "initial x = 100\ninitial y 1 = v3/7\ninitial y 2 = [1 2]\nT1 client=0: r x = 100\n";
    let history = parse("T1: r x = 100\ninitial y 1 = v3/7, y 2 = [1, 2], x = 100 # before").expect("parses");
    let names = ["x", "y"];
    assert_eq!(history.tables(), names);
    assert_eq!(print(&history), text);
    assert_eq!(print(&parse(text).expect("parses")), text);
}

/// A linear search among this many names would take minutes.
#[test]
fn many_tables_are_found_by_name() {
    let lines: Vec<String> = (0..65_537).map(|number| format!("T{number}: w t{number} = 1")).collect();
    let text = lines.join("\n");
    let error = parse(&text).expect_err("one too many").to_string();
    assert!(
        error.starts_with("line 65537, ") && error.ends_with("there are more than 65,536 tables"),
        "{error}"
    );
    let (most, _) = text.rsplit_once('\n').expect("lines");
    assert_eq!(parse(most).expect("parses").tables().len(), 65_536);
}

#[test]
fn errors_name_the_place_and_what_was_expected() {
    for (text, message) in [
        (
            "hello",
            "line 1, column 1: expected a transaction (T1: …), \"initial ROW = …\", \"dropped N\", \"observed …\" \
             or a comment, found \"hello\"",
        ),
        ("\n\nT", "line 3, column 2: expected the transaction's number, found the end of the line"),
        (
            "T1",
            "line 1, column 3: expected one of client=N, BEGIN..END, committed, aborted, unknown, \
             ru, rc, rr, ser, \":\", found the end of the line",
        ),
        (
            "T1 1..2 aborted lost:",
            "line 1, column 17: expected one of client=N, ru, rc, rr, ser, \":\", found \"lost:\"",
        ),
        (
            "T1 ser rr:",
            "line 1, column 8: expected one of client=N, BEGIN..END, committed, aborted, unknown, \
         \":\", found \"rr:\"",
        ),
        ("T1 readonly:", "line 1, column 13: readonly and deferrable need a level: ru, rc, rr or ser"),
        ("T1 3:", "line 1, column 5: expected \"..\", found \":\""),
        ("T-1:", "line 1, column 2: -1 is out of range for the transaction's number"),
        ("T1: x y = 1", "line 1, column 5: expected an operation (r, w, i, a, l, g or m), found \"x\""),
        ("T1: r 5 = 1", "line 1, column 7: expected a table, found \"5\""),
        ("T1: r x 5 1", "line 1, column 11: expected \"=\", found \"1\""),
        (
            "T1: r x 5 = version",
            "line 1, column 13: expected a version (v3/17, v3, 17 or init), found \"version\"",
        ),
        ("T1: r x = 1 2", "line 1, column 13: expected \",\" or the end of the line, found \"2\""),
        (
            "T1: r x = 1,",
            "line 1, column 13: expected an operation (r, w, i, a, l, g or m), found the end of the line",
        ),
        (
            "T1: w x = 9223372036854775808",
            "line 1, column 11: 9223372036854775808 is out of range for a value",
        ),
        ("T1: l x = [1 y]", "line 1, column 14: expected a number or \"]\", found \"y]\""),
        ("T1: l \"ä = [1 y]", "line 1, column 17: expected the closing quote, found the end of the line"),
        ("T1: l \"\\x\"", "line 1, column 9: expected one of \", \\, n or u{HEX} after \\, found \"x\"\""),
        ("T1: a x = 3", "line 1, column 9: expected \"+=\", found \"=\""),
        ("dropped some", "line 1, column 9: expected a number of transactions, found \"some\""),
        ("T1: # fine\ndropped 1 2", "line 2, column 11: expected the end of the line, found \"2\""),
        ("T1 client=4294967295:\nT2:", "there are too many clients"),
        ("T1 10..5:", "line 1, column 9: T1 ends at 5, before it starts at 10"),
        ("T1:\n\nT1: w x = 1", "line 3, column 3: T1 is already defined in line 1"),
        ("initial x = 1, x 0 = 2", "line 1, column 23: the row's initial value was already stated"),
        ("initial x", "line 1, column 10: expected \"=\", found the end of the line"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(message), "{text:?}\n{error}\n{message}");
    }
    assert!(
        super::read(&b"T1:\n\xff\n"[..])
            .expect_err("no text")
            .to_string()
            .contains("line 2: this isn't UTF-8")
    );
}

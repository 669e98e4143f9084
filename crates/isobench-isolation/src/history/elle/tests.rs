//! Histories in the formats of Jepsen and elle-cli, and invalid ones.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::super::{History, TransactionOutcome, samples, text};
use super::{Notation, read, write};

fn edn(text: &str) -> History {
    read(Notation::Edn, text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn json(text: &str) -> History {
    read(Notation::Json, text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn written(notation: Notation, history: &History) -> String {
    let mut bytes = Vec::new();
    write(notation, history, &mut bytes).expect("can be written");
    String::from_utf8(bytes).expect("text")
}

const LISTS: &str = "\
{:index 0 :process 1 :type :invoke  :value [[:append 253 1] [:append 256 2]]}
{:index 1 :process 1 :type :ok      :value [[:append 253 1] [:append 256 2]]}
{:index 2 :process 2 :type :invoke, :value [[:append 255 8] [:r 253 nil] [:r 250 nil]]}
{:index 3 :process 1 :type :invoke, :value [[:append 256 4] [:r 255 nil]]}
{:index 4 :process 2 :type :ok,     :value [[:append 255 8] [:r 253 [1 3 4]] [:r 250 nil]]}
{:index 5 :process 1 :type :info,   :value [[:append 256 4] [:r 255 nil]]}
{:index 6 :process 1 :type :invoke, :value [[:append 256 5]]}
{:index 7 :process 1 :type :fail,   :error :conflict}
{:index 8 :process 3 :type :invoke, :value [[:append 256 6]]}
";

const LISTS_AS_TEXT: &str = "\
T1 client=1 0..1: a lists 253 += 1, a lists 256 += 2
T4 client=2 2..4: a lists 255 += 8, l lists 253 = [1 3 4], l lists 250 = []
T5 client=1 3.. unknown: a lists 256 += 4
T7 client=1 6..7 aborted: a lists 256 += 5
T8 client=3 8.. unknown: a lists 256 += 6
";

#[test]
fn lists_in_edn() {
    assert_eq!(text::print(&edn(LISTS)), LISTS_AS_TEXT);
    assert_eq!(text::print(&edn(&format!("[{LISTS}]"))), LISTS_AS_TEXT);
    assert_eq!(text::print(&edn(&LISTS.replace("{:index", "{:time -1 :index"))), LISTS_AS_TEXT);
    let decorated =
        LISTS.replace(":process 3", ":process #_ [3 #{4}] 3 ; comment }\n, :error \"}\" {[1] 2} (a \\} nil)");
    assert_eq!(text::print(&edn(&format!("; {{\n( #_{{}} #jepsen.history.Op{decorated} )"))), LISTS_AS_TEXT);
}

const REGISTERS: &str = r#"
[{"type":"invoke","f":"txn","value":[["w","x",2],["w","y",-1]],"process":0,"time":5,"index":1},
{"type":"info","f":"start","process":"nemesis","value":["a", {"b": 1.5}],"time":6,"index":9},
{"type":"ok","f":"txn","value":[["w","x",2],["w","y",-1]],"process":0,"time":10,"index":2},
{"type":"invoke","f":"txn","value":[["r","x",null]],"process":0,"time":15,"index":3},
{"type":"ok","f":"txn","value":[["r","x",3],["r","y",null],["r",7,null]],"process":0,"time":20,"index":4}]
"#;

const REGISTERS_AS_TEXT: &str = "\
T2 client=0 5..10: w x = 2, w y = -1
T4 client=0 15..20: r x = 3, r y = init, r registers 7 = init
";

#[test]
fn registers_in_json() {
    assert_eq!(text::print(&json(REGISTERS)), REGISTERS_AS_TEXT);
    let lines = REGISTERS.trim_matches(['[', ']', '\n']).replace("},\n", "}\n");
    assert_eq!(text::print(&json(&lines)), REGISTERS_AS_TEXT);
    let spread = REGISTERS.replace(',', " ,\n ").replace(":1.5", ":\"}{\\\"\\\\\"");
    assert_eq!(text::print(&json(&spread)), REGISTERS_AS_TEXT);
}

/// Elle's manual starts with such a history.
#[test]
fn completions_alone_have_no_instants_and_a_client_each() {
    let history = edn(
        "[{:type :ok, :value [[:append :x 1] [:r :y [1]]]} {:type :fail, :value [[:append :x 2] [:r :y nil]]}]",
    );
    assert_eq!(text::print(&history), "T0 client=0: a x += 1, l y = [1]\nT1 client=1 aborted: a x += 2\n");
    let history = json(
        "{\"type\":\"ok\",\"process\":7,\"value\":[[\"r\",\"x\",null]]}\n{\"type\":\"info\",\"value\":[]}",
    );
    assert_eq!(text::print(&history), "T0 client=7: r x = init\nT1 client=8 unknown:\n");
}

/// As in the examples of Elle's paper, a completion belongs to the only open transaction.
#[test]
fn invocations_without_processes_are_completed_one_by_one() {
    let history = edn("{:type :invoke, :value [[:append 1 1]]} {:type :ok, :value [[:append 1 1]]}
        {:type :invoke, :value [[:append 1 2]]} {:type :info, :value [[:append 1 2]]}
        {:type :invoke, :process 3, :value [[:r 1 nil]]} {:type :invoke, :value [[:append 1 3]]}
        {:type :ok, :process 3, :value [[:r 1 [1]]]}");
    assert_eq!(
        text::print(&history),
        "T1 client=4 0..1: a lists 1 += 1
T3 client=5 2.. unknown: a lists 1 += 2
T6 client=3 4..6: l lists 1 = [1]
T5 client=6 5.. unknown: a lists 1 += 3
"
    );
}

#[test]
fn the_level_of_a_transaction_can_be_stated() {
    let history =
        edn("{:type :invoke, :process 0, :level :repeatable-read, :read-only true, :value [[:r 1 nil]]}
        {:type :ok, :process 0, :value [[:r 1 [3]]]}");
    assert_eq!(text::print(&history), "T1 client=0 0..1 rr readonly: l lists 1 = [3]\n");
    refused(&[
        (Notation::Json, "{\"type\":\"ok\",\"read-only\":true,\"value\":[]}", "need a \"level\""),
        (Notation::Edn, "{:type :ok, :level :snapshot, :value []}", "unknown isolation level"),
    ]);
}

#[test]
fn initial_values_are_stated() {
    let stated = edn("[{:type :initial, :value [[:r :x 100] [:r :y 7]]} {:type :ok, :value [[:r :x 100]]}]");
    let text = "initial x = 100\ninitial y = 7\nT0 client=0: r x = 100\n";
    assert_eq!(text::print(&stated), text);
    let lists = json(
        "{\"type\":\"initial\",\"value\":[[\"r\",\"x\",[1,2]]]}\n{\"type\":\"ok\",\"value\":[[\"r\",\"x\",[1,2]]]}",
    );
    assert_eq!(text::print(&lists), "initial x = [1 2]\nT0 client=0: l x = [1 2]\n");
    for history in [stated, lists] {
        for notation in [Notation::Edn, Notation::Json] {
            let again = read(notation, written(notation, &history).as_bytes()).expect("reads");
            assert_eq!(text::print(&again), text::print(&history));
        }
    }
}

/// Each text is refused with a message that contains this text.
fn refused(cases: &[(Notation, &str, &str)]) {
    for (notation, text, message) in cases {
        let error = read(*notation, text.as_bytes()).expect_err(text).to_string();
        assert!(error.contains(message), "{text}\n{error}\n{message}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    refused(&[
        (Notation::Edn, "\n{:type :ok, :value [[:cas 1 2]]}", "line 2: unknown variant `cas`"),
        (
            Notation::Edn,
            "{:type :ok, :value [[:w 1 :a]]}",
            "line 1: invalid type: string \"a\", expected an integer",
        ),
        (Notation::Edn, "{:type :ok, :value [[:w 1.5 2]]}", "expected a key"),
        (Notation::Edn, "{:type :ok, :value [[:w 1 nil]]}", "a written value isn't an integer"),
        (Notation::Edn, "{:type :ok, :value {:from 1}}", "expected a transaction"),
        (
            Notation::Edn,
            "{:type :ok, :process 1, :f :transfer, :value 1}",
            "this is an operation \"transfer\"",
        ),
        (
            Notation::Edn,
            "{:type :ok, :process 1, :value [[:w 1 1]]",
            "truncated: it ends in the middle of a value",
        ),
        (Notation::Edn, "[{:type :ok, :value []}", "truncated"),
        (Notation::Edn, "{:type :ok :value [[:w 1 1]}", "\"}\" is unmatched"),
        (Notation::Edn, "{:type :ok :value}", "or a value is missing"),
        (Notation::Edn, "hello", "expected an operation"),
        (Notation::Edn, "{:type :okay}", "unknown variant `okay`"),
        (
            Notation::Json,
            "{\"type\":\"ok\",\"value\":[]}\n{\"type\":",
            "truncated: it ends in the middle of the operation that starts in line 2",
        ),
        (Notation::Json, "hello", "line 1: expected an operation, {\"type\": …}, found \"h\""),
        (Notation::Json, "{\"type\":\"ok\"}", "a committed transaction has no value"),
        (
            Notation::Json,
            "{\"type\":\"invoke\",\"process\":1}{\"type\":\"invoke\",\"process\":1}",
            "before the preceding one",
        ),
        (Notation::Json, "{\"type\":\"ok\",\"value\":[[\"w\",1,1],[\"append\",1,1]]}", "both lists"),
        (
            Notation::Json,
            "{\"type\":\"ok\",\"process\":-1,\"value\":[[\"w\",1,1]]}",
            "-1 isn't a process number",
        ),
    ]);
    let deep = "#_".repeat(100_000);
    assert!(read(Notation::Edn, deep.as_bytes()).expect_err("deep").to_string().contains("nested"));
    let deep = format!("{{:a {}", "[".repeat(100_000));
    assert!(read(Notation::Edn, deep.as_bytes()).expect_err("deep").to_string().contains("nested"));
}

/// Files that are truncated, repeat themselves, or go backwards.
#[test]
fn what_is_no_whole_history_is_refused() {
    refused(&[
        (
            Notation::Json,
            "{\"type\":\"invoke\"}{\"type\":\"invoke\"}",
            "a transaction without process is invoked before",
        ),
        (
            Notation::Json,
            "[{\"type\":\"fail\"}\n",
            "truncated: it ends in line 2, and the array isn't closed",
        ),
        (Notation::Json, "[{\"type\":\"fail\"},\n\n", "truncated: it ends in line 3"),
        (Notation::Json, "[", "truncated: it ends in line 1"),
        (
            Notation::Json,
            "[{\"type\":\"fail\"}]\n]",
            "line 2: expected the end of the file after \"]\", found \"]\"",
        ),
        (
            Notation::Json,
            "[{\"type\":\"fail\"}]\n{\"type\":\"fail\"}",
            "line 2: expected the end of the file",
        ),
        (Notation::Json, "[]\n[]", "line 2: expected the end of the file"),
        (Notation::Json, "[{\"type\":\"fail\"},]", "line 1: expected an operation"),
        (
            Notation::Json,
            "[{\"type\":\"fail\"} {\"type\":\"fail\"}]",
            "line 1: expected \",\" or \"]\", found \"{\"",
        ),
        (Notation::Json, "{\"type\":\"fail\"}\n[{\"type\":\"fail\"}]", "line 2: expected an operation"),
        (Notation::Edn, "[{:type :fail}]\n]", "line 2: expected the end of the file"),
        (Notation::Edn, "[{:type :fail}]\n{:type :fail}", "line 2: expected the end of the file"),
        (Notation::Edn, "{:type :fail}\n[{:type :fail}]", "line 2: expected an operation"),
        (
            Notation::Edn,
            "{:type :invoke, :process 1}\n{:type :ok, :process 1, :value []}\n{:type :ok, :process 1, :value []}",
            "line 3: a transaction of process 1 is completed without having been invoked",
        ),
        (
            Notation::Edn,
            "{:type :ok, :process 1, :value []}\n{:type :invoke, :process 1}",
            "line 2: a transaction of process 1 is invoked after transactions that were completed \
             without being invoked",
        ),
        (
            Notation::Edn,
            "{:type :invoke, :process 1, :time 7}\n{:type :fail, :process 1, :time 5}",
            "line 2: a transaction of process 1 ends at 5, before it starts at 7",
        ),
        (
            Notation::Edn,
            "{:type :fail, :index 7}\n{:type :fail, :index 7}",
            "line 2: another operation already has the index 7",
        ),
        (Notation::Edn, "{:type :initial, :value [[:r 1 nil]]}", "are stated by [\"r\", key, value]"),
        (Notation::Edn, "{:type :initial, :value [[:r 1 2] [:r 1 2]]}", "was already stated"),
        (Notation::Edn, "{:type :initial, :value [[:r 1 2] [:append 1 2]]}", "both lists"),
    ]);
}

#[test]
fn many_names_become_rows_of_one_table() {
    let mut text = String::new();
    for name in 0..60_010 {
        writeln!(text, "{{\"type\":\"ok\",\"value\":[[\"w\",\"k{name}\",1]]}}").expect("writes");
    }
    let history = json(&text);
    assert_eq!(history.tables().len(), 60_002);
    let printed = text::print(&history);
    assert!(
        printed.ends_with("client=60009: w \"other keys\" 10 = 1\n"),
        "{}",
        &printed[printed.len() - 100..]
    );
}

/// Transaction numbers aren't written, but in these texts they equal those of the completions.
#[test]
fn what_is_written_is_read() {
    for (text_form, notation) in [
        (LISTS_AS_TEXT, Notation::Edn),
        (REGISTERS_AS_TEXT, Notation::Json),
        ("T3 client=0 5..10: w x = 2, w \"a b\" = -1\nT5 client=0 10..20: r x = 3\n", Notation::Edn),
        ("T0 client=1: w accounts 5 = 2\nT1 client=0 aborted: w accounts 6 = 2\n", Notation::Json),
    ] {
        let history = text::parse(text_form).expect("parses");
        let again = read(notation, written(notation, &history).as_bytes()).expect("reads");
        let same = |history: &History| -> Vec<_> {
            let mut list: Vec<_> = history
                .transactions()
                .iter()
                .enumerate()
                .map(|(index, t)| (t.begin, t.end, t.outcome, history.operations(index).count()))
                .collect();
            list.sort_by_key(|(begin, ..)| *begin);
            list.iter().map(|entry| format!("{entry:?}")).collect()
        };
        let expected = text::parse(text_form).expect("parses");
        // The reads of transactions that didn't commit are lost.
        assert_eq!(same(&again), same(&expected), "{text_form}");
    }
}

#[test]
fn registers_with_counters_are_written_by_value_or_by_counter() {
    let history =
        text::parse("T1: r t 5 = v0, w t 5 = v1/7\nT2: r t 5 = v1/7, r t 6 = v3/2").expect("parses");
    assert_eq!(
        written(Notation::Json, &history),
        "{\"index\":0,\"type\":\"ok\",\"process\":0,\"f\":\"txn\",\"value\":[[\"r\",5,null],[\"w\",5,7]]}\n\
         {\"index\":1,\"type\":\"ok\",\"process\":1,\"f\":\"txn\",\"value\":[[\"r\",5,7],[\"r\",6,null]]}\n"
    );
    let history =
        text::parse("T1 5..6: r t 5 = v3, w t 5 = v4\nT2 client=3 6..9 unknown: w t 5 = v5, r u = init")
            .expect("parses");
    assert_eq!(
        written(Notation::Edn, &history),
        "{:index 0, :type :invoke, :process 4, :time 5, :f :txn, :value [[:r \"t 5\" nil] [:w \"t 5\" 4]]}\n\
         {:index 1, :type :invoke, :process 3, :time 6, :f :txn, :value [[:w \"t 5\" 5] [:r :u nil]]}\n\
         {:index 2, :type :ok, :process 4, :time 6, :f :txn, :value [[:r \"t 5\" nil] [:w \"t 5\" 4]]}\n\
         {:index 3, :type :info, :process 3, :time 9, :f :txn, :value [[:w \"t 5\" 5] [:r :u nil]]}\n"
    );
}

/// A client's next transaction starts exactly when the preceding one ended, or the end of that
/// isn't known.
#[test]
fn processes_alternate_between_invocation_and_completion() {
    let history = text::parse(
        "T1 client=0 5..6: w x = 1\nT2 client=0 6..6: w x = 2\nT3 client=0 \
                               6.. unknown: w x = 3\nT4 client=0 8..9: w x = 4",
    )
    .expect("parses");
    let again = edn(&written(Notation::Edn, &history));
    let shown: Vec<_> = again.transactions().iter().map(|t| (t.client, t.begin, t.end, t.outcome)).collect();
    assert_eq!(
        shown,
        [
            (0, 5, 6, TransactionOutcome::Committed),
            (0, 6, 6, TransactionOutcome::Committed),
            (1, 8, 9, TransactionOutcome::Committed),
            (0, 6, u64::MAX, TransactionOutcome::Unknown)
        ]
    );
}

#[test]
fn what_elle_cannot_say_is_an_error() {
    for (text, message) in [
        ("T7: i t 5 in 3", "what T7 did: rows of groups"),
        ("T1: g t 5 = []", "rows of groups"),
        ("T1: w x = 1, a y += 1", "both lists and registers"),
        ("T1: w x = v5\nT2: w x = v5", "ambiguous counter"),
        ("T1: w x = v5\nT2: w x = 7", "ambiguous counter"),
        ("T1: w x = 5\nT2: r x = v7", "unknown value"),
    ] {
        let history = text::parse(text).expect("parses");
        let error = write(Notation::Edn, &history, Vec::new()).expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

proptest! {
    // Generating whole histories takes a long time, especially in a debug build.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]{}(): a-z0-9\"#_\\\\;,\n-]{0,60}|(?s).{0,40}") {
        let _ = read(Notation::Edn, text.as_bytes());
        let _ = read(Notation::Json, text.as_bytes());
    }

    #[test]
    fn a_changed_text_makes_no_panic(at in any::<prop::sample::Index>(), with in any::<u8>()) {
        for (notation, text) in [(Notation::Edn, LISTS), (Notation::Json, REGISTERS)] {
            let mut bytes = text.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] = with;
            let _ = read(notation, &bytes[..]);
        }
    }

    #[test]
    fn no_history_makes_writing_panic(history in samples::histories()) {
        let _ = write(Notation::Edn, &history, Vec::new());
        let _ = write(Notation::Json, &history, Vec::new());
    }
}

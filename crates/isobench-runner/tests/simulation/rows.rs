//! Rows that statements show in columns after the author's: what is recorded of them, and what the
//! script sees.
//!
//! The statements are written here as they would be sent, and the server's answers are fixed. Not
//! here: which columns are appended (`isobench-observation`), and the order of versions in general
//! (`isobench-isolation`).

use isobench_isolation::History;
use isobench_isolation::history::{TransactionOutcome, text};
use isobench_isolation::observed::{
    Comparison, KeyForm, ObservedColumn, ObservedDescription, ObservedTable, Place, Predicate, ValueForm,
};
use isobench_pgwire::SqlState;
use isobench_runner::{AbortCause, Protocol};
use isobench_script::{
    ObservedRows, ObservedSearch, ObservedStatement, Referred, RowLimit, RowRole, SearchOperand, SearchValue,
    SearchWhen, Symbols,
};
use isobench_testkit::simulated::{Answer, Fault, Faults, Loss, On, When};

use crate::harness::{Case, RunResult, at};

const PROTOCOLS: [Protocol; 3] = [Protocol::Simple, Protocol::Extended, Protocol::Prepared];

/// Tables `t` and `u` with these keys; the columns of searches are integers.
fn tables(key: KeyForm) -> ObservedDescription {
    let columns = vec![ObservedColumn { name: "c".to_owned(), form: ValueForm::Integer }];
    let table =
        |name: &str| ObservedTable { name: name.to_owned(), key, columns: columns.clone(), closed: true };
    ObservedDescription { tables: vec![table("t"), table("u")], horizon: 700, ..Default::default() }
}

/// A statement that shows one row of table `t` per row of its result: key, `xmin`, `c`.
fn shows(role: RowRole) -> ObservedStatement {
    let rows = ObservedRows {
        table: 0,
        role,
        packed: None,
        key: vec![0],
        version: 1,
        replaced: None,
        columns: vec![2],
    };
    ObservedStatement {
        statement: 0,
        appended: 3,
        rows: vec![rows],
        searches: Vec::new(),
        limit: None,
        unseen: Vec::new(),
    }
}

/// A case whose statements show rows, by command.
fn case(script: &str, shown: Vec<(usize, ObservedStatement)>) -> Case {
    let mut case = Case::new(script);
    case.shown = Some((tables(KeyForm::Integer), shown));
    case
}

impl Case {
    /// The result of statements with this text, one row of several columns.
    fn answered(mut self, part: &'static str, row: &[&'static str]) -> Case {
        let fields: Vec<_> = row.iter().map(|value| ("x", Some(*value))).collect();
        self.settings.answers.push((part, Answer::row(&fields)));
        self
    }
}

/// The transactions, one per line, without times.
fn lines(history: &History) -> Vec<String> {
    let printed = text::print(history);
    let transactions = printed.lines().filter(|line| line.starts_with('T'));
    let without_times = |line: &str| {
        let (head, operations) = line.split_once(':').expect("operations");
        let mut words: Vec<&str> = head.split(' ').collect();
        words.retain(|word| !word.contains(".."));
        format!("{}:{operations}", words[1..].join(" "))
    };
    transactions.map(without_times).collect()
}

fn shown(case: Case) -> (RunResult, Vec<String>) {
    let (ran, history, why) = case.run_shown();
    assert_eq!((why, history.dropped()), (None, 0));
    (ran, lines(&history))
}

/// Commands: 0 SELECT, 1 to 3 `\set`.
const STORED: &str = "SELECT a, b, id, xmin, c FROM t \\gset
\\set x debug(:a)
\\set x debug(:b)
\\set x debug(:id)
";

#[test]
fn stored_results_have_the_authors_columns_only() {
    for (script, all) in [(STORED.to_owned(), false), (STORED.replace("gset", "aset"), true)] {
        for protocol in PROTOCOLS {
            let mut case = case(&script, vec![(0, shows(RowRole::Read))]).protocol(protocol);
            if all && protocol != Protocol::Simple {
                // Refused before anything runs, with rows or without.
                continue;
            }
            case.variables.push(("id", 5));
            let fields = ["a", "b", "id", "xmin", "c"].into_iter().zip(["10", "20", "3", "600", "0"]);
            let fields: Vec<_> = fields.map(|(name, value)| (name, Some(value))).collect();
            case.settings.answers.push(("FROM t", Answer::row(&fields)));
            let (ran, lines) = shown(case);
            let values: Vec<&str> = ran.debugs().iter().filter_map(|text| text.rsplit(' ').next()).collect();
            assert_eq!(values, ["10", "20", "5"], "{protocol:?}");
            assert_eq!(lines, ["client=0: r t 3 = init @0"]);
        }
    }
}

#[test]
fn a_write_whose_author_returned_nothing_stores_nothing() {
    for (meta, protocol) in
        [("gset", Protocol::Simple), ("gset", Protocol::Prepared), ("aset", Protocol::Simple)]
    {
        // The author's own text has no result at all.
        let written = Case::new(&format!("UPDATE t SET c = 1 WHERE id = 3 \\{meta}\n\\set x debug(1)\n"));
        let written = written.protocol(protocol).run();
        let script =
            format!("UPDATE t SET c = 1 WHERE id = 3 RETURNING id, xmin, c \\{meta}\n\\set x debug(1)\n");
        let sent = case(&script, vec![(0, shows(RowRole::Updated))]).protocol(protocol);
        let (ran, _, _) = sent.answered("UPDATE t", &["3", "800", "1"]).run_shown();
        assert_eq!(ran.debugs(), written.debugs(), "{meta}, {protocol:?}");
        assert_eq!(format!("{:?}", ran.aborts()), format!("{:?}", written.aborts()), "{meta}, {protocol:?}");
        assert_eq!(ran.ledger.attempts, written.ledger.attempts, "{meta}, {protocol:?}");
        assert_eq!(ran.aborts().is_empty(), meta == "aset");
    }
}

/// Statement 1 writes and 2 reads, in one request. Command 0.
const AT_ONCE: &str =
    "BEGIN\\; UPDATE t SET c = 1 RETURNING id, xmin, c\\; SELECT v, id, xmin, c FROM t\\; COMMIT;\n";

#[test]
fn statements_in_one_request_show_their_own_rows() {
    let write = ObservedStatement { statement: 1, ..shows(RowRole::Updated) };
    let read = ObservedStatement { statement: 2, ..shows(RowRole::Read) };
    let case = case(AT_ONCE, vec![(0, write), (0, read)]);
    let case = case.answered("UPDATE t", &["3", "800", "1"]).answered("SELECT v", &["77", "4", "600", "1"]);
    assert_eq!(shown(case).1, ["client=0: w t 3 = v1/800 @0, r t 4 = init @1"]);
}

#[test]
fn a_statement_reads_what_was_there_before_it_writes() {
    // UPDATE t … FROM t AS other: both are shown in each row of the result, the write first.
    let mut statement = shows(RowRole::Updated);
    statement.appended = 6;
    let read = ObservedRows {
        role: RowRole::Read,
        key: vec![3],
        version: 4,
        columns: vec![5],
        ..statement.rows[0].clone()
    };
    statement.rows.push(read);
    let script = "UPDATE t RETURNING t.id, t.xmin, t.c, other.id, other.xmin, other.c;\n";
    let mut case = case(script, vec![(0, statement)]);
    let row = |values: [&'static str; 6]| values.into_iter().map(Some).collect::<Vec<_>>();
    let rows = vec![row(["3", "800", "1", "3", "600", "0"]), row(["4", "800", "1", "4", "601", "0"])];
    let columns = vec!["id", "xmin", "c", "id", "xmin", "c"];
    case.settings.answers.push(("UPDATE t", Answer { columns, rows }));
    let line = "client=0: r t 3 = init @0, r t 4 = init @0, w t 3 = v1/800 @0, w t 4 = v1/800 @0";
    assert_eq!(shown(case).1, [line]);
}

/// Two clients update the same row. Without the pipeline the second begins when the first one's
/// write has been answered; in the pipeline all answers come together.
fn two_writers(pipeline: bool, replaced: bool) -> Vec<String> {
    let (start, end) = if pipeline { ("\\startpipeline\n", "\\endpipeline\n") } else { ("", "") };
    let script = format!(
        "{start}BEGIN;\n\\if :client_id = 1\n\\sleep 10 ms\n\\endif\nUPDATE t SET c = :client_id RETURNING id, xmin, \
         c, old;\nEND;\n{end}"
    );
    let mut write = shows(RowRole::Updated);
    write.appended = 4;
    write.rows[0].replaced = replaced.then_some(3);
    let command = if pipeline { 5 } else { 4 };
    let mut case = case(&script, vec![(command, write)]).clients(2).protocol(Protocol::Extended);
    if pipeline {
        // The first client is as slow as the second, so that they overlap.
        case.scripts[0].0 = script.replace("\\if :client_id = 1\n", "\\if true\n");
    }
    let case = case.answered("c = 0", &["3", "800", "0", "600"]).answered("c = 1", &["3", "801", "1", "800"]);
    shown(case).1
}

#[test]
fn writes_in_a_block_are_ordered_by_the_lock_and_those_in_a_pipeline_by_what_they_replaced() {
    let (first, second) = ("client=0: w t 3 = v1/800 @0", "client=1: w t 3 = v2/801 @0");
    assert_eq!(two_writers(false, false), [first, second]);
    assert_eq!(two_writers(false, true), [first, second]);
    // Their order isn't known: both are the first.
    assert_eq!(two_writers(true, false), [first, "client=1: w t 3 = v1/801 @0"]);
    assert_eq!(two_writers(true, true), [first, second]);
}

/// Commands: 0 BEGIN, 1 UPDATE, 2 END, 3 SELECT, 4 BEGIN, 5 UPDATE, 6 ROLLBACK.
const SEVERAL: &str = "BEGIN;
UPDATE t SET c = 1 RETURNING id, xmin, c;
END;
SELECT id, xmin, c FROM t;
BEGIN;
UPDATE t SET c = 2 RETURNING id, xmin, c;
ROLLBACK;
";

#[test]
fn each_transaction_of_the_server_is_one_of_the_history() {
    let statements =
        vec![(1, shows(RowRole::Updated)), (3, shows(RowRole::Read)), (5, shows(RowRole::Updated))];
    for protocol in PROTOCOLS {
        let case = case(SEVERAL, statements.clone()).protocol(protocol);
        let case = case.answered("c = 1", &["3", "800", "1"]).answered("c = 2", &["3", "801", "2"]);
        let case = case.answered("FROM t", &["3", "800", "1"]);
        let (_, history, why) = case.run_shown();
        assert_eq!((why, history.dropped()), (None, 0));
        let outcomes: Vec<_> = history.transactions().iter().map(|transaction| transaction.outcome).collect();
        let (committed, aborted) = (TransactionOutcome::Committed, TransactionOutcome::Aborted);
        assert_eq!(outcomes, [committed, committed, aborted]);
        assert_eq!(
            lines(&history),
            [
                "client=0: w t 3 = v1/800 @0",
                "client=0: r t 3 = v1/800 @1",
                "client=0 aborted: w t 3 = 801 @2"
            ]
        );
        assert!(history.transactions().is_sorted_by(|one, other| one.end <= other.begin));
    }
}

/// Commands: 0 BEGIN, 1 SAVEPOINT, 2 UPDATE, 3 ROLLBACK TO, 4 END.
const UNDONE: &str =
    "BEGIN;\nSAVEPOINT s;\nUPDATE t SET c = 1 RETURNING id, xmin, c;\nROLLBACK TO s;\nEND;\n";

#[test]
fn what_is_undone_in_part_is_incomplete_unless_all_of_it_is() {
    let shown = || vec![(2, shows(RowRole::Updated))];
    let run = |script: &str| case(script, shown()).answered("UPDATE t", &["3", "800", "1"]).run_shown();
    let (_, history, why) = run(UNDONE);
    assert_eq!(history.dropped(), 1);
    assert_eq!(why.as_deref(), Some("ROLLBACK TO undid a part of what a transaction had done"));
    let (_, history, why) = run(&UNDONE.replace("END;", "ROLLBACK;"));
    assert_eq!((history.dropped(), why), (0, None));
    let (_, history, why) = run(&UNDONE.replace("ROLLBACK TO s", "RELEASE s"));
    assert_eq!((history.dropped(), why), (0, None));
    assert_eq!(lines(&history), ["client=0: w t 3 = v1/800 @0"]);
}

/// Commands: 0 BEGIN, 1 UPDATE, 2 SELECT, 3 END.
const BLOCK: &str =
    "BEGIN;\nUPDATE t SET c = :attempt RETURNING id, xmin, c;\nSELECT id, xmin, c FROM t;\nEND;\n";

fn block(faults: Faults) -> Case {
    let case = case(BLOCK, vec![(1, shows(RowRole::Updated)), (2, shows(RowRole::Read))]).faults(faults);
    let case = case.answered("c = 1", &["3", "800", "1"]).answered("c = 2", &["3", "801", "1"]);
    case.answered("FROM t", &["4", "600", "1"])
}

#[test]
fn retries_leave_aborted_transactions() {
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    for (on, seen) in [(On::Select, ""), (On::Commit, ", r t 4 = init @1")] {
        let (ran, history, why) = block(Faults::none().and(on, When::Nth(0, 0), conflict)).run_shown();
        assert_eq!((ran.ledger.retries, history.dropped(), why), (1, 0, None));
        let aborted = format!("client=0 aborted: w t 3 = 800 @0{seen}");
        assert_eq!(
            lines(&history),
            [aborted.as_str(), "client=0: w t 3 = v1/801 @0, r t 4 = init @1"],
            "{on:?}"
        );
    }
}

#[test]
fn a_commit_without_an_answer_has_an_unknown_outcome() {
    let faults = Faults::none().and(On::Commit, When::Nth(0, 0), Fault::LostAfter(Loss::Reset));
    let (ran, history, why) = block(faults).run_shown();
    assert_eq!((ran.ledger.attempts.ambiguous, history.dropped(), why), (1, 0, None));
    let [transaction] = history.transactions() else { panic!("{:?}", lines(&history)) };
    assert_eq!((transaction.outcome, transaction.end), (TransactionOutcome::Unknown, u64::MAX));
    // If a statement's answer is missing too, so may be rows.
    let faults = Faults::none().and(On::Update, When::Nth(0, 0), Fault::LostAfter(Loss::Reset));
    let alone = case("UPDATE t SET c = 1 RETURNING id, xmin, c;\n", vec![(0, shows(RowRole::Updated))]);
    let (ran, history, why) = alone.faults(faults).run_shown();
    assert_eq!((ran.ledger.attempts.ambiguous, history.dropped()), (1, 1));
    assert_eq!(why.as_deref(), Some("a statement was not answered"));
}

#[test]
fn keys_of_several_columns_and_texts_are_told_apart() {
    let mut statement = shows(RowRole::Read);
    statement.appended = 3;
    statement.rows[0].key = vec![0, 1];
    statement.rows[0].version = 2;
    statement.rows[0].columns = Vec::new();
    let script = "SELECT id, name, xmin FROM t;\n";
    let mut description = tables(KeyForm::Numbered);
    description.tables.iter_mut().for_each(|table| table.columns.clear());
    let mut case = Case::new(script);
    let row = |one, other| vec![Some(one), Some(other), Some("600")];
    let absent = vec![None, Some("x"), None];
    let rows = vec![row("a,b", "c"), row("a", "b,c"), row("a\\", "b"), absent, row("a,b", "c")];
    case.settings.answers.push(("FROM t", Answer { columns: vec!["id", "name", "xmin"], rows }));
    case.shown = Some((description, vec![(0, statement)]));
    let (_, history, why) = case.run_shown();
    assert_eq!((why, history.dropped()), (None, 0));
    let keys = &history.provenance().expect("it was observed").keys;
    assert_eq!(keys[&0], ["a\\,b,c", "a,b\\,c", "a\\\\,b"]);
    assert_eq!(history.operation_count(), 4);
}

/// An aggregate brings the rows along, in an array of records.
fn packed(array: &'static str) -> (History, Option<String>) {
    let mut statement = shows(RowRole::Read);
    statement.appended = 1;
    statement.rows[0].packed = Some(0);
    let script = "SELECT sum(c), array_agg(ROW(id, xmin, c)) FROM t \\gset\n\\set x debug(:sum)\n";
    let mut case = case(script, vec![(0, statement)]);
    case.settings.answers.push(("FROM t", Answer::row(&[("sum", Some("9")), ("packed", Some(array))])));
    let (ran, history, why) = case.run_shown();
    assert!(ran.debugs()[0].ends_with(" 9"), "{:?}", ran.debugs());
    (history, why)
}

#[test]
fn aggregates_bring_rows_along() {
    let (history, why) = packed("{\"(3,600,1)\",\"(4,650,)\",NULL,\"(,,)\"}");
    assert_eq!((why, lines(&history)), (None, vec!["client=0: r t 3 = init @0, r t 4 = init @0".to_owned()]));
    let (history, why) = packed("{}");
    assert_eq!((why, lines(&history)), (None, Vec::<String>::new()));
    for (array, reason) in [
        ("{\"(3,600,1)\"", "an array of rows can't be read"),
        ("{\"(x,600,1)\"}", "a key can't be read"),
        ("{\"(3,x,1)\"}", "the number of a row's writer can't be read"),
        ("{\"(3,600,x)\"}", "a column's value can't be read"),
    ] {
        let (history, why) = packed(array);
        assert_eq!((history.dropped(), why.as_deref()), (1, Some(reason)), "{array}");
    }
}

/// Searches for `c = :v` and finds nothing, after a row with the value 1 has been inserted. Commands:
/// 0 INSERT, 1 `\set`, 2 SELECT.
fn searched(value: &str) -> History {
    searched_when(value, SearchWhen::Always, &[])
}

/// The same, with an answer of rows of `id`, `xmin`, `c`, as far as the result tells.
fn searched_when(value: &str, when: SearchWhen, rows: &[[&'static str; 3]]) -> History {
    let script = format!(
        "INSERT INTO t RETURNING id, xmin, c;\n\\set v {value}\nSELECT id, xmin, c FROM t WHERE c = :v;\n"
    );
    let mut symbols = Symbols::new();
    isobench_script::parse("test.sql", &script, &mut symbols).expect("a script");
    let operand = SearchOperand { value: SearchValue::Variable(symbols.intern("v")), table: 0, column: 0 };
    let search = ObservedSearch {
        table: 0,
        rows: Some(0),
        when,
        predicate: 0,
        key: None,
        operands: vec![operand],
        referred: None,
    };
    let mut statement = shows(RowRole::Read);
    statement.searches.push(search);
    let mut case = case(&script, vec![(0, shows(RowRole::Inserted)), (2, statement)]);
    let (description, _) = case.shown.as_mut().expect("statements");
    description.predicates.push(Predicate::Compare { column: 0, comparison: Comparison::Equal, operand: 0 });
    found(case, "1", rows)
}

/// The history of a case that inserts row 3 with a value and is shown these rows of `id`, `xmin`, `c`.
fn found(case: Case, inserted: &'static str, rows: &[[&'static str; 3]]) -> History {
    let mut case = case.answered("INSERT", &["3", "800", inserted]);
    let rows = rows.iter().map(|row| row.map(Some).to_vec()).collect();
    case.settings.answers.push(("FROM t", Answer { columns: vec!["id", "xmin", "c"], rows }));
    let (_, history, why) = case.run_shown();
    assert_eq!((why, history.dropped()), (None, 0));
    history
}

/// The number of searches known, and whether they missed row 3 as it was inserted.
fn missed(history: &History) -> (u64, bool) {
    let searches = history.provenance().expect("it was observed").searches;
    (searches, lines(history).iter().any(|line| line.contains("m t 3 before v1")))
}

#[test]
fn results_tell_whether_a_search_found_all() {
    let row = ["9", "650", "1"];
    for (when, rows, known) in [
        (SearchWhen::Empty, &[][..], true),
        (SearchWhen::Empty, &[row][..], false),
        (SearchWhen::Nonempty, &[][..], false),
        (SearchWhen::Nonempty, &[row][..], true),
        (SearchWhen::Found(0), &[][..], false),
        (SearchWhen::Found(0), &[row][..], true),
        (SearchWhen::Column(2, true), &[row][..], true),
        (SearchWhen::Column(2, false), &[row][..], false),
        (SearchWhen::Column(2, false), &[["9", "650", "0"]][..], true),
        (SearchWhen::Column(1, true), &[row][..], false),
        (SearchWhen::Column(2, true), &[][..], false),
    ] {
        let history = searched_when("1", when, rows);
        let searches = history.provenance().expect("it was observed").searches;
        assert_eq!(searches, u64::from(known), "{when:?} {rows:?}");
    }
}

/// The number of searches known of `SELECT … LIMIT rows OFFSET offset`, of all rows or of those before
/// the last, and whether they missed a row with the value 2 that was inserted before. `of`: the entry
/// whose rows are limited.
fn limited(rows: &str, offset: &str, of: Option<usize>, answer: &[[&'static str; 3]]) -> (u64, bool) {
    let script = "INSERT INTO t RETURNING id, xmin, c;\nSELECT id, xmin, c FROM t ORDER BY c;\n";
    let value = |text: &str| Some(SearchValue::Constant(text.to_owned()));
    let search = |when: SearchWhen, predicate: u16, operands: Vec<SearchOperand>| ObservedSearch {
        table: 0,
        rows: Some(0),
        when,
        predicate,
        key: None,
        operands,
        referred: None,
    };
    let last = SearchOperand { value: SearchValue::Last, table: 0, column: 0 };
    let mut statement = shows(RowRole::Read);
    statement.limit = Some(RowLimit { rows: value(rows), offset: value(offset), of });
    statement.searches =
        vec![search(SearchWhen::Unlimited, 0, Vec::new()), search(SearchWhen::Limited, 1, vec![last])];
    let mut case = case(script, vec![(0, shows(RowRole::Inserted)), (1, statement)]);
    let (description, _) = case.shown.as_mut().expect("statements");
    let place = Place { column: 0, operand: 0, descending: false, nulls_first: false, decimal: false };
    description.predicates.extend([Predicate::True, Predicate::Before(vec![place])]);
    missed(&found(case, "2", answer))
}

#[test]
fn a_limit_decides_what_was_found() {
    let (low, high) = (["9", "650", "1"], ["9", "650", "5"]);
    // It wasn't reached: all rows were found.
    assert_eq!(limited("2", "0", None, &[low]), (1, true));
    assert_eq!(limited("2", "0", None, &[]), (1, true));
    // The rows of an entry count, not those of the result: the entry shows one row twice, or the other one.
    assert_eq!(limited("3", "0", Some(0), &[low, high]), (1, true));
    assert_eq!(limited("2", "0", Some(1), &[low, high]), (1, true));
    // It was: those before the last one, whose value is 5 here and 1 there.
    assert_eq!(limited("1", "0", None, &[high]), (1, true));
    assert_eq!(limited("1", "0", None, &[low]), (1, false));
    // Rows are skipped, or none is wanted, or it isn't a number.
    for (rows, offset) in [("2", "1"), ("0", "0"), ("-1", "0"), ("1", "x")] {
        assert_eq!(limited(rows, offset, None, &[]), (0, false), "{rows} {offset}");
    }
}

/// The same of a statement that compares with a list of values, and of a row with the value 1.
fn listed(value: SearchValue) -> (u64, bool) {
    let script = "INSERT INTO t RETURNING id, xmin, c;\nSELECT id, xmin, c FROM t;\n";
    let list = SearchOperand { value, table: 0, column: 0 };
    let search = ObservedSearch {
        table: 0,
        rows: None,
        when: SearchWhen::Always,
        predicate: 0,
        key: None,
        operands: vec![list],
        referred: None,
    };
    let mut statement = shows(RowRole::Read);
    statement.searches.push(search);
    let mut case = case(script, vec![(0, shows(RowRole::Inserted)), (1, statement)]);
    let (description, _) = case.shown.as_mut().expect("statements");
    description.predicates.push(Predicate::Among { column: 0, first: 0 });
    missed(&found(case, "1", &[["8", "650", "4"], ["9", "650", "1"]]))
}

#[test]
fn lists_are_as_long_as_the_rows_shown_or_the_array() {
    let array = |text: &str| SearchValue::Elements(Box::new(SearchValue::Constant(text.to_owned())));
    assert_eq!(listed(SearchValue::Shown { entry: 0, column: 0 }), (1, true));
    assert_eq!(listed(array("{7,1}")), (1, true));
    assert_eq!(listed(array("{7,NULL}")), (1, false));
    assert_eq!(listed(array("{}")), (1, false));
    for text in ["{1,x}", "{\"1\"}", "1", "{{1}}"] {
        assert_eq!(listed(array(text)), (0, false), "{text}");
    }
    assert_eq!(listed(SearchValue::Parameter(1)), (0, false));
}

/// The same of rows whose keys are the values 3 and 9 of a column shown: each is searched for by its key,
/// or all of them are what was found.
fn referred(each: bool) -> (u64, bool) {
    let script = "INSERT INTO t RETURNING id, xmin, c;\nSELECT id, xmin, c FROM t;\n";
    let search = ObservedSearch {
        table: 0,
        rows: None,
        when: SearchWhen::Always,
        predicate: 0,
        key: None,
        operands: Vec::new(),
        referred: Some(Referred { entry: 0, column: 0, each }),
    };
    let mut statement = shows(RowRole::Read);
    statement.searches.push(search);
    let mut case = case(script, vec![(0, shows(RowRole::Inserted)), (1, statement)]);
    let (description, _) = case.shown.as_mut().expect("statements");
    description.predicates.push(Predicate::True);
    missed(&found(case, "1", &[["7", "650", "3"], ["8", "650", "9"], ["9", "650", "3"]]))
}

#[test]
fn rows_that_others_refer_to_are_found_by_their_keys() {
    assert_eq!(referred(true), (2, true), "3 and 9 were searched for");
    assert_eq!(referred(false), (1, false), "3 and 9 were found");
}

/// Whether `c = 1 + by` missed a row with the value 11.
fn moved(by: i64) -> (u64, bool) {
    let one = SearchValue::Constant("1".to_owned());
    compared(SearchValue::Moved(Box::new(one), by), ValueForm::Integer, "11")
}

/// Whether `c = value::numeric(10, scale)` missed a row with the value 7.5.
fn scaled(value: &str, scale: u16) -> (u64, bool) {
    let value = SearchValue::Constant(value.to_owned());
    compared(SearchValue::Scaled(Box::new(value), scale), ValueForm::Decimal, "7.5")
}

/// Whether `c = value` missed a row with this value.
fn compared(value: SearchValue, form: ValueForm, inserted: &'static str) -> (u64, bool) {
    let script = "INSERT INTO t RETURNING id, xmin, c;\nSELECT id, xmin, c FROM t;\n";
    let search = ObservedSearch {
        table: 0,
        rows: Some(0),
        when: SearchWhen::Always,
        predicate: 0,
        key: None,
        operands: vec![SearchOperand { value, table: 0, column: 0 }],
        referred: None,
    };
    let mut statement = shows(RowRole::Read);
    statement.searches.push(search);
    let mut case = case(script, vec![(0, shows(RowRole::Inserted)), (1, statement)]);
    let (description, _) = case.shown.as_mut().expect("statements");
    description.tables[0].columns[0].form = form;
    description.predicates.push(Predicate::Compare { column: 0, comparison: Comparison::Equal, operand: 0 });
    missed(&found(case, inserted, &[]))
}

#[test]
fn values_are_moved() {
    assert_eq!(moved(10), (1, true));
    assert_eq!(moved(-10), (1, false));
    assert_eq!(moved(i64::MAX), (0, false), "beyond all numbers");
}

#[test]
fn numbers_that_the_server_rounds_are_not_known() {
    for (value, scale, expected) in [
        ("7.5", 2, (1, true)),
        ("7.50", 2, (1, true)),
        ("7.5", 1, (1, true)),
        ("8", 0, (1, false)),
        ("7.5", 0, (0, false)),
        ("7.495", 2, (0, false)),
        ("x", 2, (0, false)),
    ] {
        assert_eq!(scaled(value, scale), expected, "{value} with {scale} digits");
    }
}

#[test]
fn searches_are_evaluated_with_the_variables_of_their_time() {
    let searches = |history: &History| history.provenance().expect("it was observed").searches;
    let history = searched("1");
    assert_eq!(searches(&history), 1);
    assert_eq!(lines(&history), ["client=0: w t 3 = v1/800 @0", "client=0: m t 3 before v1 @1"]);
    let history = searched("2");
    assert_eq!((searches(&history), history.operation_count()), (1, 1));
    // What can't be compared with an integer is no search; a variable's NULL is sent as a text.
    for value in ["1.5", "1e300", "NULL"] {
        let history = searched(value);
        assert_eq!((searches(&history), history.operation_count()), (0, 1), "{value}");
    }
}

/// Commands: 0 BEGIN, 1 SELECT, 2 UPDATE, 3 END; line 4 says what is written.
fn annotated(key: i64, protocol: Protocol) -> (RunResult, History, Option<String>) {
    let script = format!(
        "BEGIN;\n--@ read t key=$2 version=$1\nSELECT 5, id, xmin, c FROM t;\n--@ write t key={key} version=$1\nUPDATE \
         t SET c = 1 RETURNING 6, id, xmin, c;\nEND;\n"
    );
    let case =
        case(&script, vec![(1, shows(RowRole::Read)), (2, shows(RowRole::Updated))]).protocol(protocol);
    let case = case.answered("UPDATE t", &["6", "3", "800", "1"]);
    case.answered("FROM t", &["5", "3", "600", "1"]).run_shown()
}

#[test]
fn annotations_have_to_agree_with_the_rows() {
    for protocol in PROTOCOLS {
        let (ran, history, why) = annotated(3, protocol);
        assert_eq!((why, history.dropped(), ran.aborts().len()), (None, 0, 0));
        assert_eq!(lines(&history), ["client=0: r t 3 = init @0, w t 3 = v1/800 @1"]);
        let (ran, _, _) = annotated(4, protocol);
        let (place, cause) = ran.abort();
        let AbortCause::Annotation(problem) = cause else { panic!("{cause:?}") };
        assert_eq!(place, at(0, 0, 2));
        assert_eq!(
            problem,
            "test.sql:4: --@ write t key=4 version=$1: the statement did not write the row with the key 4, as its own \
             result shows; correct the line or remove it"
        );
    }
}

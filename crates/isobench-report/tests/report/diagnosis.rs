//! Each diagnosis, and each rule of that of false conflicts: when it speaks, what it says, and when it is
//! silent.

use std::time::Duration;

use isobench_isolation::{EffectiveLevel, Level};
use isobench_report::{render, to_html};
use isobench_result::{
    Cell, CellLevel, Client, Conflict, CountComparison, Diagnosis, DiagnosisKind, Document, ExaminedHistory,
    LockedRelation, LocksSeen, Observation, ObservedStatement, Plan, PredicateLocks, Round, Server,
    ServerSide, TableUse, Verdict, diagnoses, summarise,
};
use isobench_stats::{Attempts, LatencyHistogram, Ledger, Transactions};

const DEPENDENCIES: &str = "read/write dependencies: identification as a pivot, during write";

/// A row of 1,000 attempts, of which so many ended in a conflict.
fn cell(level: Level, conflicts: u64, reason: &str, server: ServerSide) -> Cell {
    let effective = EffectiveLevel::Standard(level);
    let mut cell = Cell::new("transfer.sql", CellLevel::new(Some(level), effective));
    let committed = 1000 - conflicts;
    let ledger = Ledger {
        attempts: Attempts { started: 1000, committed, retried: conflicts, ..Attempts::default() },
        transactions: Transactions { total: committed, committed, ..Transactions::default() },
        conflicts,
        retries: conflicts,
        ..Ledger::default()
    };
    let conflict = Conflict {
        sqlstate: "40001".to_owned(),
        script: None,
        line: None,
        command: "UPDATE account".to_owned(),
        reason: reason.to_owned(),
        object: None,
        count: conflicts,
    };
    let histogram = LatencyHistogram::new();
    let mut round = Round::from_ledger(1, &ledger, &histogram, Duration::from_secs(1), vec![conflict]);
    round.server = Some(server);
    cell.rounds.push(round);
    cell
}

fn document(cells: Vec<Cell>) -> Document {
    let server = Server { product: "PostgreSQL".to_owned(), ..Server::default() };
    let mut document = Document::new(server, Client::default(), Plan::default());
    document.cells = cells;
    document.complete = true;
    summarise(&mut document);
    document
}

fn seen(most: u64) -> LocksSeen {
    LocksSeen { most, share: if most > 0 { 1.0 } else { 0.0 } }
}

fn server_side(relations: Vec<LockedRelation>, table: &TableUse) -> ServerSide {
    let predicate_locks = PredicateLocks {
        at_s: vec![0.2, 0.4],
        tuple: vec![0, 0],
        page: vec![0, 0],
        relation: vec![4, 6],
        relations,
        other_relations: 0,
    };
    ServerSide {
        predicate_locks: Some(predicate_locks),
        tables: vec![TableUse { table: "account".to_owned(), ..table.clone() }],
        ..ServerSide::default()
    }
}

fn account(rows: u64, pages: u64, relation: LocksSeen) -> LockedRelation {
    LockedRelation {
        name: "account".to_owned(),
        rows: Some(rows),
        pages: Some(pages),
        relation,
        ..LockedRelation::default()
    }
}

/// A table of so many rows that is scanned in each attempt.
fn scanned(rows: u64) -> ServerSide {
    server_side(
        vec![account(rows, 2, seen(6))],
        &TableUse { seq_scans: 3000, index_scans: 0, ..TableUse::default() },
    )
}

/// An index of so many pages, to whose table so much is written.
fn indexed(pages: u64, table: &TableUse) -> ServerSide {
    let index = LockedRelation {
        name: "account_pkey".to_owned(),
        table: Some("account".to_owned()),
        rows: Some(1000),
        pages: Some(pages),
        page: seen(17),
        ..LockedRelation::default()
    };
    server_side(vec![index], &TableUse { index_scans: 3000, ..table.clone() })
}

fn serializable(server: ServerSide) -> Cell {
    cell(Level::Serializable, 800, DEPENDENCIES, server)
}

fn only(document: &Document) -> Diagnosis {
    let mut found = diagnoses(document);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn is_silent(cells: Vec<Cell>) {
    assert_eq!(diagnoses(&document(cells)), []);
}

#[test]
fn a_small_table_that_is_scanned() {
    let found = only(&document(vec![
        cell(Level::RepeatableRead, 168, "concurrent update", ServerSide::default()),
        serializable(scanned(100)),
    ]));
    assert_eq!(found.kind, DiagnosisKind::Scanned);
    assert_eq!((found.relations[0].name.as_str(), found.relations[0].rows), ("account", Some(100)));
    assert_eq!(
        found.sentence,
        "Most conflicts at serializable (80.0 % of attempts, 16.8 % at repeatable read) may be \
         false: table account (100 rows) is scanned as a whole. Larger tables with an index on what is \
         searched for may have none, unless transactions need all rows."
    );
}

#[test]
fn a_large_table_that_is_scanned_lacks_an_index() {
    let found = only(&document(vec![serializable(scanned(50_000))]));
    assert_eq!(found.kind, DiagnosisKind::Scanned);
    assert!(found.sentence.contains("(80.0 % of attempts) may be false"), "{}", found.sentence);
    assert!(found.sentence.contains("With an index on what is searched for they may"), "{}", found.sentence);
    assert!(!found.sentence.contains("planner"), "{}", found.sentence);
}

/// An index that wasn't used isn't asked for.
#[test]
fn a_large_table_that_is_scanned_has_its_indexes_named() {
    let mut side = scanned(50_000);
    let indexes = ["(id)", "(owner, day)"].map(str::to_owned).to_vec();
    side.predicate_locks.as_mut().expect("locks").relations[0].indexes = indexes;
    let said = only(&document(vec![serializable(side)])).sentence;
    assert!(
        said.contains(
            "account has indexes on (id) and (owner, day): ANALYZE at the end of the set-up may make the server use one"
        ),
        "{said}"
    );
    assert!(!said.contains("With an index on what is searched for they may vanish"), "{said}");
}

/// Where transactions go wrong at a weaker level, those that fail at serializable fail for a reason.
#[test]
fn conflicts_that_prevent_anomalies_arent_called_false() {
    let at = |level: Level, anomalous: u64| {
        let mut cell = cell(level, 0, "concurrent update", ServerSide::default());
        let examined = ExaminedHistory { committed: 1000, ..ExaminedHistory::default() };
        let mut verdict = Verdict::missing(None, String::new());
        (verdict.withheld, verdict.examined, verdict.anomalous) = (Vec::new(), examined, anomalous);
        cell.rounds[0].verdict = Some(verdict);
        cell
    };
    for (level, anomalous, speaks) in [
        (Level::RepeatableRead, 0, true),
        (Level::RepeatableRead, 40, true),
        (Level::RepeatableRead, 500, false),
        (Level::ReadCommitted, 500, false),
    ] {
        let found = diagnoses(&document(vec![at(level, anomalous), serializable(scanned(100))]));
        assert_eq!(!found.is_empty(), speaks, "{level} {anomalous}");
    }
    // Updates that read committed loses are no conflicts of readers and writers.
    let both = [at(Level::ReadCommitted, 500), at(Level::RepeatableRead, 0), serializable(scanned(100))];
    assert_eq!(diagnoses(&document(both.to_vec())).len(), 1);
}

#[test]
fn too_many_locks_are_promoted() {
    let table = TableUse { index_scans: 3000, ..TableUse::default() };
    let side = server_side(vec![account(50_000, 600, seen(3))], &table);
    let found = only(&document(vec![serializable(side)]));
    assert_eq!(found.kind, DiagnosisKind::Promoted);
    assert!(
        found
            .sentence
            .contains("table account (50,000 rows) is locked as a whole, though hardly ever read as a whole")
            && found.sentence.contains("max_pred_locks_per_relation"),
        "{}",
        found.sentence
    );
}

#[test]
fn an_index_that_has_no_locks_on_pages_isnt_promoted() {
    let side = |page| {
        let table = TableUse { index_scans: 3000, ..TableUse::default() };
        let index = LockedRelation {
            name: "account_brin".to_owned(),
            table: Some("account".to_owned()),
            page,
            ..account(50_000, 3, seen(3))
        };
        server_side(vec![index], &table)
    };
    is_silent(vec![serializable(side(seen(0)))]);
    assert_eq!(only(&document(vec![serializable(side(seen(1)))])).kind, DiagnosisKind::Promoted);
}

#[test]
fn a_small_index_to_which_entries_are_added() {
    let cold = TableUse { updated: 2000, hot_updated: 100, ..TableUse::default() };
    let found = only(&document(vec![serializable(indexed(7, &cold))]));
    assert_eq!((found.kind, found.relations[0].pages), (DiagnosisKind::IndexPages, Some(7)));
    let said = found.sentence;
    assert!(said.contains("index account_pkey (7 pages) is small") && said.contains("fillfactor"), "{said}");
    let inserted = TableUse { inserted: 2000, ..TableUse::default() };
    let said = only(&document(vec![serializable(indexed(7, &inserted))])).sentence;
    assert!(said.contains("to which every insert adds an entry") && !said.contains("fillfactor"), "{said}");
    assert!(said.contains("If transactions insert what others search for"), "{said}");
    is_silent(vec![serializable(indexed(27, &inserted))]);
    // Two transactions seldom meet in one page of many.
    is_silent(vec![serializable(indexed(2000, &cold))]);
    // HOT updates add nothing to an index.
    let hot = TableUse { updated: 2000, hot_updated: 2000, ..TableUse::default() };
    is_silent(vec![serializable(indexed(7, &hot))]);
}

#[test]
fn nothing_is_said_of_other_levels_and_products() {
    for level in [Level::ReadCommitted, Level::RepeatableRead] {
        is_silent(vec![cell(level, 800, DEPENDENCIES, scanned(100))]);
    }
    let mut other = document(vec![serializable(scanned(100))]);
    "YugabyteDB".clone_into(&mut other.server.product);
    assert_eq!(diagnoses(&other), []);
    let mut calibration = serializable(scanned(100));
    calibration.calibration = true;
    is_silent(vec![calibration]);
    is_silent(vec![serializable(ServerSide::default())]);
}

#[test]
fn nothing_is_said_without_such_conflicts() {
    is_silent(vec![cell(Level::Serializable, 9, DEPENDENCIES, scanned(100))]);
    is_silent(vec![cell(Level::Serializable, 800, "concurrent update", scanned(100))]);
    // Conflicts that repeatable read has, too, are real.
    is_silent(vec![
        cell(Level::RepeatableRead, 500, "concurrent update", ServerSide::default()),
        serializable(scanned(100)),
    ]);
}

#[test]
fn nothing_is_said_of_locks_that_are_no_larger_than_what_was_read() {
    is_silent(vec![serializable(scanned(1))]);
    let history = |operations| {
        let mut cell = serializable(scanned(100));
        let examined = ExaminedHistory { committed: 1000, operations, ..ExaminedHistory::default() };
        cell.rounds[0].verdict = Some(Verdict { examined, ..Verdict::default() });
        cell
    };
    is_silent(vec![history(100_000)]);
    assert_eq!(only(&document(vec![history(3000)])).kind, DiagnosisKind::Scanned);
}

#[test]
fn nothing_is_said_of_rare_locks_nor_without_the_use_of_tables() {
    let rare = LocksSeen { most: 6, share: 0.1 };
    let use_ = TableUse { seq_scans: 3000, ..TableUse::default() };
    is_silent(vec![serializable(server_side(vec![account(100, 2, rare)], &use_))]);
    // Without the use of the tables it isn't known why they are locked.
    let mut unknown = scanned(100);
    unknown.tables.clear();
    is_silent(vec![serializable(unknown)]);
}

#[test]
fn rounds_are_taken_together() {
    let mut cell = serializable(scanned(100));
    for number in 2..=5 {
        let mut round = cell.rounds[0].clone();
        round.round = number;
        round.server = Some(ServerSide {
            predicate_locks: Some(PredicateLocks { at_s: vec![0.2; 3], ..PredicateLocks::default() }),
            ..ServerSide::default()
        });
        cell.rounds.push(round);
    }
    // Two of 14 samples have such locks.
    is_silent(vec![cell.clone()]);
    cell.rounds.truncate(2);
    assert_eq!(only(&document(vec![cell])).kind, DiagnosisKind::Scanned);
}

#[test]
fn rows_with_the_same_reason_are_said_once_the_worst_one() {
    let mut few = cell(Level::Serializable, 300, DEPENDENCIES, scanned(100));
    few.clients = 2;
    let mut many = serializable(scanned(100));
    many.clients = 8;
    let found = only(&document(vec![few, many]));
    assert!(
        found.sentence.starts_with("Most conflicts at serializable, 8 clients (80.0 % of attempts)"),
        "{}",
        found.sentence
    );
}

#[test]
fn several_tables_are_named() {
    let mut side = scanned(100);
    let mut branch = TableUse { table: "branch".to_owned(), ..side.tables[0].clone() };
    branch.seq_scans = 1000;
    side.tables.push(branch);
    if let Some(locks) = &mut side.predicate_locks {
        locks.relations.push(LockedRelation { name: "branch".to_owned(), ..account(10, 1, seen(2)) });
    }
    let said = only(&document(vec![serializable(side)])).sentence;
    assert!(said.contains("tables account (100 rows) and branch (10 rows) are scanned as a whole"), "{said}");
}

#[test]
fn the_terminal_and_the_page_say_it() {
    let document = document(vec![serializable(scanned(100))]);
    let said = only(&document).sentence;
    let text = render(&document, 100).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&said), "{text}");
    assert!(to_html(&document).contains(&format!("<p>{said}</p>")));
}

/// A row in which clients ended for lack of predicate locks.
fn ran_out(server: ServerSide) -> Cell {
    let mut cell = cell(Level::Serializable, 0, DEPENDENCIES, server);
    cell.rounds[0].errors = ["pay.sql:3: SELECT v", "pay.sql:3: SELECT v", "report.sql:2: SELECT w"]
        .map(|place| {
            format!(
                "ERROR:  out of shared memory\nHINT:  You might need to increase \
                 max_pred_locks_per_transaction.\n  at {place}"
            )
        })
        .into();
    cell
}

fn with_settings(mut document: Document, settings: &[(&str, &str)]) -> Document {
    "15.4".clone_into(&mut document.server.version);
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    document.server.settings = settings.collect();
    document
}

#[test]
fn predicate_locks_that_run_out_are_named_with_statement_room_and_setting() {
    let settings = [("max_connections", "100"), ("max_pred_locks_per_transaction", "10")];
    let document = with_settings(document(vec![ran_out(scanned(100))]), &settings);
    let found = only(&document);
    assert_eq!(found.kind, DiagnosisKind::RanOut);
    assert_eq!(
        found.sentence,
        "The server ran out of predicate locks at serializable (SQLSTATE 53200, at pay.sql:3 and report.sql:2). \
         The server has room for locks on about 1,220 rows, pages and tables at a time \
         (max_pred_locks_per_transaction 10 × 122 sessions and processes); a sample found 6 locks. Raise \
         max_pred_locks_per_transaction, which takes a restart (embedded server: --server-setting \
         max_pred_locks_per_transaction=64). Locks outlive their transaction while others that overlap it are open, \
         so shorter transactions need fewer."
    );
    let text = render(&document, 100).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&found.sentence), "{text}");
}

#[test]
fn other_errors_are_no_lack_of_predicate_locks() {
    let mut other = ran_out(scanned(100));
    for error in &mut other.rounds[0].errors {
        *error = error.replace("max_pred_locks", "max_locks");
    }
    is_silent(vec![other]);
    // One that was retried has no hint, so the server must have been at least half full.
    let retried = |most: u64| {
        let mut side = scanned(100);
        side.predicate_locks.as_mut().expect("locks").relation = vec![4, most];
        let mut cell = cell(Level::Serializable, 0, DEPENDENCIES, side);
        cell.rounds[0].further_errors = vec![Conflict {
            sqlstate: "53200".to_owned(),
            script: Some("pay.sql".to_owned()),
            line: Some(3),
            command: "SELECT v".to_owned(),
            reason: "out of shared memory".to_owned(),
            object: None,
            count: 5,
        }];
        let settings = [("max_connections", "100"), ("max_pred_locks_per_transaction", "10")];
        diagnoses(&with_settings(document(vec![cell]), &settings)).len()
    };
    assert_eq!((retried(100), retried(800)), (0, 1));
}

#[test]
fn statements_that_scan_are_named() {
    let statement = |line: u32, scans: &[&str]| ObservedStatement {
        script: "transfer.sql".to_owned(),
        line,
        scans: scans.iter().map(|table| (*table).to_owned()).collect(),
        ..ObservedStatement::default()
    };
    let mut document = document(vec![serializable(scanned(100))]);
    let statements = vec![statement(3, &["account"]), statement(4, &["other"]), statement(7, &["account"])];
    let workload = "transfer.sql".to_owned();
    document.observations = vec![Observation { workload, statements, ..Observation::default() }];
    let said = only(&document).sentence;
    assert!(said.contains("is scanned as a whole by transfer.sql:3 and 7. "), "{said}");
}

/// A row of so many clients with so many attempts for each of 100 commits in a time.
fn retried(clients: u32, backoff: &str, attempts: u64, seconds: u64) -> Cell {
    let mut cell = cell(Level::RepeatableRead, 0, "concurrent update", ServerSide::default());
    (cell.clients, cell.backoff) = (clients, backoff.to_owned());
    let retries = 100 * attempts - 100;
    let ledger = Ledger {
        attempts: Attempts {
            started: 100 * attempts,
            committed: 100,
            retried: retries,
            ..Attempts::default()
        },
        transactions: Transactions { total: 100, committed: 100, ..Transactions::default() },
        conflicts: retries,
        retries,
        ..Ledger::default()
    };
    let histogram = LatencyHistogram::new();
    cell.rounds = vec![Round::from_ledger(1, &ledger, &histogram, Duration::from_secs(seconds), Vec::new())];
    cell
}

#[test]
fn retries_that_meet_again_are_diagnosed_where_that_was_measured() {
    let found = only(&document(vec![retried(2, "none", 1, 1), retried(32, "none", 6, 2)]));
    assert_eq!(found.kind, DiagnosisKind::Lockstep);
    assert_eq!(
        found.sentence,
        "Retries at repeatable read, 32 clients start at once (--backoff none) and may meet again: 6.00 attempts a \
         commit, 50.0 commits per second; with 2 clients 1.00 attempts a commit, 100 commits per second. Compare \
         with a delay: --backoff none,exponential."
    );
    let found = only(&document(vec![retried(32, "none", 6, 2), retried(32, "exponential", 2, 1)]));
    assert!(found.sentence.ends_with("Use --backoff exponential."), "{}", found.sentence);
    // More attempts alone cost nothing, nor does a delay that was measured help then.
    is_silent(vec![retried(2, "none", 1, 1), retried(32, "none", 6, 1)]);
    is_silent(vec![retried(2, "none", 1, 1), retried(32, "none", 6, 2), retried(32, "exponential", 2, 2)]);
    is_silent(vec![retried(2, "none", 6, 1), retried(32, "none", 6, 2)]);
    is_silent(vec![retried(2, "fixed:5ms", 1, 1), retried(32, "fixed:5ms", 6, 2)]);
    is_silent(vec![retried(32, "none", 6, 2)]);
}

/// A row whose clients come by a way, with so many rollbacks as both sides counted them.
fn by_way(endpoint: &str, ours: u64, servers: u64) -> Cell {
    let row = CountComparison { what: "rollbacks".to_owned(), ours, servers, ..CountComparison::default() };
    let side = ServerSide { comparison: vec![row], ..ServerSide::default() };
    let mut cell = cell(Level::RepeatableRead, 0, "concurrent update", side);
    cell.varied = [("endpoint".to_owned(), endpoint.to_owned())].into();
    cell
}

#[test]
fn retries_between_clients_and_server_are_diagnosed_by_the_counts_of_both() {
    let found = only(&document(vec![by_way("direct", 300, 301), by_way("host=a", 5, 405)]));
    assert_eq!(found.kind, DiagnosisKind::HiddenRetries);
    assert_eq!(
        found.sentence,
        "At repeatable read, endpoint host=a the server rolled back 405 transactions, but the clients saw only 5 \
         fail; by the direct way the difference is 1. Something at host=a may retry them: its retries are in the \
         latencies, and not in the conflict ratio."
    );
    is_silent(vec![by_way("direct", 300, 301), by_way("host=a", 300, 305)]);
    // Others that roll back in the same database do so while the direct way is measured, too.
    is_silent(vec![by_way("direct", 300, 700), by_way("host=a", 5, 405)]);
    is_silent(vec![by_way("host=a", 5, 405)]);
}

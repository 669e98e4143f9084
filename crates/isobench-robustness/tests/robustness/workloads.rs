//! The levels and the changes that well-known workloads need.
//!
//! What is published agrees: `SmallBank`, TPC-C and Auction at read committed (Vandevoort et al., PVLDB
//! 14(11), 2021), TPC-C under snapshot isolation (Fekete et al., ACM TODS 30(2), 2005), the promotions
//! of `SmallBank` (Alomari et al., ICDE 2008), the two places at which CockroachDB locks in TPC-C
//! (cockroach#113834), and the identity writes of lnd (lnd#10998).

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use isobench_isolation::Level;
use isobench_robustness::concrete::Transactions;
use isobench_robustness::{
    Branch, Change, Dependency, How, Operation, Program, Promoted, Promoting, Promotion, Strength, Struck,
    allocate, decide, promote, promoted,
};

use crate::templates::{by_rows, programs};

/// Changes of at most so many reads, any of them.
fn found(programs: &[Program], most: usize) -> Vec<Promoted> {
    promote(programs, &Promoting { most, struck: &Struck::new(), may: &|_| true, stopped: &|| false })
}

const SMALLBANK: &str = "
Bal
    R account(c) : name
    R saving(c) : bal
    R checking(c) : bal
DC
    R account(c) : name
    U checking(c) : bal > bal
TS
    R account(c) : name
    U saving(c) : bal > bal
Am a<>b
    R account(c=:a) : name
    R account(c=:b) : name
    U saving(c=:a) : bal > bal
    U checking(c=:a) : bal > bal
    U checking(c=:b) : bal > bal
WC
    R account(c) : name
    R saving(c) : bal
    R checking(c) : bal
    U checking(c) : bal > bal
";

/// As isobench's scripts have it: TS reads the saving first, and updates it if the balance suffices;
/// Am reads both and then writes.
const SMALLBANK_READ_FIRST: &str = "
Bal
    R account(c) : name
    R saving(c) : bal
    R checking(c) : bal
DC
    R account(c) : name
    U checking(c) : bal > bal
TS/refused
    R account(c) : name
    R saving(c) : bal
TS/done
    R account(c) : name
    R saving(c) : bal
    U saving(c) : bal > bal
Am a<>b
    R account(c=:a) : name
    R account(c=:b) : name
    R saving(c=:a) : bal
    R checking(c=:a) : bal
    U saving(c=:a) > bal
    U checking(c=:a) > bal
    U checking(c=:b) : bal > bal
WC
    R account(c) : name
    R saving(c) : bal
    R checking(c) : bal
    U checking(c) : bal > bal
";

/// One warehouse. `STOCK` is how New-Order changes the stock, and `OLDEST` how Delivery finds the
/// oldest new order.
const TPCC: &str = "
NO
    R warehouse(w=1) : tax
    R customer(d,c) : discount last credit
    U district(d) : next tax > next
    R item(i) : price
    STOCK
    I orders(d,o){c}
    I new_order(d,o)
    I order_line(d,o,n=?)
Pay/id
    U warehouse(w=1) : ytd name > ytd
    U district(d) : ytd name > ytd
    U customer(d,c) : balance paid data credit > balance paid data
Pay/name
    U warehouse(w=1) : ytd name > ytd
    U district(d) : ytd name > ytd
    R customer(d,c) : last first
    U customer(d,c) : balance paid data credit > balance paid data
OS
    R customer(d,c) : balance first last
    G orders{d,c} @ last
    R orders(d,o) : carrier @ last
    G order_line{d,o} : amount delivered
SL
    R district(d) : next
    G order_line{d} @ low
    R stock(i) : quantity @ low
Del/none
    G new_order{d}
Del/one
    OLDEST
    D new_order(d,o)
    U orders(d,o) : customer carrier > carrier
    G order_line{d,o} @ lines
    U order_line{d,o} : delivered > delivered @ lines
    G order_line{d,o} : amount
    U customer(d,c) : balance > balance
";

fn tpcc(stock: &str, oldest: &str) -> Vec<Program> {
    programs(&TPCC.replace("STOCK", stock).replace("OLDEST", oldest))
}

const ONE_UPDATE: &str = "U stock(i) : quantity ytd > quantity ytd";
const ONE_ROW: &str = "R new_order(d,o)";

const AUCTION: &str = "
FindBids
    U buyer(b) : calls > calls
    G bids @ find
    R bid(b=0) : bid @ find
    R bid(b=1) : bid @ find
PlaceBid/raise
    U buyer(b) : calls > calls
    R bid(b=BUYER) : bid
    U bid(b=BUYER) > bid
PlaceBid/no
    U buyer(b) : calls > calls
    R bid(b=BUYER) : bid
";

const TPCB: &str = "
TPCB
    U accounts(a) : balance > balance
    U tellers(t) : balance > balance
    U branches(b) : balance > balance
SelectOnly
    R accounts(a) : balance
";

const ORDERS: &str = "
order
    R products(p) : price stock
    R shops(s) : revenue
    U products(p) > stock sold
    U shops(s) > revenue
";

const WRITE_SKEW: &str = "
Toggle/first
    R doctors(s,id=0) : on_call
    R doctors(s,id=1) : on_call
    U doctors(s,id=0) : on_call > on_call
Toggle/second
    R doctors(s,id=0) : on_call
    R doctors(s,id=1) : on_call
    U doctors(s,id=1) : on_call > on_call
Toggle/none
    R doctors(s,id=0) : on_call
    R doctors(s,id=1) : on_call
";

/// The read-only anomaly (Fekete, O'Neil and O'Neil, SIGMOD Record 33(3), 2004).
const RECEIPTS: &str = "
NewReceipt
    R control(t) : batch
    I receipts{t,x}
CloseBatch
    U control(t) : batch > batch
Report
    R control(t) : batch
    G receipts{t,x}
";

const REPORTING: &str = "
Report
    R prices(i=0) : price
    R prices(i=1) : price
    R departments(d=0) : revenue
    R items(i=0) : revenue
    R items(i=1) : revenue
Repricing
    U prices(i) > price
Sale
    R prices(i) : price
    U items(i) : revenue > revenue
    U departments(d=0) : revenue > revenue
";

const BANK: &str = "
Total
    R accounts(a=0) : balance
    R accounts(a=1) : balance
    R accounts(a=2) : balance
Transfer/done a<>b
    R accounts(a) : balance
    R accounts(a=:b) : balance
    U accounts(a) > balance
    U accounts(a=:b) > balance
Transfer/refused a<>b
    R accounts(a) : balance
    R accounts(a=:b) : balance
";

const LND: &str = "
Sync/exists
    R linknode(p) : row
    I channels{p}
Sync/new
    R linknode(p) : row
    I linknode(p)
    I channels{p}
MarkClosed
    G channels{p}
    D linknode(p)
View
    R linknode(p) : row
    G channels{p}
";

/// A row that is locked as a mutex, a count, and an insert.
const MUTEX: &str = "
A
    L mutex(m)
    G jobs{m}
    I jobs{m}
B
    L mutex(m)
    G jobs{m}
    I jobs{m}
";

fn levels(programs: &[Program], levels: &[Level]) -> String {
    let one = |(program, level): (&Program, &Level)| format!("{} {}", program.name, level.short());
    programs.iter().zip(levels).map(one).collect::<Vec<_>>().join(", ")
}

/// The lowest levels.
fn lowest(programs: &[Program]) -> String {
    let allocated = allocate(programs, &Struck::new());
    assert!(allocated.lowest);
    assert_eq!(decide(programs, &allocated.levels, &Struck::new()), None);
    levels(programs, &allocated.levels)
}

/// The changes of at most `most` reads and what levels they make safe, a line each.
fn changes(programs: &[Program], most: usize) -> String {
    let mut text = String::new();
    for promoted in found(programs, most) {
        let one = |promotion: &Promotion| match promotion.change {
            Change::Lock(Strength::NoKeyUpdate) => format!("lock {}", promotion.at),
            Change::Lock(Strength::Share) => format!("share {}", promotion.at),
            Change::Write => format!("write {}", promotion.at),
            Change::Lock(other) => panic!("{other:?}"),
        };
        let all: Vec<String> = promoted.promotions.iter().map(one).collect();
        writeln!(text, "{}: {}", all.join(", "), levels(programs, &promoted.levels)).unwrap();
    }
    text
}

/// The greatest sets of programs that are safe if all run at a level.
fn safe_together(programs: &[Program], level: Level) -> Vec<String> {
    let safe = |set: u32| {
        let chosen: Vec<Program> = (0..programs.len())
            .filter(|place| set >> place & 1 == 1)
            .map(|place| programs[place].clone())
            .collect();
        decide(&chosen, &vec![level; chosen.len()], &Struck::new()).is_none()
    };
    let all: Vec<u32> = (1..1 << programs.len()).filter(|set| safe(*set)).collect();
    let greatest = all.iter().filter(|set| !all.iter().any(|other| other != *set && other & *set == **set));
    let names = |set: &u32| {
        let names = (0..programs.len()).filter(|place| set >> place & 1 == 1);
        names.map(|place| programs[place].name.as_str()).collect::<Vec<_>>().join(" ")
    };
    greatest.map(names).collect()
}

#[test]
fn a_search_for_changes_that_is_stopped_looks_at_no_further_set() {
    let programs = programs(SMALLBANK_READ_FIRST);
    let asked = AtomicUsize::new(0);
    let of_size = |size: usize, most: usize| {
        asked.store(0, Ordering::Relaxed);
        let stopped = || asked.fetch_add(1, Ordering::Relaxed) >= most;
        let struck = &Struck::new();
        promote(&programs, &Promoting { most: size, struck, may: &|_| true, stopped: &stopped })
    };
    assert_eq!((of_size(2, 0), asked.load(Ordering::Relaxed)), (Vec::new(), 1));
    // Single reads come first, and stay.
    let single = of_size(1, usize::MAX);
    let part = of_size(2, asked.load(Ordering::Relaxed));
    assert_eq!(part, single);
    assert!(!part.is_empty() && part != found(&programs, 2), "{part:?}");
}

#[test]
fn smallbank() {
    let bank = programs(SMALLBANK);
    assert_eq!(safe_together(&bank, Level::ReadCommitted), ["Bal DC", "Bal TS", "DC TS Am"]);
    assert_eq!(safe_together(&bank, Level::RepeatableRead), ["Bal DC TS Am", "Bal DC Am WC", "DC TS Am WC"]);
    assert_eq!(lowest(&bank), "Bal ser, DC rc, TS ser, Am rc, WC ser");
    assert_eq!(
        changes(&bank, 3),
        "share WC:saving(c): Bal rr, DC rc, TS rc, Am rc, WC rr\n\
         share WC:saving(c), lock WC:checking(c): Bal rr, DC rc, TS rc, Am rc, WC rc\n\
         share Bal:saving(c), share WC:saving(c): Bal rc, DC rc, TS rc, Am rc, WC rr\n\
         share Bal:saving(c), share WC:saving(c), lock WC:checking(c): \
         Bal rc, DC rc, TS rc, Am rc, WC rc\n"
    );
    // What Alomari et al. call BW works as a write only.
    let checking =
        |change| Promotion { program: 0, at: "Bal:checking(c)".into(), table: "checking".to_owned(), change };
    let with = |change| lowest(&promoted(&bank, &[checking(change)]));
    assert_eq!(with(Change::Write), "Bal rr, DC rc, TS rc, Am rc, WC rr");
    assert_eq!(with(Change::Lock(Strength::Update)), lowest(&bank));
    let bank = programs(SMALLBANK_READ_FIRST);
    assert_eq!(safe_together(&bank, Level::ReadCommitted), ["Bal DC"]);
    assert_eq!(lowest(&bank), "Bal ser, DC rc, TS ser, Am rr, WC ser");
    assert_eq!(changes(&bank, 1), "share WC:saving(c): Bal rr, DC rc, TS rr, Am rr, WC rr\n");
    let six = found(&bank, 6);
    let all = six.last().expect("changes");
    assert_eq!((all.promotions.len(), all.levels.as_slice()), (6, &[Level::ReadCommitted; 5][..]));
}

#[test]
fn tpc_c() {
    let one_update = tpcc(ONE_UPDATE, ONE_ROW);
    assert_eq!(safe_together(&one_update, Level::ReadCommitted), ["NO Pay", "Pay OS SL"]);
    assert_eq!(safe_together(&one_update, Level::RepeatableRead), ["NO Pay OS SL Del"]);
    assert_eq!(lowest(&one_update), "NO rc, Pay rc, OS rr, SL rr, Del rr");
    assert_eq!(
        changes(&one_update, 2),
        "lock Del:new_order(d,o): NO rc, Pay rc, OS rr, SL rr, Del rc\n\
         share SL:district(d): NO rc, Pay rc, OS rr, SL rc, Del rr\n\
         share SL:district(d), lock Del:new_order(d,o): NO rc, Pay rc, OS rr, SL rc, Del rc\n"
    );
    let read_first = tpcc("R stock(i) : quantity ytd\n    U stock(i) > quantity ytd", ONE_ROW);
    assert_eq!(lowest(&read_first), "NO rr, Pay rc, OS rr, SL rr, Del rr");
    // The two places at which CockroachDB locks.
    let two = "lock NO:stock(i), lock Del:new_order(d,o): NO rc, Pay rc, OS rr, SL rr, Del rc\n";
    assert!(changes(&read_first, 2).contains(two));
    // If every order that is inserted might have been the oldest one.
    let any = tpcc(ONE_UPDATE, "G new_order{d} @ oldest\n    R new_order(d,o) @ oldest");
    assert_eq!(lowest(&any), "NO ser, Pay rc, OS ser, SL rr, Del ser");
    let rows = by_rows(&one_update);
    assert_eq!(lowest(&rows), "NO ser, Pay ser, OS ser, SL ser, Del ser");
    assert_eq!(safe_together(&rows, Level::ReadCommitted), ["NO", "Pay OS SL"]);
}

/// A SELECT of several rows reads them at one instant, so `FindBids` has nothing after its reads.
#[test]
fn auction() {
    let one_parameter = programs(&AUCTION.replace("BUYER", ":b"));
    assert_eq!(lowest(&one_parameter), "FindBids rc, PlaceBid rc");
    let two = programs(&AUCTION.replace("BUYER", ":x"));
    assert_eq!(safe_together(&two, Level::ReadCommitted), ["FindBids"]);
    assert_eq!(lowest(&two), "FindBids rc, PlaceBid rr");
    assert_eq!(changes(&two, 3), "lock PlaceBid:bid(b=:x): FindBids rc, PlaceBid rc\n");
}

#[test]
fn others() {
    for (text, expected, changed) in [
        (TPCB, "TPCB rc, SelectOnly rc", ""),
        (ORDERS, "order rr", "lock order:products(p), lock order:shops(s): order rc\n"),
        (WRITE_SKEW, "Toggle ser", "lock Toggle:doctors(s,id=0): Toggle rc\n"),
        (
            RECEIPTS,
            "NewReceipt ser, CloseBatch ser, Report ser",
            "share NewReceipt:control(t): NewReceipt rc, CloseBatch rc, Report rr\n\
             share NewReceipt:control(t), share Report:control(t): \
             NewReceipt rc, CloseBatch rc, Report rc\n",
        ),
        (
            REPORTING,
            "Report ser, Repricing ser, Sale ser",
            "share Sale:prices(i): Report rr, Repricing rc, Sale rc\n\
             lock Report:prices(i=0), lock Report:prices(i=1), lock Sale:prices(i): \
             Report rc, Repricing rc, Sale rc\n",
        ),
        (
            BANK,
            "Total rr, Transfer rr",
            "lock Transfer:accounts(a), lock Transfer:accounts(a=:b): Total rr, Transfer rc\n\
             share Total:accounts(a=0), share Total:accounts(a=1): Total rc, Transfer rr\n",
        ),
        // lnd writes the node back.
        (
            LND,
            "Sync ser, MarkClosed ser, View ser",
            "write Sync:linknode(p): Sync rc, MarkClosed rr, View rr\n\
             write Sync:linknode(p), write View:linknode(p): Sync rc, MarkClosed rr, View rc\n",
        ),
        (MUTEX, "A rc, B rc", ""),
    ] {
        let programs = programs(text);
        assert_eq!(lowest(&programs), expected, "{text}");
        assert_eq!(changes(&programs, 3), changed, "{text}");
    }
}

/// With two accounts it seems that one lock suffices, since whoever writes the second account of a
/// transfer would also write the first one. With a third account that isn't so.
#[test]
fn a_lock_of_one_account_is_not_enough() {
    let bank = programs(BANK);
    let promotion = Promotion {
        program: 1,
        at: "Transfer:accounts(a)".into(),
        table: "accounts".to_owned(),
        change: Change::Lock(Strength::Update),
    };
    let locked = promoted(&bank, &[promotion]);
    let levels = [Level::RepeatableRead, Level::ReadCommitted];
    assert!(decide(&locked, &levels, &Struck::new()).is_some());
    let shown = |values: usize| {
        let transactions = Transactions::of(&locked, values, 1);
        let levels = transactions.programs().into_iter().map(|program| Some(levels[program]));
        transactions.split(&levels.collect::<Vec<_>>()).is_some()
    };
    assert_eq!([2, 3].map(shown), [false, true]);
}

/// Who waits for a lock and then reads has to see what the one before it did.
#[test]
fn a_mutex_needs_read_committed() {
    let mutex = programs(MUTEX);
    let harmful = |programs: &[Program]| -> Vec<(usize, Level)> {
        allocate(programs, &Struck::new()).harmful.iter().map(|one| (one.program, one.level)).collect()
    };
    let (rr, ser) = (Level::RepeatableRead, Level::Serializable);
    assert_eq!(harmful(&mutex), [(0, rr), (0, ser), (1, rr), (1, ser)]);
    assert_eq!(decide(&mutex, &[ser, ser], &Struck::new()), None);
    let doctors = programs(WRITE_SKEW);
    let locked = found(&doctors, 1).remove(0).promotions;
    assert_eq!(harmful(&promoted(&doctors, &locked)), [(0, rr)]);
}

#[test]
fn an_objection_is_said_step_by_step() {
    let bank = programs(SMALLBANK);
    let all = vec![Level::RepeatableRead; bank.len()];
    let objection = decide(&bank, &all, &Struck::new()).expect("not safe");
    assert_eq!(
        objection.steps(&bank).to_string(),
        "T1 WC runs up to its read of saving at WC:saving(c)\n\
         T2 TS runs: its update of saving at TS/:1 changes what T1 read\n\
         T3 Bal runs and depends on T2\n\
         T1 depends on T3 by its update of checking at WC/:3, because of the read of checking at Bal:checking(c)\n\
         T1's :c, T2's :c, T3's :c are the same\n"
    );
}

/// A cycle begins and ends with the transaction that is split, and says which statements meet.
#[test]
fn an_objection_is_a_cycle_of_dependencies() {
    let bank = programs(SMALLBANK);
    let all = vec![Level::RepeatableRead; bank.len()];
    let objection = decide(&bank, &all, &Struck::new()).expect("not safe");
    let said = |one: &Dependency| {
        let [first, then] = &one.at;
        let how = one.how.map_or("?", How::short);
        format!("{} {first} -{how}-> {} {then}", bank[one.first].name, bank[one.then].name)
    };
    assert_eq!(
        objection.cycle(&bank).iter().map(said).collect::<Vec<_>>(),
        ["WC WC:saving(c) -rw-> TS TS/:1", "TS  -?-> Bal ", "Bal Bal:checking(c) -rw-> WC WC/:3"]
    );
}

/// What can't be shown is left out, and only that: another way to the same end still counts.
#[test]
fn what_is_struck_is_left_out() {
    let take = Branch::new(
        "",
        vec![
            Operation::read("stock", [("id", ":i")], ["count"]).in_statement("take:1"),
            Operation::update("stock", [("id", ":i")], [], ["count"]).in_statement("take:2"),
        ],
    );
    let programs = [Program::new("take", vec![take])];
    let rc = [Level::ReadCommitted];
    let objection = decide(&programs, &rc, &Struck::new()).expect("a lost update");
    let strike = objection.strike(&programs);
    let names = [&strike.read, &strike.overwritten_by, &strike.by, &strike.back].map(ToString::to_string);
    assert_eq!(
        (names.each_ref().map(String::as_str), strike.snapshot),
        (["take:1", "take:2", "take:1", "take:2"], false)
    );
    // The updates depend on each other as well.
    let mut struck = Struck::from([strike]);
    let next = decide(&programs, &rc, &struck).expect("the order of the updates").strike(&programs);
    assert_eq!((next.by.to_string().as_str(), next.back.to_string().as_str()), ("take:2", "take:2"));
    struck.insert(next);
    assert_eq!(decide(&programs, &rc, &struck), None);
    assert_eq!(allocate(&programs, &struck).levels, rc);
}

/// A search whose rows stay the same rows can lock them: what is computed from them is then as new as they
/// are. Where rows come and go, it can't.
#[test]
fn searches_lock_the_rows_that_they_find() {
    let leave = |come_and_go: bool| {
        let mut operations = vec![
            Operation::search("doctors", [("shift", ":s")], ["shift", "on_call"]).in_statement("leave:1"),
            Operation::update("doctors", [("id", ":d")], [], ["on_call"]).in_statement("leave:2"),
        ];
        if come_and_go {
            operations.push(Operation::insert("doctors", [("id", ":n")]).in_statement("leave:3"));
        }
        [Program::new("leave", vec![Branch::new("", operations)])]
    };
    let programs = leave(false);
    assert_eq!(allocate(&programs, &Struck::new()).levels, [Level::Serializable]);
    let first = found(&programs, 1).remove(0);
    assert_eq!(
        (first.levels, first.promotions[0].at.to_string().as_str()),
        (vec![Level::ReadCommitted], "leave:1")
    );
    assert!(found(&leave(true), 1).is_empty());
}

/// Places are counted, and one is taken: whoever locks the course first is alone with its bookings, though
/// nothing changes the course.
#[test]
fn a_row_that_nothing_changes_may_be_locked_in_place_of_others() {
    let book = Program::new(
        "book",
        vec![Branch::new(
            "",
            vec![
                Operation::read("course", [("id", ":c")], ["capacity"]).in_statement("book.sql:2"),
                Operation::search("booking", [("course", ":c")], ["course"]).in_statement("book.sql:3"),
                Operation::insert("booking", []).knowing([("course", ":c")]).in_statement("book.sql:4"),
            ],
        )],
    );
    let programs = [book];
    assert_eq!(allocate(&programs, &Struck::new()).levels, [Level::Serializable]);
    let found = found(&programs, 1);
    let locked = found.iter().find(|one| one.levels == [Level::ReadCommitted]).expect("a change");
    let [promotion] = locked.promotions.as_slice() else { panic!("{locked:?}") };
    assert_eq!(
        (promotion.at.to_string().as_str(), promotion.change),
        ("book.sql:2", Change::Lock(Strength::NoKeyUpdate)),
        "two that share the lock don't keep each other out"
    );
}

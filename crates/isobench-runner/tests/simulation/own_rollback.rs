//! Transactions that their own script rolls back.

use isobench_runner::{Protocol, Rules, TransactionEnd};
use isobench_stats::{Attempts, Transactions};

use crate::harness::{Case, ms};

/// Commands: 0 BEGIN, 1 UPDATE, 2 ROLLBACK.
const ROLLS_BACK: &str = "BEGIN;\nUPDATE t SET v = 1;\nROLLBACK;\n";

#[test]
fn what_a_script_rolls_back_is_neither_committed_nor_failed() {
    for protocol in Protocol::ALL {
        let ran = Case::new(ROLLS_BACK).protocol(protocol).transactions(3).run();
        let (attempts, transactions) = (ran.ledger.attempts, ran.ledger.transactions);
        assert_eq!(attempts, Attempts { started: 3, rolled_back: 3, ..Attempts::default() });
        assert_eq!(transactions, Transactions { total: 3, rolled_back: 3, ..Transactions::default() });
        assert!(ran.ledger.time.useful >= ms(3) && ran.ledger.time.wasted == 0, "{:?}", ran.ledger.time);
        assert!(ran.outcome.latency().is_empty());
        assert_eq!(ran.count(TransactionEnd::RolledBack), 3);
    }
}

#[test]
fn a_script_that_also_commits_has_committed() {
    for script in [format!("{ROLLS_BACK}BEGIN;\nUPDATE t SET v = 2;\nCOMMIT;\n"), {
        format!("BEGIN;\nUPDATE t SET v = 2;\nCOMMIT;\n{ROLLS_BACK}")
    }] {
        let ran = Case::new(&script).transactions(3).run();
        assert_eq!((ran.ledger.transactions.committed, ran.ledger.transactions.rolled_back), (3, 0));
    }
}

#[test]
fn each_attempt_is_decided_by_itself() {
    let script = "\\set n random(0, 1)\nBEGIN;\nUPDATE t SET v = 1;\n\\if :n = 0\nROLLBACK;\n\\else\nCOMMIT;\n\
        \\endif\n";
    let ran = Case::new(script).transactions(50).run();
    let transactions = ran.ledger.transactions;
    assert!(transactions.committed > 0 && transactions.rolled_back > 0, "{transactions:?}");
    assert_eq!(transactions.committed + transactions.rolled_back, 50);
}

/// pgbench: "number of transactions actually processed".
#[test]
fn the_drop_in_counts_them_as_processed() {
    let ran = Case::new(ROLLS_BACK).rules(Rules::Pgbench).transactions(3).run();
    assert_eq!((ran.ledger.transactions.committed, ran.ledger.transactions.rolled_back), (3, 0));
    assert!(!ran.outcome.latency().is_empty());
}

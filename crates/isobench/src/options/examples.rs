//! Three examples for each command, below its help.

use clap::Command;

/// An example: what it does, and the words after `isobench`.
type Example = (&'static str, &'static str);

/// The examples, by command; a command below another one has both names.
const EXAMPLES: [(&str, [Example; 3]); 18] = [
    (
        "compare",
        [
            ("which level to use, on an embedded PostgreSQL", "compare"),
            (
                "your own transactions, on tables made for it",
                "compare -f transfer.sql --setup tables.sql --levels rc,ser",
            ),
            ("until ratios are known to 2 %, on a server", "compare -h db.example.org -d test --resolve 2%"),
        ],
    ),
    (
        "advise",
        [
            ("which of SmallBank's transactions needs which level", "advise -w smallbank"),
            (
                "your own transactions, with the levels in a file",
                "advise -f order.sql@5 -f report.sql --setup shop.sql --write advice.toml",
            ),
            (
                "what an application was recorded to do, on a copy of its database",
                "advise isobench.capture --copy-from dbname=shop",
            ),
        ],
    ),
    (
        "audit",
        [
            ("what each level of an embedded PostgreSQL gives", "audit"),
            ("longer, at one level of a server", "audit -h db.example.org -d test --levels ser --time 60"),
            ("lost updates and write skew in a shop", "audit -w orders --clients 16"),
        ],
    ),
    (
        "probe",
        [
            ("the matrix of levels and anomalies", "probe"),
            ("with every step", "probe --verbose --levels rr,ser"),
            ("a server of your own", "probe -h db.example.org -d test"),
        ],
    ),
    (
        "scripts",
        [
            (
                "of what was recorded, on a copy of the database",
                "scripts shop.capture -o shop --copy-from dbname=shop",
            ),
            ("on tables of your own", "scripts shop.capture -o shop --setup shop.sql"),
            (
                "all transactions of a request in one script",
                "scripts shop.capture -o shop --setup shop.sql --scope request",
            ),
        ],
    ),
    (
        "check",
        [
            (
                "what a recorded history proves",
                "check isobench-history/serializable-8-clients-round-1.history",
            ),
            ("whether it keeps a level", "check run.history --promised serializable"),
            ("a history of Elle", "check history.edn"),
        ],
    ),
    (
        "report",
        [
            ("the newest result again", "report latest --details"),
            (
                "what the last change did: status 3 if it is worse",
                "report latest~1 latest --fail-on-regression 5%",
            ),
            ("what serializable costs, by commit", "report --metric serializable.ratio --by tag:commit"),
        ],
    ),
    (
        "run",
        [
            ("as pgbench, with retries accounted for", "run -c 8 -T 10 --max-tries 0 --isolation ser test"),
            ("a script at a rate", "run -f transfer.sql -R 500 -L 50 -T 60 test"),
            ("with a verdict", "run -w registers --isolation rr -c 8 -T 10"),
        ],
    ),
    (
        "race",
        [
            (
                "one request twice at the same time, on a copy of the database",
                "race --copy-from dbname=shop --serve './manage.py runserver 8000' --ready 8000 -- 'curl -X POST \
                 localhost:8000/order -d item=1'",
            ),
            (
                "two tests, on a database that may be changed",
                "race -d shop_test --on-this-database shop_test -- pytest test_order.py --and pytest test_cancel.py",
            ),
            ("which requests to try, from a recording", "race isobench.capture --copy-from dbname=shop"),
        ],
    ),
    (
        "record",
        [
            ("the test suite of an application", "record -h db.example.org -d shop -- pytest"),
            ("a service that is started elsewhere", "record --listen 127.0.0.1:6432 -d service=shop"),
            ("what was recorded", "record --show isobench.capture"),
        ],
    ),
    (
        "init",
        [
            ("pgbench's tables, ten branches", "init -s 10 test"),
            ("those of a checked workload", "init --workload orders test"),
            ("without vacuum, in partitions", "init -n --partitions 4 test"),
        ],
    ),
    (
        "workloads",
        [
            ("all of them", "workloads"),
            ("what one promises, its tables and scripts", "workloads orders"),
            ("its files, to be changed", "workloads orders --save my-orders"),
        ],
    ),
    (
        "plans",
        [
            ("the published experiments", "plans"),
            ("the plan of one", "plans sibench"),
            ("to change it", "plans durability > my.toml"),
        ],
    ),
    (
        "peers",
        [
            ("rank 0 of two machines", "peers --peers 10.0.0.1:7001,10.0.0.2:7001 --rank 0"),
            ("the other one", "peers --peers 10.0.0.1:7001,10.0.0.2:7001 --rank 1"),
            ("ranks from a launcher, in the job of srun or mpiexec", "peers --peers-file machines.txt"),
        ],
    ),
    (
        "server",
        [
            ("an embedded PostgreSQL, for psql and others", "server"),
            ("another version", "server --server-version 16"),
            ("with a setting", "server --server-setting shared_buffers=1GB"),
        ],
    ),
    (
        "help",
        [
            ("what there is", "help"),
            ("of a command", "help compare"),
            ("a page of the manual", "help anomalies"),
        ],
    ),
    (
        "completions",
        [
            ("bash, in ~/.bashrc: source <(…)", "completions bash"),
            ("zsh, in ~/.zshrc: source <(…)", "completions zsh"),
            ("fish: … | source", "completions fish"),
        ],
    ),
    (
        "man",
        [
            ("to read it: … | man -l -", "man"),
            ("pages of all commands", "man ~/.local/share/man/man1"),
            ("for a package", "man debian/man"),
        ],
    ),
];

/// The program with the examples below the help of each command.
pub fn with_examples(program: Command) -> Command {
    EXAMPLES.iter().fold(program, |program, (names, examples)| add(program, names, &text(examples)))
}

/// Adds the examples to the command with these names below this one.
fn add(command: Command, names: &str, examples: &str) -> Command {
    if let Some((name, rest)) = names.split_once(' ') {
        return command.mut_subcommand(name, |command| add(command, rest, examples));
    }
    command.mut_subcommand(names, |command| {
        let before = command.get_after_help().map(ToString::to_string);
        let all = before
            .filter(|before| !before.is_empty())
            .map_or_else(|| examples.to_owned(), |before| format!("{examples}\n\n{before}"));
        // Without anything else, clap takes the text of the short help for the long one.
        let long = command.get_after_long_help().is_some();
        let command = command.after_help(all);
        if long { command.after_long_help(examples.to_owned()) } else { command }
    })
}

fn text(examples: &[Example]) -> String {
    let lines = examples.iter().map(|(what, words)| format!("  # {what}\n  isobench {words}"));
    format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

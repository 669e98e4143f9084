//! The files of all workloads, without a server: they parse, including their lines `--@`, and the
//! declarations are complete.

use std::collections::BTreeSet;

use isobench_database::Database;
use isobench_script::{Annotated, CommandKind, Symbols, parse};
use isobench_workloads::{all, find, pgbench_strategies, pgbench_strategy};

use crate::support::every;

/// The pieces that belong to a product rather than a variant.
const OF_PRODUCTS: [&str; 1] = ["fillfactor"];

#[test]
fn every_script_parses_with_its_observations() {
    for chosen in every() {
        for script in chosen.scripts() {
            let parsed = parse(&script.name, &script.text, &mut Symbols::new()).unwrap();
            let lines = script.text.lines().filter(|line| line.starts_with("--@ ")).count();
            assert_eq!(parsed.annotations().count(), lines, "{}: {}", chosen.name(), script.name);
            assert!(!script.text.contains("--+"), "{}: {}", chosen.name(), script.name);
            assert_eq!(lines > 0, chosen.is_checked(), "{}: {}", chosen.name(), script.name);
        }
    }
}

#[test]
fn observations_tell_of_tables_and_assertions_that_exist() {
    for chosen in every() {
        let tables: BTreeSet<&str> = chosen.tables().into_iter().collect();
        let asserted: BTreeSet<&str> = chosen.workload().assertions.iter().map(|row| row.name).collect();
        let mut found = BTreeSet::new();
        for script in chosen.scripts() {
            let parsed = parse(&script.name, &script.text, &mut Symbols::new()).unwrap();
            for annotation in parsed.annotations() {
                match &annotation.what {
                    Annotated::Holds { name, .. } => found.insert(name.clone()),
                    other => {
                        // Swallowed errors and retries inside the server have no table.
                        let known = other.table().is_none_or(|table| tables.contains(table));
                        assert!(known, "{}", annotation.text);
                        continue;
                    }
                };
            }
        }
        assert!(found.iter().map(String::as_str).eq(asserted), "{}: {found:?}", chosen.name());
    }
}

/// The only workload without a history.
#[test]
fn every_workload_but_one_is_observed() {
    let unobserved: Vec<String> =
        every().iter().filter(|chosen| !chosen.is_checked()).map(isobench_workloads::Chosen::name).collect();
    assert_eq!(unobserved, ["scan"]);
}

/// A script is one block, or a single statement. Statements outside the block neither read nor
/// write a table. Which of several commands ends the block is decided while it runs.
#[test]
fn every_script_is_one_transaction() {
    use isobench_script::Statement::{Begin, Commit, Rollback};
    for chosen in every() {
        for script in chosen.scripts() {
            let parsed = parse(&script.name, &script.text, &mut Symbols::new()).unwrap();
            let (mut blocks, mut statements, mut inside) = (0, 0, false);
            for sql in parsed.sql() {
                let locks = sql.parameterized.contains("pg_advisory");
                for statement in &sql.statements {
                    match statement {
                        Begin => (inside, blocks) = (true, blocks + 1),
                        Commit | Rollback => inside = false,
                        _ => statements += usize::from(!inside && !locks),
                    }
                    assert!(inside || !locks || sql.annotations.is_empty(), "{}", script.name);
                }
            }
            assert!(!inside && blocks + statements == 1, "{}: {}", chosen.name(), script.name);
        }
    }
}

/// A variant with its own scripts has no lines in the workload's; one with other defaults may have
/// some. Lines that don't belong to a variant belong to a product, or to a parameter above 0.
#[test]
fn every_variant_has_lines_and_every_line_a_variant() {
    for workload in all() {
        let is_parameter = |name: &str| workload.parameters.iter().any(|parameter| parameter.name == name);
        let files = workload.scripts.iter().map(|script| script.text).chain([workload.setup]);
        let marked = files.flat_map(str::lines).filter_map(|line| line.strip_prefix("--+"));
        let used: BTreeSet<&str> = marked
            .filter_map(|line| line.split(' ').next())
            .filter(|name| !OF_PRODUCTS.contains(name) && !is_parameter(name))
            .collect();
        let by_lines = workload.variants.iter().filter(|variant| {
            variant.scripts.is_empty() && (variant.defaults.is_empty() || used.contains(variant.name))
        });
        let variants: BTreeSet<&str> = by_lines.map(|variant| variant.name).collect();
        assert_eq!(used, variants, "{}", workload.name);
    }
}

/// Every table that is updated has `fillfactor`, which keeps the number of rows per page low.
#[test]
fn tables_are_made_in_the_words_of_the_product() {
    let tables = |version: &str| {
        let database = Database::from_version_text(version);
        find("registers:keys=7").unwrap().setup(&database).unwrap().join(";\n")
    };
    let postgresql = tables("PostgreSQL 15.18 on x86_64, compiled by gcc");
    assert!(
        postgresql.contains("fillfactor") && postgresql.contains("generate_series(1, 7)"),
        "{postgresql}"
    );
    assert!(!tables("CockroachDB CCL v23.2.1 (x)").contains("fillfactor"));
}

/// The clauses in parentheses after WITH.
fn clauses(sql: &str) -> Vec<String> {
    let flat = sql.lines().filter(|line| !line.starts_with(['-', '\\'])).collect::<Vec<_>>().join(" ");
    let mut clauses = Vec::new();
    for (at, _) in flat.match_indices(" AS (") {
        let mut depth = 0_usize;
        let clause = flat[at + " AS (".len()..].chars().take_while(|letter| {
            match letter {
                '(' => depth += 1,
                ')' if depth == 0 => return false,
                ')' => depth -= 1,
                _ => {}
            }
            true
        });
        clauses.push(clause.collect::<String>().trim().to_owned());
    }
    clauses
}

/// `CockroachDB` v20.1.5: 0A000 `WITH clause "u" does not return any columns`, HINT
/// `missing RETURNING clause?`.
#[test]
fn every_clause_that_writes_returns_something() {
    let builtins = ["tpcb-like", "simple-update"].into_iter().flat_map(|builtin| {
        let strategies = pgbench_strategies(builtin).into_iter();
        strategies.map(move |name| pgbench_strategy(builtin, name).unwrap().script.to_owned())
    });
    let checked = every().into_iter().flat_map(|chosen| chosen.scripts()).map(|script| script.text);
    let mut writing = 0;
    for script in builtins.chain(checked) {
        for clause in clauses(&script) {
            if clause.starts_with("UPDATE") || clause.starts_with("INSERT") || clause.starts_with("DELETE") {
                assert!(clause.contains(" RETURNING "), "{clause}");
                writing += 1;
            }
        }
    }
    assert_eq!(writing, 4 + 2 + 2, "tpcb-like, simple-update, orders");
}

/// `CockroachDB` v20.1.5: 42804 `value type int doesn't match type string of column "b"`.
#[test]
fn a_number_becomes_text_by_a_cast() {
    for script in find("list-append").unwrap().scripts() {
        let inserts: Vec<&str> = script.text.lines().filter(|line| line.starts_with("INSERT")).collect();
        assert_eq!(inserts.len(), 8);
        assert!(inserts.iter().all(|line| line.contains(", CAST(:element AS text))")), "{inserts:?}");
    }
}

#[test]
fn one_workload_has_every_strategy() {
    let orders = all().iter().find(|workload| workload.name == "orders").unwrap();
    let variants: Vec<&str> = orders.variants.iter().map(|variant| variant.name).collect();
    let names: Vec<&str> = isobench_workloads::strategies().iter().map(|strategy| strategy.name).collect();
    assert_eq!(variants, names[1..], "retry is the workload without variant");
}

#[test]
fn a_switch_chooses_one_of_two_scripts() {
    let names =
        |spec| find(spec).unwrap().scripts().into_iter().map(|script| script.name).collect::<Vec<_>>();
    assert_eq!(names("scan"), ["scan/by-index"]);
    assert_eq!(names("scan:index=0"), ["scan/sequential"]);
}

/// A variant's defaults are the values of parameters that exist, as are the ones that a user gives.
#[test]
fn a_variant_can_have_other_defaults() {
    for workload in all() {
        for variant in workload.variants {
            for (name, value) in variant.defaults {
                let chosen = find(&format!("{}+{}:{name}={value}", workload.name, variant.name)).unwrap();
                assert_eq!(chosen.name(), format!("{}+{}", workload.name, variant.name));
                let plain = find(&format!("{}+{}", workload.name, variant.name)).unwrap();
                assert_eq!(plain.value(name), Some(*value));
            }
        }
    }
    let chosen = find("ycsb+b:updates=7,moves=5").unwrap();
    assert_eq!(chosen.name(), "ycsb+b:updates=7,moves=5");
    let varied = [("reads".to_owned(), "0".to_owned())].into();
    assert_eq!(chosen.varied(None, &varied).unwrap().name(), "ycsb+b:reads=0,updates=7,moves=5");
    let never = find("ycsb:reads=0").unwrap().varied(Some("c"), &[].into()).unwrap_err().to_string();
    assert!(never.contains("at least one of the weights reads, updates"), "{never}");
}

/// The operations that have no weight aren't in the script.
#[test]
fn what_is_never_done_is_not_in_the_script() {
    let text = |spec: &str| find(spec).unwrap().scripts().remove(0).text;
    assert!(!text("ycsb+c").contains("UPDATE") && !text("ycsb+c").contains("INSERT"));
    assert_eq!(text("ycsb+c").matches("SELECT * FROM usertable").count(), 4);
    assert_eq!(text("ycsb+c:operations=9").matches("SELECT * FROM usertable").count(), 9);
    assert_eq!(text("ycsb+for-update").matches("FOR UPDATE").count(), 4);
    assert!(!text("ycsb+for-update:modifications=0").contains("FOR UPDATE"));
}

#[test]
fn names_of_workloads_and_parameters_can_be_written_and_chosen() {
    for workload in all() {
        let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        assert!(is_plain(workload.name), "{}", workload.name);
        assert!(workload.variants.iter().all(|variant| is_plain(variant.name)), "{}", workload.name);
        for parameter in workload.parameters {
            // The name must also be valid as a variable.
            let variable = parameter.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            assert!(variable, "{}", parameter.name);
            let spec = format!("{}:{}={}", workload.name, parameter.name, parameter.default);
            assert_eq!(find(&spec).unwrap().name(), workload.name, "a default isn't named");
        }
    }
    let chosen = find("bank+for-update:totals=0,accounts=10").unwrap();
    assert_eq!(chosen.name(), "bank+for-update:accounts=10,totals=0");
    assert_eq!(chosen.scripts().len(), 1, "a script without weight isn't drawn");
    let again = find(&chosen.name()).unwrap();
    assert_eq!(again.variables(), chosen.variables());
}

#[test]
fn a_wrong_name_gets_a_list_of_the_right_ones() {
    for (spec, message) in [
        ("register", "\"register\" (did you mean \"registers\"?); there are registers, list-append, bank,"),
        ("", "there is no workload \"\"; there are registers,"),
        ("registers+fast", "workload registers has no variant \"fast\"; there are for-update"),
        ("sibench+fast", "workload sibench has no variant \"fast\"; it has none"),
        ("bank:customers=1", "no parameter \"customers\"; there are accounts, balance, transfers, totals"),
        ("bank:accounts", "\"accounts\": a parameter is NAME=VALUE; workload bank has accounts,"),
        ("bank:accounts=5,accounts=6", "parameter accounts is given twice"),
        ("bank:accounts=1", "accounts=1 isn't a whole number from 2 to 1000000 (accounts)"),
        ("bank:accounts=many", "accounts=many isn't a whole number"),
        ("bank:accounts=9223372036854775808", "isn't a whole number"),
        ("registers:zipfian=nan", "zipfian=nan isn't a number from 0 to 1000"),
        ("registers:keys=2", "operations=4 must not be greater than keys=2"),
        (
            "ycsb+c:reads=0",
            "at least one of the weights reads, updates, inserts, scans, modifications must be",
        ),
        ("bank:transfers=0,totals=0", "at least one of the weights transfers, totals must be above 0"),
    ] {
        let error = find(spec).unwrap_err().to_string();
        assert!(error.contains(message), "{spec}: {error}");
    }
}

/// The files of `isobench workloads NAME --save` need nothing but a number for the attempt.
#[test]
fn saved_files_say_their_parameters() {
    let database = Database::from_version_text("PostgreSQL 15.18, compiled by gcc");
    for chosen in every() {
        let files = chosen.files(&database);
        assert_eq!(files.len(), 1 + chosen.scripts().len());
        for (name, text) in &files[1..] {
            let mut symbols = Symbols::new();
            let script = parse(name, text, &mut symbols).unwrap();
            let set = |variable: &str| {
                script.commands.iter().any(|command| match &command.kind {
                    CommandKind::Set { slot, .. } => symbols.name(*slot) == variable,
                    _ => false,
                })
            };
            for parameter in chosen.workload().parameters {
                assert_eq!(text.contains(&format!(":{}", parameter.name)), set(parameter.name), "{name}");
            }
        }
        let (_, tables) = &files[0];
        for parameter in chosen.workload().parameters {
            assert!(!tables.contains(&format!(":{}", parameter.name)), "{tables}");
        }
    }
}

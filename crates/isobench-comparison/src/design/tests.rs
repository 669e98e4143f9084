use std::fs;
use std::path::Path;

use clap::{Args as _, Command, FromArgMatches as _};
use isobench_database::InitOptions;
use isobench_plan::{Size, read};
use isobench_script::Weighted;

use crate::failure::{Failure, Outcome};
use crate::tables::Tables;

use super::phases::Choice;
use super::resolve::Resolved;
use super::*;

/// The options of a command line.
pub(super) fn options(line: &str) -> Plan {
    let words = std::iter::once("test").chain(line.split_whitespace());
    let matches = Plan::augment_args(Command::new("test")).try_get_matches_from(words).unwrap();
    Plan::from_arg_matches(&matches).unwrap()
}

fn resolved(line: &str) -> Outcome<Resolved> {
    Resolved::of(&options(line), None, Plan::default(), &InitOptions::default())
}

fn resolve(line: &str) -> Outcome<Design> {
    resolved(line).map(|resolved| resolved.design)
}

/// A design whose choices come from a plan's file, not from the user.
fn of_plan(plan: Plan) -> Resolved {
    Resolved::of(&Plan::default(), Some(plan), Plan::default(), &InitOptions::default()).unwrap()
}

/// A design from options, the plan's file and the defaults of a command.
fn of_file(line: &str, path: &Path, defaults: Plan) -> Outcome<Design> {
    let file = read(path, Size::Quick).map_err(Failure::setup)?;
    Resolved::of(&options(line), Some(file), defaults, &InitOptions::default())
        .map(|resolved| resolved.design)
}

fn message<T: std::fmt::Debug>(outcome: Outcome<T>) -> String {
    outcome.unwrap_err().to_string()
}

#[test]
fn defaults_are_three_levels_and_eight_clients() {
    let design = resolve("").unwrap();
    assert_eq!(design.plan.levels(), [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable]);
    assert_eq!(design.cells().len(), 3);
    assert_eq!((design.plan.clients(), design.plan.scale(), design.plan.rounds()), (&[8][..], 1, 8));
    assert_eq!(design.max_tries(), None);
    // Under a minute, with room for resetting the tables.
    let measured = (design.time().unwrap() + design.warmup) * design.plan.rounds() * 3;
    assert!(measured <= Duration::from_secs(48), "{measured:?}");
}

#[test]
fn factors_multiply_and_levels_vary_fastest() {
    let design =
        resolve("--levels rc,ser --clients 1,4 --backoff none,exponential:base=1ms,max=9ms").unwrap();
    let cells = design.cells();
    assert_eq!(cells.len(), 8);
    assert_eq!(cells[0].level, Level::ReadCommitted);
    assert_eq!(cells[1].level, Level::Serializable);
    assert_eq!(cells[1].clients, 1);
    assert_eq!(cells[4].clients, 4);
}

#[test]
fn strategies_and_parameters_are_factors() {
    let design = resolve(
        "-w tpcb-like --levels rc,ser --strategies retry,single-statement,for-update --vary foreign-keys=off,on \
         --vary script-scale=1",
    )
    .unwrap();
    let cells = design.cells();
    assert_eq!(cells.len(), 12);
    let found = |cell: &CellPlan| {
        let work = &design.works[cell.work];
        (cell.level.short(), work.strategy.clone().unwrap(), design.varied(cell)["foreign-keys"].clone())
    };
    assert_eq!(found(&cells[0]), ("rc", "retry".to_owned(), "off".to_owned()));
    assert_eq!(found(&cells[3]), ("ser", "single-statement".to_owned(), "off".to_owned()));
    assert_eq!(found(&cells[11]), ("ser", "for-update".to_owned(), "on".to_owned()));
    let strategies = design.document_workload().strategies;
    let trips: Vec<(u32, u32)> =
        strategies.iter().map(|one| (one.round_trips_least, one.round_trips_most)).collect();
    assert_eq!(trips[..2], [(7, 7), (1, 1)]);
    assert_eq!(design.document_plan(&[]).vary()[0].values, ["off", "on"]);
    // Each cell has its own file names.
    let mut names: Vec<String> = cells.iter().map(|cell| cell.file_name(&design, 1)).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 12);
}

#[test]
fn a_checked_workload_has_its_variants_as_strategies_and_parameters_of_its_own() {
    let design = resolve(
        "--workload write-skew:shifts=5 --strategies retry,for-update,materialized-conflict --vary doctors=2,3",
    )
    .unwrap();
    let names: Vec<String> = design.works.iter().map(|work| work.sources.name()).collect();
    assert_eq!(names[1], "write-skew+for-update:shifts=5");
    assert_eq!(names[5], "write-skew+materialized-conflict:shifts=5,doctors=3");
    assert_eq!(design.workloads[0].name(), "write-skew:shifts=5");
    let wrong = message(resolve("--workload write-skew+for-update --strategies retry"));
    assert!(wrong.contains("name it among the strategies"), "{wrong}");
    let wrong = message(resolve("--workload registers --vary doors=1"));
    assert!(wrong.contains("doors") && wrong.contains("keys"), "{wrong}");
}

#[test]
fn what_a_server_cannot_do_is_refused_or_left_out() {
    let strategies = "--strategies retry,savepoint";
    let postgresql = Database::from_version_text("PostgreSQL 18.3 on x, compiled by gcc");
    let message = resolved(strategies).unwrap().keep_supported(&postgresql).unwrap_err().to_string();
    assert!(message.starts_with("--strategies: ") && message.contains("savepoint"), "{message}");
    let mut planned = of_plan(options(strategies));
    let left_out = planned.keep_supported(&postgresql).unwrap();
    let planned = planned.design;
    assert_eq!((left_out.len(), planned.works.len(), planned.cells().len()), (1, 1, 3));
    assert_eq!(planned.document_plan(&[]).strategies(), ["retry"]);
}

#[test]
fn versions_of_the_server_give_way_to_a_server_that_is_chosen() {
    let vary = "--vary server-version=14";
    let (named, programs) = (Choice { named: true, ..Choice::default() }, Choice::default());
    assert_eq!(resolved(vary).unwrap().on(programs).unwrap().1, [""; 0]);
    assert!(resolved(vary).unwrap().on(named).is_err());
    let planned = of_plan(options(vary));
    let before = planned.design();
    assert_eq!(before.varied(&before.cells()[0])["server-version"], "14");
    let (planned, notes) = planned.on(named).unwrap();
    let planned = planned.design();
    assert_eq!(notes.len(), 1);
    assert!(planned.server_factors.versions.is_empty() && planned.varied(&planned.cells()[0]).is_empty());
    assert!(planned.document_plan(&[]).vary().is_empty());
}

#[test]
fn settings_of_the_embedded_server_give_way_to_a_server_that_is_named() {
    let settings = Some(vec!["fsync=off".parse().unwrap()]);
    let file = Plan { server_settings: settings.clone(), ..Plan::default() };
    let on = |choice: Choice| of_plan(file.clone()).on(choice).unwrap();
    let (planned, notes) = on(Choice { programs: true, ..Choice::default() });
    assert_eq!((planned.design().plan.server_settings.clone(), notes), (settings, Vec::new()));
    let (planned, notes) = on(Choice { named: true, ..Choice::default() });
    assert!(notes[0].contains("fsync=off"), "{notes:?}");
    assert_eq!(planned.design().plan.server_settings, None);
}

#[test]
fn every_round_has_every_cell_in_an_order_of_its_own() {
    let design = resolve("--clients 1,2,3").unwrap();
    let mut orders: Vec<Vec<usize>> = (1..=5).map(|round| design.order(round)).collect();
    for order in &orders {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..9).collect::<Vec<_>>());
    }
    assert_eq!(orders[0], design.order(1), "the seed decides");
    orders.dedup();
    assert!(orders.len() > 1);
}

#[test]
fn a_wrong_value_names_its_option() {
    for (line, option) in [
        ("--levels rc,rc", "--levels"),
        ("--clients 0", "--clients"),
        ("--clients 2,2", "--clients"),
        ("--time NaN", "--time"),
        ("--time 1 --transactions 1", "--time"),
        ("--transactions 0", "--transactions"),
        ("--warmup=-1", "--warmup"),
        ("--max-warmup 0.1", "--max-warmup"),
        ("-w tpcb-like --scale 0", "--scale"),
        ("--scale 2", "--scale is for pgbench's tables"),
        ("--jobs 0", "--jobs"),
        ("--rounds 0", "--rounds"),
        ("--backoff sometimes", "--backoff"),
        ("--backoff none,none", "--backoff"),
        ("--protocol fast", "--protocol"),
        ("--rate 0", "--rate"),
        ("--rate 5,5", "--rate"),
        ("--time-limit=-1", "--time-limit"),
        ("--sweep", "--sweep"),
        ("--sweep --latency-limit 5 --transactions 5", "--sweep"),
        ("--sweep --latency-limit 5 --rate 7", "--sweep"),
        ("--sweep --latency-limit 5 --think-time 1", "--sweep"),
        ("--strategies retry,retry", "--strategies"),
        ("--strategies hope", "--strategies"),
        ("--vary color=red", "--vary"),
        ("-w tpcb-like --strategies hope", "--strategies"),
        ("-w tpcb-like --vary color=red", "--vary"),
        ("-w tpcb-like --vary foreign-keys=maybe", "--vary"),
        ("-w tpcb-like --vary scale=0", "--vary"),
        ("-w tpcb-like --vary scale=2 --scale 1", "--vary"),
    ] {
        let message = message(resolve(line));
        assert!(message.starts_with(option), "{line}: {message}");
    }
    let empty = Plan { levels: Some(Vec::new()), ..Plan::default() };
    let outcome = Resolved::of(&empty, None, Plan::default(), &InitOptions::default());
    assert!(message(outcome).starts_with("--levels: the list is empty"));
}

#[test]
fn names_of_figures_are_known_before_anything_is_started() {
    let required = |expression: &str| {
        let plan = Plan { require: Some(vec![expression.parse().unwrap()]), ..Plan::default() };
        Resolved::of(&plan, None, Plan::default(), &InitOptions::default())
            .map(|resolved| resolved.design.plan.required()[0].to_string())
    };
    assert_eq!(required("ser.p99 <= 50").unwrap(), "serializable.latency_p99_ms <= 50");
    let message = message(required("tsp >= 5"));
    assert!(message.starts_with("--require \"tsp >= 5\": unknown metric \"tsp\""), "{message}");
}

#[test]
fn a_plan_file_has_the_options_names_and_options_win() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    fs::write(&path, "levels = [\"rc\", \"ser\"]\nclients = [4]\nmax-tries = 3\nscale = 2\n").unwrap();
    let design = of_file("-w tpcb-like --scale 7", &path, Plan::default()).unwrap();
    assert_eq!((design.plan.clients(), design.plan.scale()), (&[4][..], 7));
    assert_eq!(design.max_tries(), NonZeroU32::new(3));
    // The file overrides the defaults of a command, such as those of audit.
    let defaults = Plan { clients: Some(vec![16]), rounds: Some(1), ..Plan::default() };
    let design = of_file("-w tpcb-like --scale 7", &path, defaults).unwrap();
    assert_eq!((design.plan.clients(), design.plan.rounds()), (&[4][..], 1));
    fs::write(&path, "level = [\"rc\"]\n").unwrap();
    let unknown = message(of_file("", &path, Plan::default()));
    assert!(unknown.contains("unknown key level") && unknown.contains("keys are levels, "), "{unknown}");
    fs::write(&path, "levels = [\"rc\", \"snapshot\"]\n").unwrap();
    let unknown = message(of_file("", &path, Plan::default()));
    assert!(unknown.contains("line 1") && unknown.contains("\"snapshot\""), "{unknown}");
}

#[test]
fn files_in_a_plan_are_relative_to_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.sql"), "SELECT 1;\n").unwrap();
    let path = folder.path().join("plan.toml");
    fs::write(&path, "file = [\"mine.sql@3\"]\nbuiltin = [\"select-only\"]\n").unwrap();
    let design = of_file("", &path, Plan::default()).unwrap();
    let [mix] = &design.workloads[..] else { panic!("{}", design.workloads.len()) };
    let name = mix.name();
    assert!(name.starts_with("select-only@1+") && name.ends_with("/mine.sql@3"), "{name}");
    fs::write(&path, "workload = [\"mine.sql\", \"select-only\"]\n").unwrap();
    let design = of_file("", &path, Plan::default()).unwrap();
    assert!(design.workloads[0].name().ends_with("/mine.sql"), "{}", design.workloads[0].name());
    // A mix on the command line takes the place of the file's workloads.
    let design = of_file("-b simple-update@2 -b select-only", &path, Plan::default()).unwrap();
    assert_eq!(design.workloads[0].name(), "simple-update@2+select-only@1");
    assert_eq!((design.plan.workload(), design.plan.builtins().len()), (&[][..], 2));
}

#[test]
fn workloads_are_a_factor_with_tables_and_strategies_of_their_own() {
    let design =
        resolve("-w write-skew -w tpcb-like --levels rc,ser --strategies retry,single-statement,promotion");
    let wrong = message(design);
    assert!(wrong.contains("promotion"), "no workload has it: {wrong}");
    let line = "-w write-skew -w tpcb-like --levels rc,ser --strategies retry,for-update,single-statement";
    let design = resolve(line).unwrap();
    let found: Vec<(String, String)> = design
        .cells()
        .iter()
        .map(|cell| {
            let strategy = design.works[cell.work].strategy.clone().unwrap();
            (design.workload_among_several(cell).unwrap(), strategy)
        })
        .collect();
    let expected = [
        ("write-skew", "retry"),
        ("write-skew", "for-update"),
        ("tpcb-like", "retry"),
        ("tpcb-like", "for-update"),
        ("tpcb-like", "single-statement"),
    ];
    let expected: Vec<(String, String)> = expected
        .iter()
        .flat_map(|(name, strategy)| [(*name, *strategy); 2])
        .map(|(a, b)| (a.into(), b.into()))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(
        design.warnings(),
        ["workload write-skew has no strategy single-statement, so it is measured without"]
    );
    let mut names: Vec<String> = design.cells().iter().map(|cell| cell.file_name(&design, 1)).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 10);
    let first = design.cells()[0].name(&design);
    assert!(first.starts_with("read committed, ") && first.ends_with(", write-skew, retry"), "{first}");
    // The document has the scripts of both, also by strategy.
    let workload = design.document_workload();
    let of = |scripts: &[report::PlannedScript]| {
        let mut names: Vec<String> = scripts.iter().map(|script| script.workload.clone()).collect();
        names.dedup();
        names
    };
    assert_eq!(of(&workload.scripts), ["write-skew", "tpcb-like"]);
    assert_eq!(of(&workload.strategies[0].scripts), ["write-skew", "tpcb-like"]);
    assert_eq!(of(&workload.strategies[2].scripts), ["tpcb-like"]);
}

#[test]
fn a_setup_makes_the_tables_of_own_scripts_only() {
    let folder = tempfile::tempdir().unwrap();
    let (mine, setup) = (folder.path().join("mine.sql"), folder.path().join("tables.sql"));
    fs::write(&mine, "SELECT 1;\n").unwrap();
    fs::write(&setup, "CREATE TABLE t (v int);\n").unwrap();
    let line = format!("-w {} -w tpcb-like -w bank --setup {}", mine.display(), setup.display());
    let design = resolve(&line).unwrap();
    let of = |index: usize| &design.works[index].tables;
    assert!(matches!(of(0), Tables::Own(_)), "{:?}", of(0));
    assert!(matches!(of(1), Tables::Pgbench { .. }), "{:?}", of(1));
    assert!(matches!(of(2), Tables::Checked(_)), "{:?}", of(2));
    let alone = resolve(&format!("-w tpcb-like --setup {}", setup.display())).unwrap();
    assert!(matches!(alone.works[0].tables, Tables::Own(_)));
    let wrong = message(resolve(&format!("-w bank -w registers --setup {}", setup.display())));
    assert!(wrong.starts_with("--setup: workload bank"), "{wrong}");
}

#[test]
fn a_weight_belongs_to_a_mix_and_slips_are_recognized() {
    for (line, parts) in [
        ("-w tpcb-like@2", &["@2", "-b tpcb-like@2"][..]),
        ("-w mine.sql@3", &["-f mine.sql@3"]),
        ("-w registres", &["did you mean \"registers\"?"]),
        ("-w tpcb-lik", &["did you mean \"tpcb-like\"?"]),
        ("-w write-skew+for-updat", &["did you mean \"for-update\"?"]),
        ("-w registers:kyes=3", &["did you mean \"keys\"?"]),
        ("-b simple", &[]),
        ("-b simpel-update", &["did you mean \"simple-update\"?"]),
        ("-w bank --strategies for-updaet", &["for-updaet"]),
        ("--strategies for-updaet", &["did you mean \"for-update\"?"]),
        ("-w tpcb-like --vary fillfactr=50", &["did you mean \"fillfactor\"?"]),
        ("-w bank -b tpcb-like", &["--workload", "--builtin"]),
        ("-w bank -w bank", &["--workload", "twice"]),
    ] {
        let outcome = resolve(line);
        if parts.is_empty() {
            assert!(outcome.is_ok(), "{line}");
            continue;
        }
        let message = message(outcome);
        assert!(parts.iter().all(|part| message.contains(part)), "{line}: {message}");
    }
}

#[test]
fn a_script_that_is_not_utf_8_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latin.sql");
    fs::write(&path, b"SELECT 1;\n-- gr\xfc\xdfe\n").unwrap();
    let message = message(resolve(&format!("-f {}", path.display())));
    assert!(
        message.contains("latin.sql:2: the script isn't UTF-8") && message.contains("iconv"),
        "{message}"
    );
}

#[test]
fn errors_that_are_retried_and_passed_over_are_in_the_plan() {
    let design = resolve("--retry-sqlstate 23505,23p01 --continue-on-error").unwrap();
    let spec = design.spec(&design.cells()[0]);
    assert_eq!(spec.on_error, OnError::Continue);
    let plan = design.document_plan(&[]);
    let codes: Vec<String> = plan.retried().iter().map(ToString::to_string).collect();
    assert_eq!((codes, plan.continues()), (vec!["23505".to_owned(), "23P01".to_owned()], true));
    assert_eq!(resolve("").unwrap().spec(&design.cells()[0]).on_error, OnError::Abort);
    assert!(message(resolve("--retry-sqlstate 23505,23505")).starts_with("--retry-sqlstate: "));
}

#[test]
fn cells_are_called_by_what_varies() {
    let design = resolve("--levels ser --clients 1,8 --rate 100.25,100.5 --background none,vacuum").unwrap();
    let cells = design.cells();
    let names =
        |name: fn(&CellPlan, &Design) -> String| [0, 7].map(|place: usize| name(&cells[place], &design));
    assert_eq!(
        names(CellPlan::name),
        [
            "serializable, 1 client, 100 per s wanted, background none",
            "serializable, 8 clients, 100 per s wanted, background vacuum"
        ]
    );
    assert_eq!(
        names(|cell, design| cell.file_name(design, 2)),
        [
            "serializable-1-client-rate-100-25-background-none-round-2",
            "serializable-8-clients-rate-100-5-background-vacuum-round-2"
        ]
    );
    let plain = resolve("--levels ser --clients 8").unwrap();
    let cell = plain.cells()[0];
    assert_eq!(cell.file_name(&plain, 1), "serializable-8-clients-round-1");
    // A search measures cells that the plan doesn't have.
    let searched = CellPlan { rate: Some(7.0), ..cell };
    assert_eq!(searched.name(&plain), "serializable, 8 clients, 7.00 per s wanted");
}

#[test]
fn a_threshold_names_a_cell_of_the_plan() {
    let why = |line: &str| {
        let line = format!("-w tpcb-like --levels ser --clients 1,8 --vary scale=1,10 --require {line}>=1");
        resolve(&line).unwrap().unmatched_requirement()
    };
    for named in [
        "ser.tps",
        "ser+clients=8.tps",
        "ser+scale=10.tps",
        "ser+backoff=none.tps",
        "ser+setting:fsync=on.tps",
    ] {
        assert_eq!(why(named), None, "{named}");
    }
    for (unknown, said) in [
        ("rr.tps", "the level repeatable read isn't measured"),
        ("ser+clients=2.tps", "the plan has no such cell"),
        ("ser+scale=2.tps", "the plan has no such cell"),
        ("ser+scales=10.tps", "the plan has no such cell"),
    ] {
        let why = why(unknown).unwrap_or_else(|| panic!("{unknown} is measured"));
        assert!(why.contains(said) && why.contains("--require"), "{why}");
    }
}

#[test]
fn levels_of_scripts_are_rows_after_the_levels() {
    let design =
        resolve("--levels rc,ser --allocation sale=ser,*=rc -w reporting -c 2,4 --calibrate").unwrap();
    let cells = design.cells();
    let names: Vec<String> =
        cells.iter().take(4).map(|cell| design.assignment(cell).level().to_owned()).collect();
    assert_eq!(names, ["read committed", "read committed", "serializable", "sale: ser; else rc"]);
    assert_eq!(cells.len(), 8);
    assert_eq!((cells[3].level, cells[3].allocation), (Level::ReadCommitted, Some(0)));
    let mut mix = design.works[0].sources.mix().clone();
    design.ask_for_levels(&cells[3], None, &mut mix).unwrap();
    let begin_of = |one: &Weighted| Some(one.script.sql().next()?.as_written().replace('\n', ""));
    let begins: Vec<String> = mix.scripts().iter().filter_map(begin_of).collect();
    let begin = |level: &str| format!("BEGIN ISOLATION LEVEL {level};");
    assert_eq!(begins, [begin("SERIALIZABLE"), begin("READ COMMITTED"), begin("READ COMMITTED")]);
    // Where no script has a level of its own, nothing is changed.
    let plain = resolve("--levels rc -w reporting").unwrap();
    let mut same = plain.works[0].sources.mix().clone();
    plain.ask_for_levels(&plain.cells()[0], None, &mut same).unwrap();
    assert_eq!(same.scripts()[0].script.sql().next().unwrap().as_written(), "BEGIN;");
}

#[test]
fn snapshots_are_asked_for_where_rows_are_observed_on_one_server() {
    assert!(resolve("--observe snapshot --levels rr,ser -w tpcb-like").is_ok());
    for option in ["--rate 100", "--think-time 5"] {
        let error = resolve(&format!("--observe snapshot {option} -w tpcb-like")).unwrap_err().to_string();
        let name = option.split(' ').next().unwrap();
        assert_eq!(error, format!("--observe: snapshot excludes {name}; give one of them"));
        assert!(resolve(&format!("--observe wal {option} -w tpcb-like")).is_ok());
    }
}

#[test]
fn interleavings_come_after_a_first_round_that_is_short() {
    for (line, first) in [
        ("", false),
        ("--levels rc,ser -c 1,8,64 --time 9.5", false),
        ("--levels rc,ser -c 1,8,64 --time 9.6", true),
        ("--rounds 1 --time 30 --levels rc", false),
        ("--transactions 10 --try 5", true),
        ("--stop-on-broken", true),
    ] {
        assert_eq!(resolve(line).unwrap().tries_first(), first, "{line}");
    }
}

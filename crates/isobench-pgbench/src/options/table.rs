//! A table of the options of all versions: names, mode and effect.
//!
//! Its order is that in which pgbench lists the possibilities of an ambiguous abbreviation.

use std::ops::RangeInclusive;

use super::collected::{Collected, EarlyEnd};
use super::getopt::Spelling;
use super::numbers;
use crate::scripts;
use crate::version::Version;

/// The effect of an option.
#[derive(Debug, Clone, Copy)]
pub(super) enum OptionEffect {
    /// Sets a flag, without an argument.
    Flag(fn(&mut Collected) -> &mut bool),
    /// Takes an integer; with its name in messages, minimum and maximum.
    Integer(&'static str, i32, i32, fn(&mut Collected) -> &mut Option<i32>),
    /// Takes a text.
    Text(fn(&mut Collected) -> &mut Option<String>),
    /// Calls a function, without an argument.
    Act(fn(&mut Collected) -> Result<(), EarlyEnd>),
    /// Calls a function with its argument.
    Read(fn(&mut Collected, &str) -> Result<(), EarlyEnd>),
}

/// The mode in which an option can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionMode {
    /// With `-i` only.
    Initialize,
    /// Without `-i` only.
    Benchmark,
    /// Both.
    Any,
}

/// An option.
#[derive(Debug)]
pub(super) struct OptionRow {
    long: &'static str,
    short: Option<char>,
    mode: OptionMode,
    effect: OptionEffect,
    /// The versions that have it.
    versions: RangeInclusive<Version>,
}

impl OptionRow {
    const fn only(self, versions: RangeInclusive<Version>) -> OptionRow {
        OptionRow { versions, ..self }
    }

    /// Applies the option with its argument.
    ///
    /// # Errors
    /// The argument is wrong, or the option ends the reading.
    pub fn apply(&self, given: &mut Collected, argument: &str) -> Result<(), EarlyEnd> {
        given.benchmark_option |= self.mode == Benchmark;
        given.initialize_option |= self.mode == Initialize;
        match self.effect {
            Flag(place) => *place(given) = true,
            Integer(label, least, most, place) => {
                *place(given) = Some(numbers::integer(argument, label, &(least..=most))?);
            }
            Text(place) => *place(given) = Some(argument.to_owned()),
            Act(act) => act(given)?,
            Read(read) => read(given, argument)?,
        }
        Ok(())
    }

    fn spelling(&self) -> Spelling {
        let argument = !matches!(self.effect, Flag(_) | Act(_));
        Spelling { long: self.long, short: self.short, argument }
    }
}

/// The options of a version.
pub(super) fn options(version: Version) -> Vec<(Spelling, &'static OptionRow)> {
    let rows = ROWS.iter().filter(|row| row.versions.contains(&version));
    rows.map(|row| (row.spelling(), row)).collect()
}

const ALL: RangeInclusive<Version> = V15..=V19;
const MAX: i32 = i32::MAX;

const fn row(long: &'static str, short: char, mode: OptionMode, effect: OptionEffect) -> OptionRow {
    OptionRow { long, short: Some(short), mode, effect, versions: ALL }
}

const fn long(long: &'static str, mode: OptionMode, effect: OptionEffect) -> OptionRow {
    OptionRow { long, short: None, mode, effect, versions: ALL }
}

use OptionEffect::{Act, Flag, Integer, Read, Text};
use OptionMode::{Any, Benchmark, Initialize};
use Version::{V15, V16, V17, V19};

static ROWS: [OptionRow; 46] = [
    row("builtin", 'b', Benchmark, Read(Collected::builtin)),
    row("client", 'c', Benchmark, Read(Collected::clients)),
    row("connect", 'C', Benchmark, Flag(|c| &mut c.connect)),
    // The short form means the database since version 17, debugging in earlier ones.
    row("dbname", 'd', Any, Text(|c| &mut c.connection.dbname)).only(V17..=V19),
    row("debug", 'd', Any, Flag(|c| &mut c.debug)).only(V15..=V16),
    row("define", 'D', Benchmark, Read(Collected::define)),
    row("file", 'f', Benchmark, Read(Collected::file)),
    row("fillfactor", 'F', Initialize, Integer("-F/--fillfactor", 10, 100, |c| &mut c.fillfactor)),
    row("host", 'h', Any, Text(|c| &mut c.connection.host)),
    row("initialize", 'i', Any, Flag(|c| &mut c.initialize)),
    row("init-steps", 'I', Initialize, Read(Collected::steps)),
    row("jobs", 'j', Benchmark, Integer("-j/--jobs", 1, MAX, |c| &mut c.threads)),
    row("log", 'l', Benchmark, Flag(|c| &mut c.log)),
    row("latency-limit", 'L', Benchmark, Read(Collected::latency_limit)),
    row("no-vacuum", 'n', Any, Flag(|c| &mut c.no_vacuum)),
    row("port", 'p', Any, Text(|c| &mut c.connection.port)),
    row("progress", 'P', Benchmark, Integer("-P/--progress", 1, MAX, |c| &mut c.progress)),
    row("protocol", 'M', Benchmark, Read(Collected::protocol)),
    row("quiet", 'q', Initialize, Flag(|c| &mut c.quiet)),
    row("report-per-command", 'r', Benchmark, Flag(|c| &mut c.per_command)),
    row("rate", 'R', Benchmark, Read(Collected::rate)),
    row("scale", 's', Any, Integer("-s/--scale", 1, MAX, |c| &mut c.scale)),
    row("select-only", 'S', Benchmark, Act(|c| c.builtin_named("select-only"))),
    row("skip-some-updates", 'N', Benchmark, Act(|c| c.builtin_named("simple-update"))),
    row("time", 'T', Benchmark, Integer("-T/--time", 1, MAX, |c| &mut c.duration)),
    row("transactions", 't', Benchmark, Integer("-t/--transactions", 1, MAX, |c| &mut c.transactions)),
    row("username", 'U', Any, Text(|c| &mut c.connection.user)),
    row("vacuum-all", 'v', Benchmark, Flag(|c| &mut c.vacuum_all)),
    long("unlogged-tables", Initialize, Flag(|c| &mut c.unlogged)),
    long("tablespace", Initialize, Text(|c| &mut c.tablespace)),
    long("index-tablespace", Initialize, Text(|c| &mut c.index_tablespace)),
    long("sampling-rate", Benchmark, Read(Collected::sampling_rate)),
    long(
        "aggregate-interval",
        Benchmark,
        Integer("--aggregate-interval", 1, MAX, |c| &mut c.aggregate_interval),
    ),
    long("progress-timestamp", Benchmark, Flag(|c| &mut c.progress_timestamp)),
    long("log-prefix", Benchmark, Text(|c| &mut c.log_prefix)),
    long("foreign-keys", Initialize, Flag(|c| &mut c.foreign_keys)),
    long("random-seed", Benchmark, Read(Collected::random_seed)),
    long("show-script", Any, Read(|_, name| Err(EarlyEnd::Tell(scripts::show(name)?)))),
    long("partitions", Initialize, Integer("--partitions", 0, MAX, |c| &mut c.partitions)),
    long("partition-method", Initialize, Read(Collected::partition_method)),
    long("failures-detailed", Benchmark, Flag(|c| &mut c.failures_detailed)),
    long("max-tries", Benchmark, Read(Collected::max_tries)),
    long("verbose-errors", Benchmark, Flag(|c| &mut c.verbose_errors)),
    long("exit-on-abort", Benchmark, Flag(|c| &mut c.exit_on_abort)).only(V17..=V19),
    long("debug", Any, Flag(|c| &mut c.debug)).only(V17..=V19),
    long("continue-on-error", Benchmark, Flag(|c| &mut c.continue_on_error)).only(V19..=V19),
];

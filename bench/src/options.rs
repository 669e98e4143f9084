//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use isobench_isolation::model::Order;

use crate::checking;
use crate::contender::Address;
use crate::raw_loop::RawPlan;
use crate::raw_loop::requests::{Mode, Workload};

/// Runs isobench, pgbench and a raw loop side by side, A B C A B C, against a null server and
/// against PostgreSQL, and prints client CPU per transaction and tps as ratios.
#[derive(Debug, Parser)]
#[command(name = "isobench-bench", args_conflicts_with_subcommands = true)]
pub struct Options {
    /// A tool to run instead of the comparison.
    #[command(subcommand)]
    pub tool: Option<Tool>,
    /// Options of the comparison.
    #[command(flatten)]
    pub compare: Compare,
}

/// Separate tools.
#[derive(Debug, Subcommand)]
pub enum Tool {
    /// Runs the null server until Ctrl-C.
    NullServer(NullOptions),
    /// Runs the raw loop once and prints pgbench's summary lines.
    RawLoop(RawOptions),
    /// Compares the cost of connections: memory for each, and the time to open them.
    Connections(ExtraOptions),
    /// Compares the client's cost with each event loop with pgbench's and the raw loops'.
    Client(ClientOptions),
    /// Compares the cost of -l, -r, -P and retries.
    Features(ExtraOptions),
    /// Makes a history, checks it, and measures the time.
    Check(CheckOptions),
    /// Compares runs that are recorded for the isolation checker with runs that aren't.
    Recording(RecordingOptions),
    /// Compares a server that is observed (waits and locks, ten times a second) with one that
    /// isn't.
    Observer(ObserverOptions),
    /// Compares statements that show rows, and are recorded, with statements as written.
    Rows(RowsOptions),
    /// Measures the time and the size of a report on a large result, and the time of saving it.
    Report(ReportOptions),
    /// Compares `-i` of isobench, as pgbench, with pgbench's.
    Init(InitOptions),
    /// Measures the time from the start of `isobench compare` to its first measured transaction.
    Startup(StartupOptions),
    /// Measures how precisely comparisons know their ratios.
    Precision(PrecisionOptions),
}

/// Options of the comparison.
#[derive(Debug, Args)]
pub struct Compare {
    /// Only the cases with these parts, such as unix/select-only/prepared/8 or postgres/64
    /// (repeatable).
    #[arg(long = "case", value_name = "PARTS")]
    pub cases: Vec<String>,
    /// 8 and 64 clients, 3 rounds of 1 s, scale 8.
    #[arg(long)]
    pub quick: bool,
    /// Rounds; each runs every contender once [default: 5].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Seconds of each run [default: 2; 512 clients and more: 5].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time: Option<u64>,
    /// Scale of PostgreSQL's tables [default: 64].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub scale: Option<u32>,
    /// The programs.
    #[command(flatten)]
    pub programs: ProgramOptions,
    /// Leave the raw loop out.
    #[arg(long)]
    pub no_raw: bool,
    /// Folder with initdb and postgres for the embedded server [default: the newest installed].
    #[arg(long, value_name = "FOLDER")]
    pub server_bin: Option<PathBuf>,
    /// A running PostgreSQL to use instead of an embedded one: host or socket folder. pgbench's
    /// tables are dropped and recreated there.
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Its port.
    #[arg(long, default_value_t = 5432, requires = "host")]
    pub port: u16,
    /// Its user.
    #[arg(long, default_value = "postgres", requires = "host")]
    pub user: String,
    /// Its database.
    #[arg(long, default_value = "postgres", requires = "host")]
    pub dbname: String,
}

impl Compare {
    /// Rounds.
    pub fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 3 } else { 5 })
    }

    /// The duration of a run with this many clients; many clients need longer, because pgbench's
    /// clock runs while they connect.
    pub fn time(&self, clients: u16) -> Duration {
        let default = match (self.quick, clients) {
            (_, 512..) => 5,
            (true, _) => 1,
            (false, _) => 2,
        };
        Duration::from_secs(self.time.unwrap_or(default))
    }

    /// Scale of the tables.
    pub fn scale(&self) -> u32 {
        self.scale.unwrap_or(if self.quick { 8 } else { 64 })
    }

    /// The running server to use, if given.
    pub fn address(&self) -> Option<Address> {
        let host = self.host.clone()?;
        let (user, database) = (self.user.clone(), self.dbname.clone());
        Some(Address { host, port: self.port, user, database, scale: self.scale() })
    }
}

/// The programs that are compared.
#[derive(Debug, Args)]
pub struct ProgramOptions {
    /// isobench to measure [default: the one beside this program]. The first comparison gives a file
    /// called pgbench pgbench's command line.
    #[arg(long, value_name = "FILE")]
    pub isobench: Option<PathBuf>,
    /// pgbench to measure against [default: the installed one].
    #[arg(long, value_name = "FILE")]
    pub pgbench: Option<PathBuf>,
}

/// Options of the further comparisons.
#[derive(Debug, Args)]
pub struct ExtraOptions {
    /// Connections.
    #[arg(short, long, default_value_t = 10_000, value_parser = clap::value_parser!(u16).range(2..))]
    pub connections: u16,
    /// Rounds; each runs everything once.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Seconds of each run.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time: u64,
    /// The programs.
    #[command(flatten)]
    pub programs: ProgramOptions,
}

/// Options of the comparison of event loops.
#[derive(Debug, Args)]
pub struct ClientOptions {
    /// Rounds; each runs everything once, in a different order.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Seconds of each run; with 512 clients twice as many.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1800))]
    pub time: u64,
    /// On PostgreSQL instead of the null server: tps, without raw loops.
    #[arg(long)]
    pub postgres: bool,
    /// Scale of PostgreSQL's tables.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub scale: u32,
    /// The programs.
    #[command(flatten)]
    pub programs: ProgramOptions,
    /// Folder with initdb and postgres for the embedded server [default: the newest installed].
    #[arg(long, value_name = "FOLDER")]
    pub server_bin: Option<PathBuf>,
}

/// Options of the comparison with recordings.
#[derive(Debug, Args)]
pub struct RecordingOptions {
    /// Rounds; each runs everything once.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Seconds of each run.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time: u64,
    /// The runner's example `record` [default: the one in the folder `examples` beside this
    /// program].
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Folder with initdb and postgres for the embedded server [default: the newest installed].
    #[arg(long, value_name = "FOLDER")]
    pub server_bin: Option<PathBuf>,
    /// Leave PostgreSQL out.
    #[arg(long)]
    pub null_only: bool,
}

/// Options of the comparison with the observer.
#[derive(Debug, Args)]
pub struct ObserverOptions {
    /// Pairs of stretches, one observed, one not.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// Seconds of each stretch.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time: u64,
    /// Milliseconds between two samples of the sessions; locks are sampled a tenth as often. A
    /// shorter interval makes the cost of sampling more visible.
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub every: u64,
    /// Only the case with this number (1 to 3).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=3))]
    pub case: Option<u8>,
    /// Folder with initdb and postgres for the embedded server [default: the newest installed].
    #[arg(long, value_name = "FOLDER")]
    pub server_bin: Option<PathBuf>,
}

/// Options of the comparison with statements that show rows.
#[derive(Debug, Args)]
pub struct RowsOptions {
    /// Compare recordings that a thread follows for a broken promise with others instead.
    #[arg(long)]
    pub following: bool,
    /// Pairs of slices, one with rows shown, one as written.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub pairs: u32,
    /// Milliseconds of each slice.
    #[arg(long, value_name = "MS", default_value_t = 250, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub time: u64,
    /// Only the case with this number (1 to 4; 1 to 3 with --following).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=4))]
    pub case: Option<u8>,
    /// Folder with initdb and postgres for the embedded server [default: the newest installed].
    #[arg(long, value_name = "FOLDER")]
    pub server_bin: Option<PathBuf>,
}

/// Options of the reports' benchmark.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// Cells of the result.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub cells: u16,
    /// Rounds of each cell.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rounds: u32,
}

/// Options of the comparison of `-i`.
#[derive(Debug, Args)]
pub struct InitOptions {
    /// Scale of the tables.
    #[arg(short, long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub scale: u32,
    /// Pairs of runs, one of isobench, one of pgbench.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub pairs: u32,
    /// The programs.
    #[command(flatten)]
    pub programs: ProgramOptions,
    /// Folder with initdb and postgres for the embedded server [default: the newest installed].
    #[arg(long, value_name = "FOLDER")]
    pub server_bin: Option<PathBuf>,
}

/// Options of the measurement of the start.
#[derive(Debug, Args)]
pub struct StartupOptions {
    /// Runs; one more before them makes the server's template.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// isobench to measure [default: the one beside this program].
    #[arg(long, value_name = "FILE")]
    pub isobench: Option<PathBuf>,
    /// Folder with initdb and postgres for the embedded server [default: the newest installed].
    #[arg(long, value_name = "FOLDER")]
    pub server_bin: Option<PathBuf>,
}

/// Options of the measurement of precision.
#[derive(Debug, Args)]
pub struct PrecisionOptions {
    /// Default comparisons, a minute each.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub runs: u32,
    /// Comparisons of a level with itself, half a minute each.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub same: u32,
    /// Seconds of the comparison with long cells in one piece; 0: none.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub long: u64,
    /// isobench to measure [default: the one beside this program].
    #[arg(long, value_name = "FILE")]
    pub isobench: Option<PathBuf>,
    /// Further options of `isobench compare`, after --.
    #[arg(last = true, value_name = "OPTION")]
    pub further: Vec<String>,
}

/// Options of the checker's benchmark.
#[derive(Debug, Args)]
pub struct CheckOptions {
    /// Transactions, of two increments each.
    #[arg(short, long, value_name = "N", default_value_t = 1_000_000)]
    pub transactions: u64,
    /// Reads of each transaction.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=50))]
    pub reads: u32,
    /// Write the recording to this file, and check nothing.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["millions", "way", "order"])]
    pub write: Option<PathBuf>,
    /// Clients.
    #[arg(short, long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub clients: u32,
    /// Rows.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..))]
    pub rows: u32,
    /// The guarantee that the history satisfies.
    #[arg(long, value_enum, default_value_t = checking::Level::Serializable)]
    pub level: checking::Level,
    /// The levels that the history states, by which its transactions are judged.
    #[arg(long, value_enum, default_value_t = checking::Stated::None)]
    pub stated: checking::Stated,
    /// The dependencies to check: data, session or real-time.
    #[arg(long, value_parser = order, default_value = "real-time")]
    pub order: Order,
    /// The way of checking.
    #[arg(long, value_enum, default_value_t = checking::Way::Memory)]
    pub way: checking::Way,
    /// Print a table of all ways, for histories of this many million transactions, each checked by a
    /// process of its own.
    #[arg(long, value_name = "N,...", value_delimiter = ',', conflicts_with_all = ["transactions", "way"])]
    pub millions: Vec<u64>,
    /// The size up to which histories are checked from memory in the table, in millions.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "millions")]
    pub most_in_memory: u64,
}

fn order(text: &str) -> Result<Order, String> {
    let named = Order::ALL.into_iter().find(|order| order.name().replace(' ', "-") == text);
    named.ok_or_else(|| "use data, session or real-time".to_owned())
}

/// Options of the null server.
#[derive(Debug, Args)]
pub struct NullOptions {
    /// Folder of the Unix socket.
    #[arg(long, default_value = "/tmp", value_name = "FOLDER")]
    pub dir: PathBuf,
    /// Port of both sockets; 0 selects a free one.
    #[arg(short, long, default_value_t = 0)]
    pub port: u16,
}

/// Options of the raw loop, with pgbench's letters.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct RawOptions {
    /// Host, or folder of the Unix socket.
    #[arg(short = 'h', long, default_value = "/tmp")]
    host: String,
    /// Port.
    #[arg(short, long, default_value_t = 5432)]
    port: u16,
    /// User.
    #[arg(short = 'U', long = "username", default_value = "postgres")]
    user: String,
    /// Database.
    #[arg(short, long, default_value = "postgres")]
    dbname: String,
    /// Clients.
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,
    /// Seconds.
    #[arg(short = 'T', long, default_value_t = 1)]
    time: u64,
    /// Scale of the tables.
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    scale: u32,
    /// The query mode.
    #[arg(short = 'M', long, value_enum, default_value_t = Mode::Simple)]
    protocol: Mode,
    /// Runs the select-only script instead of the TPC-B-like one.
    #[arg(short = 'S', long)]
    select_only: bool,
    /// Waits with a ring instead of epoll.
    #[arg(long)]
    ring: bool,
    /// Print help.
    #[arg(long, action = clap::ArgAction::HelpLong)]
    help: Option<bool>,
}

impl From<RawOptions> for RawPlan {
    fn from(options: RawOptions) -> RawPlan {
        RawPlan {
            host: options.host,
            port: options.port,
            user: options.user,
            database: options.dbname,
            clients: options.clients as usize,
            time: Duration::from_secs(options.time),
            scale: options.scale,
            mode: options.protocol,
            workload: if options.select_only { Workload::SelectOnly } else { Workload::TpcbLike },
            ring: options.ring,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn comparing_needs_no_subcommand() {
        let options = Options::try_parse_from(["bench", "--quick", "--case", "unix/8"]).unwrap();
        assert!(options.tool.is_none());
        assert_eq!((options.compare.rounds(), options.compare.scale()), (3, 8));
        let raw = Options::try_parse_from(["bench", "raw-loop", "-h", "/s", "-c", "3", "-S"]).unwrap();
        assert!(matches!(raw.tool, Some(Tool::RawLoop(_))));
        assert!(Options::try_parse_from(["bench", "--quick", "raw-loop"]).is_err());
    }

    #[test]
    fn many_clients_get_more_time() {
        let options = Options::try_parse_from(["bench"]).unwrap().compare;
        assert_eq!([options.time(8).as_secs(), options.time(512).as_secs()], [2, 5]);
        let options = Options::try_parse_from(["bench", "--time", "7"]).unwrap().compare;
        assert_eq!(options.time(512).as_secs(), 7);
    }
}

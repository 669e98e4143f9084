//! Options of `isobench check`.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use isobench_database::Product;
use isobench_isolation::history::Format;
use isobench_isolation::{Guarantee, Order};

use super::MachineOptions;

/// Options of `isobench check`.
#[derive(Debug, Args)]
pub struct CheckOptions {
    /// Histories; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Format: binary, text, edn (Elle, Jepsen), json (elle-cli) [default: by the first bytes]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub format: Option<Found>,
    /// Promised level, such as "strict serializable"; if broken, exit with 3
    #[arg(long, value_name = "GUARANTEE", value_parser = guarantee)]
    pub promised: Option<Guarantee>,
    /// Product whose manual's promises apply to levels in a history; if broken, exit with 3
    ///
    /// Unless --promised says otherwise.
    #[arg(long, value_name = "PRODUCT", default_value = "PostgreSQL", value_parser = Product::named)]
    pub server: &'static Product,
    /// Orders that count: data, also session (each client's), also real-time
    #[arg(long, value_name = "ORDER", default_value = "real-time", value_parser = order)]
    pub order: Order,
    /// Check an incomplete recording as far as it goes
    #[arg(long)]
    pub partial: bool,
    /// Assert that the history has every write
    ///
    /// A read that none of them explains then counts against the database, instead of withholding
    /// the verdict.
    #[arg(long)]
    pub complete: bool,
    /// Write the result as JSON to this file (- for stdout)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write an example of each anomaly as a Graphviz graph to this file (- for stdout)
    #[arg(long, value_name = "FILE")]
    pub dot: Option<PathBuf>,
    /// Draw an example of each anomaly into this folder, a file each: HISTORY-ANOMALY.svg
    #[arg(long, value_name = "FOLDER")]
    pub svg: Option<PathBuf>,
    /// Also write the history in another format to a file (- for stdout)
    #[arg(long, value_name = "FORMAT:FILE", value_parser = conversion)]
    pub convert: Option<Conversion>,
    #[command(flatten)]
    pub machines: MachineOptions,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}

/// The choice of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Detected by the first bytes.
    Automatically,
    /// Given by an option.
    Given(Format),
}

/// A file to write in a format.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The format.
    pub format: Format,
    /// The file.
    pub path: PathBuf,
}

fn format(text: &str) -> Result<Found, String> {
    if text.eq_ignore_ascii_case("auto") {
        return Ok(Found::Automatically);
    }
    let known = text.parse();
    known
        .map(Found::Given)
        .map_err(|error: isobench_isolation::history::UnknownFormat| format!("{error}, or auto"))
}

fn guarantee(text: &str) -> Result<Guarantee, String> {
    text.parse().map_err(|error: isobench_isolation::model::UnknownGuarantee| error.to_string())
}

fn order(text: &str) -> Result<Order, String> {
    let words = text.to_lowercase().replace(['-', '_'], " ");
    let known = Order::ALL.into_iter().find(|order| order.name() == words);
    known.ok_or_else(|| "use data, session or real-time".to_owned())
}

fn conversion(text: &str) -> Result<Conversion, String> {
    let (format, path) = text.split_once(':').ok_or("use FORMAT:FILE, for example text:history.txt")?;
    if path.is_empty() {
        return Err("the name of the file is missing after the colon".to_owned());
    }
    let format =
        format.parse().map_err(|error: isobench_isolation::history::UnknownFormat| error.to_string())?;
    Ok(Conversion { format, path: path.into() })
}

//! The options read so far. Each is checked as it is read, including scripts; checks of several
//! options follow later (`resolve`).

use std::time::Duration;

use isobench_database::{PartitionMethod, Steps};
use isobench_pgwire::Given;
use isobench_runner::Protocol;
use isobench_script::is_valid_variable_name;

use super::{numbers, open_files, seed};
use crate::console::Message;
use crate::scripts::{self, Scripts};
use crate::version::Version;

/// The reason why no further option is read.
#[derive(Debug)]
pub(super) enum EarlyEnd {
    /// An error.
    Wrong(Message),
    /// A text to print instead of anything else.
    Tell(String),
}

impl From<Message> for EarlyEnd {
    fn from(message: Message) -> EarlyEnd {
        EarlyEnd::Wrong(message)
    }
}

impl From<String> for EarlyEnd {
    fn from(text: String) -> EarlyEnd {
        EarlyEnd::Wrong(Message::error(text))
    }
}

/// The options as given, each checked by itself.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(super) struct Collected {
    pub version: Version,
    /// Messages to show before the next option is read.
    pub notes: Vec<Message>,
    /// An option was given that can't be used with `-i`.
    pub benchmark_option: bool,
    /// An option was given that can't be used without `-i`.
    pub initialize_option: bool,

    pub connection: Given,
    pub debug: bool,
    pub initialize: bool,
    pub no_vacuum: bool,
    pub scale: Option<i32>,

    pub steps: Option<Steps>,
    pub fillfactor: Option<i32>,
    pub quiet: bool,
    pub foreign_keys: bool,
    pub tablespace: Option<String>,
    pub index_tablespace: Option<String>,
    pub partitions: Option<i32>,
    pub partition_method: Option<PartitionMethod>,
    pub unlogged: bool,

    pub scripts: Scripts,
    pub clients: Option<i32>,
    pub threads: Option<i32>,
    pub transactions: Option<i32>,
    /// In seconds.
    pub duration: Option<i32>,
    pub connect: bool,
    pub defines: Vec<(String, String)>,
    pub log: bool,
    pub log_prefix: Option<String>,
    pub sampling_rate: Option<f64>,
    /// In seconds.
    pub aggregate_interval: Option<i32>,
    pub latency_limit: Option<Duration>,
    pub protocol: Protocol,
    pub vacuum_all: bool,
    /// In seconds.
    pub progress: Option<i32>,
    pub progress_timestamp: bool,
    pub per_command: bool,
    pub rate: Option<f64>,
    pub failures_detailed: bool,
    pub max_tries: Option<u32>,
    pub verbose_errors: bool,
    pub exit_on_abort: bool,
    pub continue_on_error: bool,
    pub seed: u64,
}

/// Splits `NAME=VALUE`, the argument of `-D`.
///
/// # Errors
/// It has another form; pgbench's words.
pub fn parse_definition(argument: &str) -> Result<(&str, &str), String> {
    let parts = argument.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    parts.ok_or_else(|| format!("invalid variable definition: \"{argument}\""))
}

impl Collected {
    /// `-b`
    pub fn builtin(&mut self, argument: &str) -> Result<(), EarlyEnd> {
        if argument == "list" {
            return Err(EarlyEnd::Tell(scripts::list()));
        }
        Ok(self.scripts.add_builtin(argument)?)
    }

    /// `-N`, `-S`
    pub fn builtin_named(&mut self, name: &str) -> Result<(), EarlyEnd> {
        Ok(self.scripts.add_builtin(name)?)
    }

    /// `-f`
    pub fn file(&mut self, argument: &str) -> Result<(), EarlyEnd> {
        Ok(self.scripts.add_file(argument, self.version)?)
    }

    /// `-c`
    pub fn clients(&mut self, argument: &str) -> Result<(), EarlyEnd> {
        let clients = numbers::integer(argument, self.version.clients_option(), &(1..=i32::MAX))?;
        self.clients = Some(clients);
        Ok(open_files::allow(clients.unsigned_abs().into(), self.version.raises_open_files())?)
    }

    /// `-D`
    pub fn define(&mut self, argument: &str) -> Result<(), EarlyEnd> {
        let (name, value) = parse_definition(argument)?;
        if !is_valid_variable_name(name) {
            return Err(format!("option: invalid variable name: \"{name}\"").into());
        }
        self.defines.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    /// `-I`
    pub fn steps(&mut self, argument: &str) -> Result<(), EarlyEnd> {
        let steps = argument.parse::<Steps>().map_err(|error| {
            let message = Message::error(&error);
            error.detail().map_or(message.clone(), |detail| message.detail(detail))
        })?;
        self.steps = Some(steps);
        Ok(())
    }

    /// `-L`: milliseconds, kept in whole microseconds. Less than one microsecond is no limit.
    pub fn latency_limit(&mut self, argument: &str) -> Result<(), EarlyEnd> {
        let milliseconds = numbers::atof(argument);
        if milliseconds <= 0.0 {
            return Err(format!("invalid latency limit: \"{argument}\"").into());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, which is meant"
        )]
        let microseconds = (milliseconds * 1000.0) as u64;
        self.latency_limit = Some(Duration::from_micros(microseconds)).filter(|limit| !limit.is_zero());
        Ok(())
    }

    /// `-M`
    pub fn protocol(&mut self, argument: &str) -> Result<(), EarlyEnd> {
        self.protocol = match argument {
            "simple" => Protocol::Simple,
            "extended" => Protocol::Extended,
            "prepared" => Protocol::Prepared,
            other => return Err(format!("invalid query mode (-M): \"{other}\"").into()),
        };
        Ok(())
    }

    /// `-R`
    pub fn rate(&mut self, argument: &str) -> Result<(), EarlyEnd> {
        let rate = numbers::atof(argument);
        if rate <= 0.0 {
            return Err(format!("invalid rate limit: \"{argument}\"").into());
        }
        // An infinite rate isn't throttled.
        self.rate = Some(rate).filter(|rate| rate.is_finite());
        Ok(())
    }

    /// `--sampling-rate`
    pub fn sampling_rate(&mut self, argument: &str) -> Result<(), EarlyEnd> {
        let rate = numbers::atof(argument);
        if rate <= 0.0 || rate > 1.0 {
            return Err(format!("invalid sampling rate: \"{argument}\"").into());
        }
        self.sampling_rate = Some(if rate.is_nan() { 1.0 } else { rate });
        Ok(())
    }

    /// `--max-tries`
    pub fn max_tries(&mut self, argument: &str) -> Result<(), EarlyEnd> {
        let tries = u32::try_from(numbers::atoi(argument))
            .map_err(|_| format!("invalid number of maximum tries: \"{argument}\""))?;
        self.max_tries = Some(tries);
        Ok(())
    }

    /// `--random-seed`
    pub fn random_seed(&mut self, argument: &str) -> Result<(), EarlyEnd> {
        Ok(self.set_seed(argument, "--random-seed option")?)
    }

    /// Sets the seed and reports it.
    ///
    /// # Errors
    /// The text isn't a seed.
    pub fn set_seed(&mut self, text: &str, whence: &str) -> Result<(), Message> {
        self.seed = seed::seed(text, whence)?;
        self.notes.push(Message::info(format_args!("setting random seed to {}", self.seed)));
        Ok(())
    }

    /// `--partition-method`
    pub fn partition_method(&mut self, argument: &str) -> Result<(), EarlyEnd> {
        self.partition_method = Some(match argument.to_ascii_lowercase().as_str() {
            "range" => PartitionMethod::Range,
            "hash" => PartitionMethod::Hash,
            _ => {
                let text = "invalid partition method, expecting \"range\" or \"hash\", got";
                return Err(format!("{text}: \"{argument}\"").into());
            }
        });
        Ok(())
    }
}

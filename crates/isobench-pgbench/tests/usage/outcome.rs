//! The outcome of a command line, with our parser and with the real program.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use isobench_pgbench::options::{Request, parse};
use isobench_testkit::installed::RealPgbench;

/// A host without a server.
const NOWHERE: &str = "/nonexistent";

/// The files that command lines may name.
const FILES: [(&str, &[u8]); 11] = [
    ("ok.sql", b"select 1;\n"),
    ("bad.sql", b"select 1;\n\\foo\n"),
    ("expr.sql", b"\\set x 1 +\n"),
    ("empty.sql", b"-- nothing\n"),
    ("open.sql", b"\\if 1\nselect 1;\n"),
    ("sync.sql", b"\\startpipeline\nselect 1;\n\\syncpipeline\n\\endpipeline\n"),
    ("sync_bad.sql", b"select 1;\n\\SyncPipeline\n\\foo\n"),
    // In C's library the text ends at the zero byte.
    ("zero.sql", b"select 1;\nselect 2\0;\n\\foo\n"),
    ("latin.sql", b"-- caf\xe9\nselect 1;\n"),
    ("damaged.sql", b"select 'caf\xe9';\n"),
    ("a@b.sql", b"select 1;\n"),
];

/// The folder with the files, which the first call makes the current one of this process.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in FILES {
            std::fs::write(folder.path().join(name), text).expect("writable");
        }
        let many = format!("select :a,\n  :b /* x */{};\n", ", :a".repeat(254));
        std::fs::write(folder.path().join("many.sql"), many).expect("writable");
        std::fs::create_dir(folder.path().join("folder")).expect("writable");
        std::env::set_current_dir(folder.path()).expect("accessible");
        folder
    });
    folder.path()
}

/// A command line and the environment variables set for it.
#[derive(Debug, Clone, Default)]
pub struct Line {
    pub env: Vec<(String, String)>,
    pub words: Vec<String>,
}

impl Line {
    /// Parses `NAME=value word 'a word' …`; variables have capital letters and come first.
    pub fn new(text: &str) -> Line {
        let mut words: Vec<String> = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (word, after) = match rest.strip_prefix('\'') {
                Some(quoted) => quoted.split_once('\'').expect("a second quote"),
                None => rest.split_once(' ').unwrap_or((rest, "")),
            };
            words.push(word.replace("\\t", "\t"));
            rest = after.trim_start();
        }
        let assigned = |word: &String| {
            let (name, value) = word.split_once('=')?;
            let capital = !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            capital.then(|| (name.to_owned(), value.to_owned()))
        };
        let env: Vec<_> = words.iter().map_while(assigned).collect();
        Line { words: words.split_off(env.len()), env }
    }

    /// The environment: the line's variables, then those of all lines.
    fn variable(&self, name: &str) -> Option<String> {
        let own = self.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        own.or_else(|| match name {
            "PGHOST" => Some(NOWHERE.to_owned()),
            "PGUSER" => Some("nobody".to_owned()),
            _ => None,
        })
    }

    /// Our result, as a version.
    pub fn request(&self, version: u32) -> (String, Result<Request, String>) {
        folder();
        let compat = ["pgbench".to_owned(), format!("--compat={version}")];
        let words = compat.iter().chain(&self.words).map(Into::into);
        let mut said = String::new();
        let request = parse(words, &|name| self.variable(name), &mut |message| {
            writeln!(said, "{message}").expect("writes");
        });
        (said, request.map_err(|error| error.to_string()))
    }

    /// Our status and output.
    pub fn ours(&self, version: u32) -> String {
        let (said, request) = self.request(version);
        match request {
            Ok(Request::Print(text) | Request::Tell(text)) => format!("0 {said}{text}"),
            Ok(Request::Initialize(..)) => format!("1 {said}(connects to initialize)\n"),
            Ok(Request::Benchmark(..)) => format!("1 {said}(connects to run)\n"),
            Err(error) => format!("1 {said}{error}\n"),
        }
    }

    /// Status and output of the real program.
    pub fn theirs(&self, pgbench: &RealPgbench) -> String {
        let output = Command::new(&pgbench.program)
            .arg0("pgbench")
            .args(&self.words)
            .env_clear()
            .env("LC_ALL", "C")
            .env("PGHOST", NOWHERE)
            .env("PGUSER", "nobody")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(folder())
            .stdin(Stdio::null())
            .output()
            .expect("pgbench starts");
        let text = format!(
            "{} {}{}",
            output.status.code().unwrap_or(-1),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        for (purpose, ours) in [("initialization", "initialize"), ("setup", "run")] {
            let end = format!("pgbench: error: could not create connection for {purpose}\n");
            if let Some(text) = text.strip_suffix(&end) {
                let refused = text.rfind("pgbench: error: ").expect("why there is no connection");
                return format!("{}(connects to {ours})\n", &text[..refused]);
            }
        }
        text
    }
}

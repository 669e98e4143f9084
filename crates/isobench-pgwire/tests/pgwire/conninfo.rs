//! Connection strings: a golden file of inputs and results, confirmed by the real libpq, if
//! installed.
//!
//! `ISOBENCH_BLESS=1 cargo test -p isobench-pgwire` updates the golden file from its own inputs
//! (lines with `>`).

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use isobench_pgwire::{ConfigError, parse_connection_string};
use isobench_testkit::golden::expect;
use proptest::prelude::*;

fn golden_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/conninfo.txt")
}

/// The inputs of the golden file. `\n`, `\t` and `\\` are escapes.
fn inputs(golden: &str) -> Vec<String> {
    let lines = golden.lines().filter_map(|line| line.strip_prefix('>'));
    lines.map(|line| unescape(line.strip_prefix(' ').unwrap_or(line))).collect()
}

fn unescape(text: &str) -> String {
    let mut chars = text.chars();
    let mut plain = String::new();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                other => plain.extend(other),
            },
            c => plain.push(c),
        }
    }
    plain
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t")
}

/// A case as written to the golden file.
fn render(input: &str, parsed: &Result<Vec<(&'static str, String)>, String>) -> String {
    let mut text = format!("> {}\n", escape(input));
    match parsed {
        Ok(values) => {
            for (name, value) in values {
                let _ = writeln!(text, "{name} = {}", escape(value));
            }
        }
        Err(message) => {
            let _ = writeln!(text, "error: {}", escape(message));
        }
    }
    text.push('\n');
    text
}

fn ours(input: &str) -> Result<Vec<(&'static str, String)>, String> {
    parse_connection_string(input).map_err(|error: ConfigError| error.to_string())
}

#[test]
fn golden() {
    let path = golden_path();
    let before = std::fs::read_to_string(&path).expect("the golden file is there");
    let actual: String = inputs(&before).iter().map(|input| render(input, &ours(input))).collect();
    expect(path, &actual);
}

/// Prints libpq's result for each line of its input (hexadecimal).
const ORACLE: &str = r#"
import ctypes, ctypes.util, sys
libpq = ctypes.CDLL("libpq.so.5")
class Option(ctypes.Structure):
    _fields_ = [(n, ctypes.c_char_p) for n in ("keyword", "envvar", "compiled", "val", "label", "dispchar")] \
        + [("dispsize", ctypes.c_int)]
libpq.PQconninfoParse.restype = ctypes.POINTER(Option)
libpq.PQconninfoParse.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)]
for line in sys.stdin:
    error = ctypes.c_char_p()
    options = libpq.PQconninfoParse(bytes.fromhex(line.strip()), ctypes.byref(error))
    if not options:
        print("error\t" + error.value.strip().hex())
        continue
    found, i = [], 0
    while options[i].keyword:
        if options[i].val is not None:
            found.append(options[i].keyword.decode() + "=" + options[i].val.hex())
        i += 1
    print("\t".join(["ok"] + sorted(found)))
"#;

/// libpq's results for the inputs, in the form of `ours`, or the reason that it isn't available.
fn libpq(inputs: &[String]) -> Result<Vec<String>, String> {
    let mut python = Command::new("python3")
        .args(["-c", ORACLE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("python3: {error}"))?;
    let hex = |text: &str| text.bytes().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    let lines: String = inputs.iter().map(|input| hex(input) + "\n").collect();
    if let Some(mut stdin) = python.stdin.take() {
        // In a thread, because the script answers before it has read everything. Without libpq the
        // script ends immediately, which is detected below.
        std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    }
    let output = python.wait_with_output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let answers: Vec<String> = text.lines().map(str::to_owned).collect();
    if answers.len() == inputs.len() { Ok(answers) } else { Err("libpq.so.5 can't be loaded".to_owned()) }
}

fn in_libpq_form(parsed: &Result<Vec<(&'static str, String)>, String>) -> String {
    let hex = |text: &str| text.bytes().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    match parsed {
        Ok(values) => values
            .iter()
            .fold("ok".to_owned(), |line, (name, value)| format!("{line}\t{name}={}", hex(value))),
        Err(message) => format!("error\t{}", hex(message.trim())),
    }
}

/// Inserts into isobench's message the text that libpq quotes but isobench omits, because it may be
/// a part of a password.
fn elided_like(
    ours: Result<Vec<(&'static str, String)>, String>,
    theirs: &str,
) -> Result<Vec<(&'static str, String)>, String> {
    ours.map_err(|message| {
        let Some((before, after)) = message.split_once('…') else { return message };
        let hex = theirs.strip_prefix("error\t").unwrap_or_default();
        let digits: Vec<char> = hex.chars().collect();
        let bytes =
            digits.chunks(2).filter_map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).ok());
        let theirs = String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned();
        let quoted = theirs.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        format!("{before}{}{after}", quoted.unwrap_or("…"))
    })
}

#[test]
fn libpq_agrees() {
    let golden = std::fs::read_to_string(golden_path()).expect("the golden file is there");
    let mut inputs = inputs(&golden);
    // Many more, made of the characters with a meaning, always the same ones.
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let pieces = [
        "postgresql://",
        "host",
        "user",
        "port",
        "dbname",
        "=",
        "'",
        "\\",
        " ",
        ":",
        "@",
        "/",
        "?",
        "&",
        ",",
        "[",
        "]",
        "%41",
        "%",
        "a",
        "b1",
        "::1",
        "\t",
        "application_name",
        "options",
        "sslmode",
        "ssl=true",
    ];
    for _ in 0..3000 {
        let mut text = String::new();
        for _ in 0..random % 9 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[usize::try_from((random >> 33) % pieces.len() as u64).unwrap_or(0)]);
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if random & 0x100_0000 != 0 {
            text.insert_str(0, "postgresql://");
        }
        inputs.push(text);
    }
    // The only intended difference: isobench's texts are UTF-8.
    inputs.retain(|input| !ours(input).is_err_and(|message| message.contains("is not UTF-8")));
    match libpq(&inputs) {
        Err(reason) => isobench_testkit::installed::skip("libpq_agrees", &reason),
        Ok(answers) => {
            for (input, theirs) in inputs.iter().zip(&answers) {
                let ours = ours(input);
                assert_eq!(&in_libpq_form(&elided_like(ours, theirs)), theirs, "{input:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_string_makes_the_parser_panic(text in ".{0,60}", scheme in any::<bool>()) {
        let text = if scheme { format!("postgresql://{text}") } else { text };
        let _ = parse_connection_string(&text);
    }

    #[test]
    fn quoting_round_trips(value in "[^\0]{0,30}") {
        let quoted = value.replace('\\', "\\\\").replace('\'', "\\'");
        let parsed = parse_connection_string(&format!("application_name = '{quoted}'"));
        prop_assert_eq!(parsed, Ok(vec![("application_name", value)]));
    }

    #[test]
    fn percent_encoding_round_trips(value in "[^\0]{1,30}") {
        let encoded = value.bytes().fold(String::new(), |encoded, byte| format!("{encoded}%{byte:02X}"));
        let parsed = parse_connection_string(&format!("postgres://h/{encoded}"));
        prop_assert_eq!(parsed, Ok(vec![("dbname", value), ("host", "h".to_owned())]));
    }
}

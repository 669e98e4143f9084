//! Parameters that a plan varies or sets: `NAME=VALUE,VALUE`, and the combinations of several.
//!
//! Not here: the meaning of a name for tables and scripts (`work.rs`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use isobench_database::{SessionSetting, SettingScope};
use isobench_pgserver::MajorVersion;
use isobench_pgwire::{holds_secret, is_connection_string};
use isobench_plan::{StandbyMode, Vary};
use isobench_result::factor::{ENDPOINT, SERVER_BIN, SERVER_VERSION, SETTING};

use super::faults::Standbys;
use super::values::{distinct, wrong};
use crate::endpoint::DIRECT;
use crate::failure::{Failure, Outcome};

/// The value of each parameter.
pub type Assignment = BTreeMap<String, String>;

/// What a plan varies about servers and sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerFactors {
    /// Versions of the embedded server.
    pub versions: Vec<MajorVersion>,
    /// Folders of the embedded server's programs.
    pub bins: Vec<PathBuf>,
    /// Ways by which clients reach the server, as written.
    pub endpoints: Vec<String>,
    /// Settings, by name, with their values.
    pub settings: Vec<Vary>,
    /// The standbys of each server.
    pub standbys: Standbys,
}

/// One of the servers that a plan compares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerPlan {
    /// The version of the embedded server; `None`: the one that options choose.
    pub version: Option<MajorVersion>,
    /// The folder of its programs; `None`: the one that options choose.
    pub bin: Option<PathBuf>,
    /// The settings with which it is started, in addition to those of all servers: values by name.
    pub settings: Assignment,
    /// The number of its standbys.
    pub standbys: usize,
    /// How they follow; `None` if it has none.
    pub standby: Option<StandbyMode>,
}

/// The settings of a cell's sessions.
pub type SessionPlan = Vec<SessionSetting>;

/// What settings of a server are, and do.
pub trait KnownSettings {
    /// Where a setting can be set.
    ///
    /// # Errors
    /// There is no such setting, or the server is gone.
    fn scope(&self, name: &str) -> Outcome<SettingScope>;

    /// How the server shows this value of a session's setting.
    ///
    /// # Errors
    /// It refuses the value, or is gone.
    fn shown(&self, name: &str, value: &str) -> Outcome<String>;
}

/// The settings that are no factor: the level is one by itself, and the others lead to other tables,
/// or to another role's.
const NOT_VARIED: [(&str, &str); 8] = [
    ("default_transaction_isolation", "levels are a factor of their own (--levels)"),
    ("transaction_isolation", "levels are a factor of their own (--levels)"),
    ("search_path", "it would lead to other tables"),
    ("role", "it would act as another role"),
    ("session_authorization", "it would act as another role"),
    ("port", "isobench chooses it"),
    ("data_directory", "isobench chooses it"),
    ("unix_socket_directories", "isobench chooses it"),
];

/// Separates what concerns servers and sessions from the other parameters.
///
/// # Errors
/// A name or value is repeated, or a version is unknown; or versions and programs are both varied.
pub fn split(vary: &[Vary]) -> Outcome<(ServerFactors, Vec<Vary>)> {
    for (index, one) in vary.iter().enumerate() {
        distinct("vary", &one.values)?;
        if vary[..index].iter().any(|other| other.name.eq_ignore_ascii_case(&one.name)) {
            return Err(wrong("vary", format!("{} is there twice; give all its values at once", one.name)));
        }
    }
    let mut factors = ServerFactors::default();
    let mut rest = Vec::new();
    for one in vary {
        match one.name.strip_prefix(SETTING) {
            Some(name) => factors.settings.push(setting(name, one)?),
            None if one.name == SERVER_VERSION => factors.versions = versions(one)?,
            None if one.name == SERVER_BIN => factors.bins = one.values.iter().map(PathBuf::from).collect(),
            None if one.name == ENDPOINT => factors.endpoints = endpoints(one)?,
            None => rest.push(one.clone()),
        }
    }
    if !factors.versions.is_empty() && !factors.bins.is_empty() {
        return Err(wrong(
            "vary",
            format!("{SERVER_VERSION} and {SERVER_BIN} both choose the server's programs; give one of them"),
        ));
    }
    Ok((factors, rest))
}

fn setting(name: &str, vary: &Vary) -> Outcome<Vary> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(wrong(
            "vary",
            format!(
                "{}: no setting has such a name; use {SETTING}NAME, such as {SETTING}work_mem",
                vary.name
            ),
        ));
    }
    if let Some((_, why)) = NOT_VARIED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return Err(wrong("vary", format!("{}: this setting isn't varied: {why}", vary.name)));
    }
    Ok(Vary { name: name.to_owned(), values: vary.values.clone() })
}

/// The ways by which clients reach the server. The result keeps them as written.
fn endpoints(vary: &Vary) -> Outcome<Vec<String>> {
    for value in vary.values.iter().filter(|value| *value != DIRECT) {
        if !is_connection_string(value) {
            return Err(wrong(
                "vary",
                format!(
                    "{ENDPOINT}={value}: use {DIRECT}, or a connection string such as \"host=127.0.0.1 port=6432\""
                ),
            ));
        }
        if holds_secret(value) {
            return Err(wrong(
                "vary",
                format!(
                    "{ENDPOINT}: leave out the password, which results would keep; use a password file or PGPASSWORD"
                ),
            ));
        }
    }
    Ok(vary.values.clone())
}

fn versions(vary: &Vary) -> Outcome<Vec<MajorVersion>> {
    let version = |text: &String| {
        text.parse::<MajorVersion>()
            .map_err(|error| Failure::setup(format!("--vary: {SERVER_VERSION}={text}: {error}")))
    };
    vary.values.iter().map(version).collect()
}

impl ServerFactors {
    /// The servers, as far as they don't differ in settings; at least one.
    pub fn servers(&self) -> Vec<ServerPlan> {
        let of_version = self
            .versions
            .iter()
            .map(|version| ServerPlan { version: Some(*version), ..ServerPlan::default() });
        let of_bin =
            self.bins.iter().map(|bin| ServerPlan { bin: Some(bin.clone()), ..ServerPlan::default() });
        let mut servers: Vec<ServerPlan> = of_version.chain(of_bin).collect();
        if servers.is_empty() {
            servers.push(ServerPlan::default());
        }
        let Standbys { number, modes } = &self.standbys;
        if modes.is_empty() {
            return servers;
        }
        let following = |server: ServerPlan| {
            let with = move |mode: &StandbyMode| ServerPlan {
                standbys: *number,
                standby: Some(*mode),
                ..server.clone()
            };
            modes.iter().map(with)
        };
        servers.into_iter().flat_map(following).collect()
    }

    /// The servers, the settings of sessions, and those of a named server that are altered while such sessions
    /// work, now that one of the servers is known. A setting of its own needs a server, so only embedded ones
    /// can have some; what a running server can read again may be altered on a named one, if `alters`.
    ///
    /// # Errors
    /// A setting is unknown or can't be changed, a value is refused, or two values are the same.
    pub fn place(
        &self,
        known: &dyn KnownSettings,
        embedded: bool,
        alters: bool,
    ) -> Outcome<(Vec<ServerPlan>, Vec<SessionPlan>, Vec<Assignment>)> {
        let (mut of_server, mut of_session, mut altered) = (Vec::new(), Vec::new(), Vec::new());
        for one in &self.settings {
            match known.scope(&one.name)? {
                SettingScope::Session => of_session.push(one.clone()),
                SettingScope::Server | SettingScope::Configuration if embedded => of_server.push(one.clone()),
                SettingScope::Configuration if alters => altered.push(one.clone()),
                SettingScope::Configuration => {
                    return Err(wrong(
                        "vary",
                        format!(
                            "{SETTING}{}: this setting is the whole server's, and a named server is left as it is; \
                             vary it on an embedded server, or permit it by --alter-system",
                            one.name
                        ),
                    ));
                }
                SettingScope::Server => {
                    return Err(wrong(
                        "vary",
                        format!(
                            "{SETTING}{}: this setting is the whole server's, and a named server is left as it is; \
                             vary it on an embedded server",
                            one.name
                        ),
                    ));
                }
                SettingScope::Fixed => {
                    return Err(wrong(
                        "vary",
                        format!("{SETTING}{}: this setting can't be changed", one.name),
                    ));
                }
            }
        }
        let servers = self.servers().into_iter().flat_map(|server| {
            let with = |settings| ServerPlan { settings, ..server.clone() };
            combinations(&of_server).into_iter().map(with).collect::<Vec<_>>()
        });
        let servers = servers.collect();
        let mut shown: BTreeMap<(&str, &str), String> = BTreeMap::new();
        for one in &of_session {
            for value in &one.values {
                let text = known.shown(&one.name, value)?;
                let same = shown.iter().find(|((name, _), other)| *name == one.name && **other == text);
                if let Some(((_, other), _)) = same {
                    let name = &one.name;
                    return Err(wrong(
                        "vary",
                        format!("{SETTING}{name}: {other} and {value} are the same to the server, {text}"),
                    ));
                }
                shown.insert((&one.name, value), text);
            }
        }
        let session = |settings: Assignment| {
            let setting = |(name, value): (String, String)| {
                let shown = shown.get(&(name.as_str(), value.as_str())).cloned().unwrap_or_default();
                SessionSetting { name, value, shown }
            };
            settings.into_iter().map(setting).collect::<SessionPlan>()
        };
        let sessions: Vec<SessionPlan> = combinations(&of_session).into_iter().map(session).collect();
        let altered = combinations(&altered);
        let both =
            altered.iter().flat_map(|altered| sessions.iter().map(move |one| (one.clone(), altered.clone())));
        let (sessions, altered) = both.unzip();
        Ok((servers, sessions, altered))
    }
}

/// Every combination, the last parameter varying fastest; without parameters a single empty one.
pub fn combinations(vary: &[Vary]) -> Vec<Assignment> {
    vary.iter().fold(vec![Assignment::new()], |combinations, one| {
        let with = |so_far: &Assignment, value: &String| {
            let mut combination = so_far.clone();
            combination.insert(one.name.clone(), value.clone());
            combination
        };
        combinations.iter().flat_map(|so_far| one.values.iter().map(|value| with(so_far, value))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Outcome<(ServerFactors, Vec<Vary>)> {
        split(&texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>())
    }

    /// A server with three settings.
    struct Known;

    impl KnownSettings for Known {
        fn scope(&self, name: &str) -> Outcome<SettingScope> {
            match name {
                "work_mem" => Ok(SettingScope::Session),
                "wal_level" => Ok(SettingScope::Server),
                "wal_writer_delay" => Ok(SettingScope::Configuration),
                "block_size" => Ok(SettingScope::Fixed),
                _ => Err(Failure::setup("no such setting")),
            }
        }

        fn shown(&self, _: &str, value: &str) -> Outcome<String> {
            Ok(value.replace("1024kB", "1MB"))
        }
    }

    #[test]
    fn every_value_meets_every_other() {
        let (factors, vary) = read(&["rows=1,10", "server-version=14,18", "index=1,0"]).unwrap();
        assert_eq!(factors.versions.iter().map(ToString::to_string).collect::<Vec<_>>(), ["14", "18"]);
        let found: Vec<String> = combinations(&vary)
            .iter()
            .map(|combination| format!("{} {}", combination["rows"], combination["index"]))
            .collect();
        assert_eq!(found, ["1 1", "1 0", "10 1", "10 0"]);
        assert_eq!(combinations(&[]), [Assignment::new()]);
    }

    #[test]
    fn settings_of_a_named_server_are_altered_if_that_is_permitted() {
        let (factors, _) = read(&["setting:work_mem=1MB,4MB", "setting:wal_writer_delay=10,200"]).unwrap();
        let message = factors.place(&Known, false, false).unwrap_err().to_string();
        assert!(message.contains("permit it by --alter-system"), "{message}");
        let (servers, sessions, altered) = factors.place(&Known, false, true).unwrap();
        let places: Vec<String> = sessions
            .iter()
            .zip(&altered)
            .map(|(session, altered)| format!("{} {}", altered["wal_writer_delay"], session[0].shown))
            .collect();
        assert_eq!(
            (servers.len(), places),
            (1, ["10 1MB", "10 4MB", "200 1MB", "200 4MB"].map(str::to_owned).into())
        );
        // An embedded one is started with it.
        let (servers, _, altered) = factors.place(&Known, true, true).unwrap();
        assert_eq!((servers.len(), altered), (2, vec![Assignment::new(); 2]));
    }

    #[test]
    fn settings_go_where_they_can_be_set() {
        let texts = ["server-bin=/a,/b", "setting:work_mem=1MB,4MB", "setting:wal_level=minimal,replica"];
        let (factors, rest) = read(&texts).unwrap();
        assert!(rest.is_empty() && factors.endpoints.is_empty());
        let (ways, _) = read(&["endpoint=direct,host=a port=6432"]).unwrap();
        assert_eq!(ways.endpoints, ["direct", "host=a port=6432"]);
        assert_eq!(factors.servers().len(), 2);
        let (servers, sessions, _) = factors.place(&Known, true, false).unwrap();
        let servers: Vec<String> = servers
            .iter()
            .map(|server| {
                format!("{} {}", server.bin.as_ref().unwrap().display(), server.settings["wal_level"])
            })
            .collect();
        assert_eq!(servers, ["/a minimal", "/a replica", "/b minimal", "/b replica"]);
        let sessions: Vec<&str> = sessions.iter().map(|settings| settings[0].shown.as_str()).collect();
        assert_eq!(sessions, ["1MB", "4MB"]);
        let (nothing, _) = read(&["rows=1"]).unwrap();
        let (servers, sessions, _) = nothing.place(&Known, false, false).unwrap();
        assert_eq!((servers, sessions), (vec![ServerPlan::default()], vec![SessionPlan::new()]));
    }

    #[test]
    fn settings_that_cant_be_set_are_reported() {
        for (text, embedded, part) in [
            ("setting:wal_level=minimal", false, "a named server is left as it is"),
            ("setting:block_size=1", true, "can't be changed"),
            ("setting:foo=1", true, "no such setting"),
            ("setting:work_mem=1MB,1024kB", true, "1MB and 1024kB are the same to the server, 1MB"),
        ] {
            let (factors, _) = read(&[text]).unwrap();
            let message = factors.place(&Known, embedded, false).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn what_is_wrong_is_reported() {
        for (texts, part) in [
            (&["rows=1,1"][..], "twice"),
            (&["rows=1", "rows=2"], "all its values at once"),
            (&["setting:a=1", "setting:A=2"], "all its values at once"),
            (&["server-version=13"], "server-version=13"),
            (&["server-version=new"], "server-version=new"),
            (&["server-version=14", "server-bin=/a"], "give one of them"),
            (&["endpoint=pooler"], "use direct, or a connection string"),
            (&["endpoint=direct,direct"], "twice"),
            (&["endpoint=host=a password=b"], "leave out the password"),
            (&["setting:=1"], "no setting has such a name"),
            (&["setting:work_mem'=1"], "no setting has such a name"),
            (&["setting:search_path=x"], "other tables"),
            (&["setting:default_transaction_isolation=serializable"], "--levels"),
        ] {
            let message = read(texts).unwrap_err().to_string();
            assert!(message.starts_with("--vary: ") && message.contains(part), "{message}");
        }
    }
}

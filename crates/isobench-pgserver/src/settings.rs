//! Checks the given settings and separates those that control connections to the server.

use std::net::IpAddr;
use std::path::Path;

use crate::ServerError;

/// The port, used in the name of the socket file unless the setting `port` is given.
const DEFAULT_PORT: u16 = 5432;

/// Settings that would make the server unreachable or visible to others, or leave files behind.
const RESERVED: [(&str, &str); 10] = [
    ("config_file", "the files of an embedded server are its own"),
    ("data_directory", "an embedded server has a folder of its own; set TMPDIR to choose the disk"),
    ("external_pid_file", "it would be left behind"),
    ("hba_file", "the files of an embedded server are its own"),
    ("ident_file", "the files of an embedded server are its own"),
    ("log_destination", "the log of an embedded server goes to a file that isobench reads"),
    ("logging_collector", "the log of an embedded server goes to a file that isobench reads"),
    ("unix_socket_directories", "the socket of an embedded server is in a folder of its own"),
    ("unix_socket_group", "the socket of an embedded server is in a folder closed to others"),
    ("unix_socket_permissions", "the socket of an embedded server is in a folder closed to others"),
];

/// Settings that a standby must have no lower than the server whose data it starts with: PostgreSQL's
/// defaults, which `initdb` leaves (PostgreSQL manual, "Hot Standby", "Administrator's Overview").
const AT_LEAST: [(&str, u64); 4] = [
    ("max_connections", 100),
    ("max_worker_processes", 8),
    ("max_wal_senders", 10),
    ("max_locks_per_transaction", 64),
];

/// The checked settings of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerSettings {
    /// The settings passed to the server, in order.
    pub(crate) plain: Vec<(String, String)>,
    /// The port, if given.
    port: Option<u16>,
    /// Loopback addresses to listen on besides the socket, as given; usually none.
    pub(crate) listen: Vec<String>,
}

impl ServerSettings {
    /// Checks names and values, as far as the server itself wouldn't.
    ///
    /// # Errors
    /// [`ServerError::Setting`] for a malformed name, a reserved one, or an address that other
    /// machines could reach.
    pub(crate) fn check(given: &[(String, String)]) -> Result<Self, ServerError> {
        let mut settings = Self::default();
        for (name, value) in given {
            settings.add(name, value).map_err(|reason| ServerError::Setting {
                name: name.clone(),
                value: value.clone(),
                reason,
            })?;
        }
        Ok(settings)
    }

    /// The given port, or PostgreSQL's default.
    pub(crate) fn port(&self) -> u16 {
        self.port.unwrap_or(DEFAULT_PORT)
    }

    /// True if the caller chose the port.
    pub(crate) fn port_is_given(&self) -> bool {
        self.port.is_some()
    }

    /// Sets the port.
    pub(crate) fn set_port(&mut self, port: u16) {
        self.port = Some(port);
    }

    /// The settings of a standby of a server with these settings, whose socket is in `primary`; `slot`
    /// is the name of its replication slot. Only the server itself waits for standbys.
    pub(crate) fn following(&self, primary: &Path, slot: &str) -> Self {
        let own = |(name, value): &&(String, String)| {
            let least = AT_LEAST.iter().find(|(known, _)| known == name);
            let less =
                least.is_some_and(|(_, least)| value.trim().parse::<u64>().is_ok_and(|it| it < *least));
            name != "synchronous_standby_names" && !less
        };
        let mut plain: Vec<(String, String)> = self.plain.iter().filter(own).cloned().collect();
        let address = primary.to_string_lossy().replace('\\', r"\\").replace('\'', r"\'");
        let primary = format!("host='{address}' port={} user=postgres application_name={slot}", self.port());
        plain.push(("primary_conninfo".to_owned(), primary));
        plain.push(("primary_slot_name".to_owned(), slot.to_owned()));
        plain.push(("hot_standby".to_owned(), "on".to_owned()));
        // A standby that finds its primary gone looks for it again soon.
        plain.push(("wal_retrieve_retry_interval".to_owned(), "100ms".to_owned()));
        Self { plain, listen: Vec::new(), ..self.clone() }
    }

    fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        if !is_setting_name(name) {
            return Err("a setting's name consists of letters, digits, underscores and dots".to_owned());
        }
        if value.contains('\0') {
            return Err("a value can't contain a zero byte".to_owned());
        }
        let canonical = canonical(name);
        if let Some((_, reason)) = RESERVED.iter().find(|(reserved, _)| *reserved == canonical) {
            return Err(format!("this setting can't be changed: {reason}"));
        }
        match canonical.as_str() {
            "listen_addresses" => self.listen = loopback_addresses(value)?,
            "port" => {
                let port = value.trim().parse().ok().filter(|port| *port > 0);
                self.port = Some(port.ok_or("a port is a number from 1 to 65535")?);
            }
            _ => self.plain.push((canonical, value.to_owned())),
        }
        Ok(())
    }
}

/// A setting's name as PostgreSQL writes it. Its names are case-insensitive, and its command line
/// accepts - for _.
pub(crate) fn canonical(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

fn is_setting_name(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || b"_-.$".contains(&letter))
}

fn loopback_addresses(value: &str) -> Result<Vec<String>, String> {
    let addresses = value.split(',').map(str::trim).filter(|address| !address.is_empty());
    addresses
        .map(|address| {
            let loopback = address == "localhost"
                || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
            if loopback {
                Ok(address.to_owned())
            } else {
                Err(format!(
                    "\"{address}\" may be reachable from other machines: an embedded server listens \
                     on localhost, 127.0.0.1 or ::1 only"
                ))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: &str) -> Result<ServerSettings, String> {
        ServerSettings::check(&[(name.to_owned(), value.to_owned())]).map_err(|error| error.to_string())
    }

    #[test]
    fn plain_settings_pass() {
        let settings = check("Work-Mem", "8 MB").expect("valid");
        assert_eq!(settings.plain, [("work_mem".to_owned(), "8 MB".to_owned())]);
        assert_eq!((settings.port(), settings.port_is_given()), (DEFAULT_PORT, false));
        assert!(check("plpgsql.extra_warnings", "all").is_ok());
    }

    #[test]
    fn a_standby_has_room_for_what_its_data_need() {
        let given = [("max_connections", "20"), ("work_mem", "8MB"), ("synchronous_standby_names", "*")];
        let given: Vec<(String, String)> =
            given.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let server = ServerSettings::check(&given).expect("valid");
        let standby = server.following(Path::new("/tmp/it's/data"), "isobench_1");
        let names: Vec<&str> = standby.plain.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[..2], ["work_mem", "primary_conninfo"]);
        assert!(standby.plain[1].1.starts_with(r"host='/tmp/it\'s/data' port=5432 "), "{:?}", standby.plain);
        let more = check("max_connections", "200").expect("valid").following(Path::new("/x"), "s");
        assert_eq!(more.plain[0].1, "200");
    }

    #[test]
    fn the_port_is_checked() {
        assert_eq!(check("port", "6000").map(|settings| settings.port()), Ok(6000));
        for value in ["0", "65536", "-1", "x", ""] {
            assert!(check("port", value).expect_err(value).contains("1 to 65535"));
        }
    }

    #[test]
    fn only_loopback_is_listened_on() {
        let settings = check("listen_addresses", "localhost, 127.0.0.1,::1").expect("valid");
        assert_eq!(settings.listen, ["localhost", "127.0.0.1", "::1"]);
        assert_eq!(check("listen_addresses", "").expect("valid").listen, Vec::<String>::new());
        for value in ["*", "0.0.0.0", "::", "10.0.0.1", "localhost,example.org"] {
            let message = check("listen_addresses", value).expect_err(value);
            assert!(message.contains("other machines"), "{message}");
        }
    }

    #[test]
    fn reserved_and_malformed_names_are_refused() {
        for (name, words) in [
            ("HBA_FILE", "can't be changed"),
            ("unix-socket-directories", "can't be changed"),
            ("", "name consists"),
            ("a b", "name consists"),
            ("1x", "name consists"),
            ("x=y", "name consists"),
        ] {
            let message = check(name, "v").expect_err(name);
            assert!(message.contains(words), "{message}");
        }
        assert!(check("work_mem", "1\0").expect_err("zero byte").contains("zero byte"));
    }
}

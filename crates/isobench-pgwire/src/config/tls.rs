//! The parameters of encryption: certificates, versions, channel binding. They are values; no files
//! are read here.
//!
//! Source: PostgreSQL: libpq, Parameter Key Words, SSL Support.

use std::path::PathBuf;

use super::values::Values;
use super::{ConfigError, Env, account};

/// The parameters of encryption, relevant only for TCP.
///
/// It isn't an error here if files don't exist; connecting reports missing ones.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TlsOptions {
    /// The start of encryption. libpq: sslnegotiation.
    pub negotiation: SslNegotiation,
    /// The authorities that are trusted to certify servers; `None` if unspecified. libpq:
    /// sslrootcert.
    pub roots: Option<TlsRoots>,
    /// Lists of revoked certificates, if the file exists. libpq: sslcrl.
    pub revoked: Option<PathBuf>,
    /// A folder of such lists. libpq: sslcrldir.
    pub revoked_folder: Option<PathBuf>,
    /// The client's certificate, if the file exists. libpq: sslcert.
    pub certificate: Option<PathBuf>,
    /// The key to it. libpq: sslkey.
    pub key: Option<PathBuf>,
    /// The use of the client's certificate. libpq: sslcertmode.
    pub certificate_mode: SslCertMode,
    /// True to send the host's name to the server. libpq: sslsni.
    pub sni: bool,
    /// The lowest acceptable version. libpq: `ssl_min_protocol_version`.
    pub min_version: TlsVersion,
    /// The highest acceptable version. libpq: `ssl_max_protocol_version`.
    pub max_version: TlsVersion,
    /// The use of channel binding in authentication. libpq: `channel_binding`.
    pub channel_binding: ChannelBinding,
}

/// The use of encryption. Source: libpq: sslmode.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SslMode {
    /// Never.
    Disable,
    /// Only if the server requires it.
    Allow,
    /// If the server supports it.
    #[default]
    Prefer,
    /// Always.
    Require,
    /// Always, with a certificate of a trusted authority.
    VerifyCa,
    /// Always, with a certificate for the host.
    VerifyFull,
}

/// The start of encryption. Source: libpq: sslnegotiation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SslNegotiation {
    /// The server is asked whether it supports encryption.
    #[default]
    Postgres,
    /// Immediately, which saves a round trip (PostgreSQL 17 and later).
    Direct,
}

/// The authorities that are trusted to certify servers. Source: libpq: sslrootcert.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TlsRoots {
    /// The certificates in this file.
    File(PathBuf),
    /// The authorities that the system trusts.
    System,
}

/// The use of the client's certificate. Source: libpq: sslcertmode.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SslCertMode {
    /// Never.
    Disable,
    /// If there is one and the server requests it.
    #[default]
    Allow,
    /// The server must request it.
    Require,
}

/// A version of TLS. Older ones are not supported.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TlsVersion {
    /// 1.2.
    V12,
    /// 1.3.
    V13,
}

/// The use of channel binding in authentication. Source: libpq: `channel_binding`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// If the server supports it.
    #[default]
    Prefer,
    /// Always: a server that authenticates without it is refused.
    Require,
}

impl Default for TlsOptions {
    /// libpq's defaults without the files in a home folder.
    fn default() -> Self {
        Self {
            negotiation: SslNegotiation::default(),
            roots: None,
            revoked: None,
            revoked_folder: None,
            certificate: None,
            key: None,
            certificate_mode: SslCertMode::default(),
            sni: true,
            min_version: TlsVersion::V12,
            max_version: TlsVersion::V13,
            channel_binding: ChannelBinding::default(),
        }
    }
}

/// The version as written by libpq.
impl std::fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V12 => "TLSv1.2",
            Self::V13 => "TLSv1.3",
        })
    }
}

/// The encryption options, with defaults from the user's home folder.
pub(super) fn resolve(values: &Values, mode: SslMode, env: Env<'_>) -> Result<TlsOptions, ConfigError> {
    let home = account::home(env).map(|home| home.join(".postgresql"));
    let file = |name: &str, default: &str| {
        values.text(name).map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(default)))
    };
    let roots = match values.get("sslrootcert") {
        Some("system") => Some(TlsRoots::System),
        _ => file("sslrootcert", "root.crt").map(TlsRoots::File),
    };
    let (min_version, max_version) = versions(values)?;
    let options = TlsOptions {
        negotiation: values.choice(
            "sslnegotiation",
            &[("postgres", SslNegotiation::Postgres), ("direct", SslNegotiation::Direct)],
        )?,
        roots,
        // A specified folder replaces the default file.
        revoked: match values.get("sslcrldir") {
            Some(_) => values.text("sslcrl").map(PathBuf::from),
            None => file("sslcrl", "root.crl"),
        },
        revoked_folder: values.text("sslcrldir").map(PathBuf::from),
        certificate: file("sslcert", "postgresql.crt"),
        key: file("sslkey", "postgresql.key"),
        certificate_mode: values.choice(
            "sslcertmode",
            &[
                ("disable", SslCertMode::Disable),
                ("allow", SslCertMode::Allow),
                ("require", SslCertMode::Require),
            ],
        )?,
        // As in libpq, any value that doesn't start with 1 disables it.
        sni: values.get("sslsni").is_none_or(|value| value.starts_with('1')),
        min_version,
        max_version,
        channel_binding: values.choice(
            "channel_binding",
            &[
                ("disable", ChannelBinding::Disable),
                ("prefer", ChannelBinding::Prefer),
                ("require", ChannelBinding::Require),
            ],
        )?,
    };
    check(&options, mode, values)?;
    Ok(options)
}

/// Refuses modes weaker than the other options require.
fn check(options: &TlsOptions, mode: SslMode, values: &Values) -> Result<(), ConfigError> {
    let given = values.get("sslmode").unwrap_or("prefer");
    let is_weak = matches!(mode, SslMode::Disable | SslMode::Allow | SslMode::Prefer);
    if options.negotiation == SslNegotiation::Direct && is_weak {
        return Err(ConfigError::InvalidValue(format!(
            "weak sslmode \"{given}\" may not be used with sslnegotiation=direct (use \"require\", \"verify-ca\", or \
             \"verify-full\")"
        )));
    }
    if options.roots == Some(TlsRoots::System) && mode != SslMode::VerifyFull {
        return Err(ConfigError::InvalidValue(format!(
            "weak sslmode \"{given}\" may not be used with sslrootcert=system (use \"verify-full\")"
        )));
    }
    Ok(())
}

/// The names of versions in libpq, with their order.
const VERSIONS: [(&str, u8); 4] = [("tlsv1", 0), ("tlsv1.1", 1), ("tlsv1.2", 2), ("tlsv1.3", 3)];

/// The range of versions.
fn versions(values: &Values) -> Result<(TlsVersion, TlsVersion), ConfigError> {
    let rank = |name: &str| -> Result<Option<u8>, ConfigError> {
        let Some(value) = values.get(name) else {
            return Ok(None);
        };
        let found = VERSIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(value));
        let invalid = || ConfigError::InvalidValue(format!("invalid {name} value: \"{value}\""));
        found.map(|(_, rank)| Some(*rank)).ok_or_else(invalid)
    };
    let min = rank("ssl_min_protocol_version")?.unwrap_or(2);
    let max = rank("ssl_max_protocol_version")?;
    if max.is_some_and(|max| max < min) {
        return Err(ConfigError::InvalidValue("invalid SSL protocol version range".to_owned()));
    }
    let version = |rank: u8| if rank <= 2 { TlsVersion::V12 } else { TlsVersion::V13 };
    match max {
        // The whole range is older than the supported versions.
        Some(0 | 1) => Err(ConfigError::NotSupported {
            option: "ssl_max_protocol_version",
            value: values.text("ssl_max_protocol_version").unwrap_or_default(),
        }),
        max => Ok((version(min), max.map_or(TlsVersion::V13, version))),
    }
}

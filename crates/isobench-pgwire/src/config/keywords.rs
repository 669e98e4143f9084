//! Every connection option of libpq (version 18): its variable and its treatment in isobench.
//!
//! Source: PostgreSQL: libpq, Parameter Key Words, Environment Variables.

use super::ConfigError;
use super::error::ELIDED;

/// A connection option.
#[derive(Debug)]
pub(super) struct Keyword {
    /// Its name in connection strings.
    pub(super) name: &'static str,
    /// The environment variable that provides its default; empty if there is none.
    pub(super) variable: &'static str,
    /// Its treatment in isobench.
    pub(super) treatment: Treatment,
}

/// The treatment of an option in isobench.
#[derive(Clone, Copy, Debug)]
pub(super) enum Treatment {
    /// It is used.
    Used,
    /// It is relevant only for GSSAPI, OAuth or encrypted keys, which isobench doesn't support, or
    /// not at all, so it can safely be ignored.
    WithoutEffect,
    /// The first values are isobench's behaviour anyway; the second ones are known and not
    /// supported.
    Choice(&'static [&'static str], &'static [&'static str]),
    /// Any value except an empty one requests an unsupported feature, which is an error.
    NotSupported,
}

use Treatment::{Choice, NotSupported, Used, WithoutEffect};

const fn row(name: &'static str, variable: &'static str, treatment: Treatment) -> Keyword {
    Keyword { name, variable, treatment }
}

/// All options, in libpq's order.
pub(super) const KEYWORDS: &[Keyword] = &[
    row("service", "PGSERVICE", Used),
    row("servicefile", "PGSERVICEFILE", Used),
    row("user", "PGUSER", Used),
    row("password", "PGPASSWORD", Used),
    row("passfile", "PGPASSFILE", Used),
    row("channel_binding", "PGCHANNELBINDING", Used),
    row("connect_timeout", "PGCONNECT_TIMEOUT", Used),
    row("dbname", "PGDATABASE", Used),
    row("host", "PGHOST", Used),
    row("hostaddr", "PGHOSTADDR", Used),
    row("port", "PGPORT", Used),
    row("client_encoding", "PGCLIENTENCODING", Used),
    row("options", "PGOPTIONS", Used),
    row("application_name", "PGAPPNAME", Used),
    row("fallback_application_name", "", Used),
    row("keepalives", "", Used),
    row("keepalives_idle", "", Used),
    row("keepalives_interval", "", Used),
    row("keepalives_count", "", Used),
    row("tcp_user_timeout", "", Used),
    row("sslmode", "PGSSLMODE", Used),
    row("sslnegotiation", "PGSSLNEGOTIATION", Used),
    row("sslcompression", "PGSSLCOMPRESSION", WithoutEffect),
    row("sslcert", "PGSSLCERT", Used),
    row("sslkey", "PGSSLKEY", Used),
    row("sslkeylogfile", "", NotSupported),
    row("sslcertmode", "PGSSLCERTMODE", Used),
    row("sslpassword", "", WithoutEffect),
    row("sslrootcert", "PGSSLROOTCERT", Used),
    row("sslcrl", "PGSSLCRL", Used),
    row("sslcrldir", "PGSSLCRLDIR", Used),
    row("sslsni", "PGSSLSNI", Used),
    row("requirepeer", "PGREQUIREPEER", NotSupported),
    row("require_auth", "PGREQUIREAUTH", NotSupported),
    row("min_protocol_version", "PGMINPROTOCOLVERSION", Choice(&["3.0"], &["3.2", "latest"])),
    row("max_protocol_version", "PGMAXPROTOCOLVERSION", Choice(&["3.0", "3.2", "latest"], &[])),
    row("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", Used),
    row("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", Used),
    row("gssencmode", "PGGSSENCMODE", Choice(&["disable", "prefer"], &["require"])),
    row("krbsrvname", "PGKRBSRVNAME", WithoutEffect),
    row("gsslib", "PGGSSLIB", WithoutEffect),
    row("gssdelegation", "PGGSSDELEGATION", WithoutEffect),
    row("replication", "", Choice(&["0", "false", "off", "no"], &["1", "true", "on", "yes", "database"])),
    row("target_session_attrs", "PGTARGETSESSIONATTRS", Used),
    row("load_balance_hosts", "PGLOADBALANCEHOSTS", Choice(&["disable"], &["random"])),
    row("scram_client_key", "", NotSupported),
    row("scram_server_key", "", NotSupported),
    row("oauth_issuer", "", WithoutEffect),
    row("oauth_client_id", "", WithoutEffect),
    row("oauth_client_secret", "", WithoutEffect),
    row("oauth_scope", "", WithoutEffect),
];

/// Options whose values are never displayed.
const SECRETS: [&str; 5] =
    ["password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret"];

/// True if the value of an option is never displayed.
pub(super) fn is_secret(name: &str) -> bool {
    SECRETS.contains(&name)
}

/// The option with this name.
pub(super) fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name)
}

impl Keyword {
    /// Checks a value of an option that isobench doesn't use.
    pub(super) fn check(&self, value: &str) -> Result<(), ConfigError> {
        if value.is_empty() {
            return Ok(());
        }
        match self.treatment {
            Used | WithoutEffect => Ok(()),
            Choice(same, _) if same.contains(&value) => Ok(()),
            Choice(_, unsupported) if !unsupported.contains(&value) => {
                Err(ConfigError::InvalidValue(format!("invalid {} value: \"{value}\"", self.name)))
            }
            Choice(..) | NotSupported => {
                let value = if is_secret(self.name) { ELIDED } else { value };
                Err(ConfigError::NotSupported { option: self.name, value: value.to_owned() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_unique() {
        for (index, keyword) in KEYWORDS.iter().enumerate() {
            let same = |other: &Keyword| {
                other.name == keyword.name
                    || !keyword.variable.is_empty() && other.variable == keyword.variable
            };
            assert!(!KEYWORDS[index + 1..].iter().any(same), "{}", keyword.name);
        }
    }

    #[test]
    fn what_is_not_supported_is_said() {
        let check = |name: &str, value: &str| find(name).map(|keyword| keyword.check(value));
        assert_eq!(check("gssencmode", "prefer"), Some(Ok(())));
        assert_eq!(check("requirepeer", ""), Some(Ok(())));
        assert_eq!(check("sslcert", "client.crt"), Some(Ok(())));
        assert!(matches!(check("requirepeer", "postgres"), Some(Err(ConfigError::NotSupported { .. }))));
        let invalid = check("gssencmode", "x");
        assert_eq!(
            invalid,
            Some(Err(ConfigError::InvalidValue("invalid gssencmode value: \"x\"".to_owned())))
        );
    }
}

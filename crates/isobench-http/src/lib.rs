//! How isobench itself asks over HTTP: for PostgreSQL's programs, and to hand metrics to a collector.
//!
//! Servers are verified as in the rest of the system: by `SSL_CERT_FILE` and `SSL_CERT_DIR`, or the
//! system's certificates. Must not know what is asked for. Names of hosts: `resolver`.

mod resolver;

use std::sync::Arc;
use std::time::Duration;

use ureq::config::Config;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Proxy};

use crate::resolver::SystemResolver;

/// There is nothing to verify servers by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system has no certificates to check a server by (install ca-certificates)")]
pub struct NoCertificates;

/// An agent for requests over HTTPS, each within a time limit, that follows redirections.
///
/// # Errors
/// The system has no certificates.
pub fn secure_agent(limit: Duration, proxy: Option<Proxy>) -> Result<Agent, NoCertificates> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(NoCertificates);
    }
    let roots = found.certs.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = Agent::config_builder()
        .tls_config(tls.build())
        .proxy(proxy)
        .user_agent(USER_AGENT)
        .timeout_global(Some(limit));
    Ok(with(config.build()))
}

/// An agent for requests over plain HTTP, each within a time limit, without a proxy.
pub fn plain_agent(limit: Duration) -> Agent {
    let config = Agent::config_builder().proxy(None).user_agent(USER_AGENT).timeout_global(Some(limit));
    with(config.build())
}

const USER_AGENT: &str = concat!("isobench/", env!("CARGO_PKG_VERSION"));

fn with(config: Config) -> Agent {
    Agent::with_parts(config, DefaultConnector::default(), SystemResolver)
}

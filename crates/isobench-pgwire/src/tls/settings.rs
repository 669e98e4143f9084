//! Conversion of options, and the files they name, to rustls' configuration.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use webpki::BorrowedCertRevocationList;

use super::TlsClient;
use super::client_certificate::Shown;
use super::verify::{Trusted, Verifier};
use crate::config::{Address, Host, SslCertMode, SslMode, TlsOptions, TlsRoots, TlsVersion};
use crate::error_text::errno_text;

/// The name of PostgreSQL's protocol within TLS.
const PROTOCOL: &[u8] = b"postgresql";

/// The input of a configuration, and the configuration.
type Known = ((SslMode, TlsOptions), Arc<ClientConfig>);

/// The latest configuration: the thousand sessions of a benchmark share one, and read its files
/// once.
static LAST: Mutex<Option<Known>> = Mutex::new(None);

impl TlsClient {
    /// Returns the settings for encrypting connections to this host.
    ///
    /// # Errors
    /// A required file can't be used; libpq's sentence.
    pub(crate) fn new(mode: SslMode, options: &TlsOptions, host: &Host) -> Result<Self, String> {
        let name = match &host.address {
            Address::Tcp(name) => name.as_str(),
            Address::Unix(_) => "",
        };
        let (config, shown) = if options.certificate_mode == SslCertMode::Require {
            // Not shared, because each session records whether the server requests a certificate.
            let (config, shown) = configure(mode, options)?;
            (Arc::new(config), Some(shown))
        } else {
            (shared(mode, options)?, None)
        };
        Ok(Self {
            config,
            shown,
            direct: Self::begins_at_once(options),
            versions: (options.min_version, options.max_version),
            // Addresses aren't sent, nor are names that can't occur in a certificate.
            name: ServerName::try_from(name.to_owned())
                .unwrap_or_else(|_| ServerName::from(std::net::IpAddr::from([0, 0, 0, 0]))),
            verified: (mode == SslMode::VerifyFull).then(|| name.to_owned()),
        })
    }
}

/// Returns the configuration for these options, a new one unless they are the same as before.
fn shared(mode: SslMode, options: &TlsOptions) -> Result<Arc<ClientConfig>, String> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(((known_mode, known_options), config)) = last.as_ref()
        && *known_mode == mode
        && known_options == options
    {
        return Ok(Arc::clone(config));
    }
    let config = Arc::new(configure(mode, options)?.0);
    *last = Some(((mode, options.clone()), Arc::clone(&config)));
    Ok(config)
}

fn configure(mode: SslMode, options: &TlsOptions) -> Result<(ClientConfig, Arc<Shown>), String> {
    let provider = Arc::new(ring::default_provider());
    let trusted = trusted(mode, options, &provider)?;
    let verifier = Verifier { trusted, algorithms: provider.signature_verification_algorithms };
    let shown = Arc::new(Shown::load(options, &provider)?);
    let mut config = builder(provider, options)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::clone(&shown) as _);
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.enable_sni = options.sni;
    // PostgreSQL doesn't support resumption, and each session should measure a full handshake.
    config.resumption = Resumption::disabled();
    Ok((config, shown))
}

fn builder(
    provider: Arc<CryptoProvider>,
    options: &TlsOptions,
) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    let all: [(TlsVersion, &'static SupportedProtocolVersion); 2] =
        [(TlsVersion::V12, &TLS12), (TlsVersion::V13, &TLS13)];
    let range = options.min_version..=options.max_version;
    let versions: Vec<_> =
        all.iter().filter(|(version, _)| range.contains(version)).map(|(_, version)| *version).collect();
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&versions);
    builder.map_err(|error| format!("could not create SSL context: {error}"))
}

/// Returns the trusted authorities; `None`: any server is trusted, as in libpq if there is no file
/// of authorities and none is required.
fn trusted(
    mode: SslMode,
    options: &TlsOptions,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Trusted>, String> {
    let certificates = match &options.roots {
        Some(TlsRoots::System) => system_certificates()?,
        Some(TlsRoots::File(path)) if path.exists() => read_certificates(path)?,
        roots => {
            if !matches!(mode, SslMode::VerifyCa | SslMode::VerifyFull) {
                return Ok(None);
            }
            let missing = match roots {
                Some(TlsRoots::File(path)) => {
                    format!("root certificate file \"{}\" does not exist", path.display())
                }
                _ => "could not get home directory to locate root certificate file".to_owned(),
            };
            return Err(format!(
                "{missing}\nEither provide the file, use the system's trusted roots with sslrootcert=system, or change \
                 sslmode to disable server certificate verification."
            ));
        }
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates.iter().cloned());
    let revoked = revoked(options)?;
    let certificates = if revoked.is_empty() { certificates } else { Vec::new() };
    let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .with_crls(revoked)
        .build()
        .map_err(|error| format!("could not create SSL context: {error}"))?;
    Ok(Some(Trusted { chains, certificates }))
}

fn system_certificates() -> Result<Vec<CertificateDer<'static>>, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let why = found.errors.first().map_or_else(|| "none are found".to_owned(), ToString::to_string);
        return Err(format!("could not load system root certificate paths: {why}"));
    }
    Ok(found.certs)
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable =
        |why: &str| format!("could not read root certificate file \"{}\": {why}", path.display());
    let pem = fs::read(path).map_err(|error| unreadable(&errno_text(&error)))?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    if certificates.is_empty() { Err(unreadable("no certificate or crl found")) } else { Ok(certificates) }
}

/// Reads the lists of revoked certificates that exist.
fn revoked(options: &TlsOptions) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let mut lists = Vec::new();
    if let Some(path) = options.revoked.as_deref().filter(|path| path.exists()) {
        lists.extend(read_revoked(path)?);
    }
    if let Some(folder) = &options.revoked_folder {
        let unreadable = |error: &std::io::Error| {
            format!("could not read SSL CRL directory \"{}\": {}", folder.display(), errno_text(error))
        };
        for entry in fs::read_dir(folder).map_err(|error| unreadable(&error))? {
            lists.extend(read_revoked(&entry.map_err(|error| unreadable(&error))?.path())?);
        }
    }
    Ok(lists)
}

/// Reads the lists in one file. An unusable list is an error: continuing without it would trust the
/// certificates that it revokes.
fn read_revoked(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let unreadable = |why: &str| format!("could not read SSL CRL file \"{}\": {why}", path.display());
    let pem = fs::read(path).map_err(|error| unreadable(&errno_text(&error)))?;
    let mut lists = Vec::new();
    for list in CertificateRevocationListDer::pem_slice_iter(&pem) {
        let list = list.map_err(|error| unreadable(&error.to_string()))?;
        // Parsed here as well, because the file's name is known here.
        BorrowedCertRevocationList::from_der(&list).map_err(|error| unreadable(&error.to_string()))?;
        lists.push(list);
    }
    if lists.is_empty() { Err(unreadable("no certificate or crl found")) } else { Ok(lists) }
}

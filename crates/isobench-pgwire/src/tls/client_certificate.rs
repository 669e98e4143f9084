//! The client's certificate, for servers that request one.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::certificate;
use crate::config::{SslCertMode, TlsOptions};
use crate::error_text::errno_text;

/// The client's certificate, and whether a server has requested it.
#[derive(Debug)]
pub(super) struct Shown {
    certificate: Option<Arc<CertifiedKey>>,
    shown: AtomicBool,
}

impl Shown {
    /// Reads certificate and key, if there is a certificate and the options allow it to be sent.
    ///
    /// # Errors
    /// One of the files can't be used; libpq's sentence.
    pub(super) fn load(options: &TlsOptions, provider: &CryptoProvider) -> Result<Self, String> {
        let path = options.certificate.as_deref().filter(|path| path.exists());
        let certificate = match path {
            Some(path) if options.certificate_mode != SslCertMode::Disable => {
                Some(Arc::new(load(path, options.key.as_deref(), provider)?))
            }
            _ => None,
        };
        Ok(Self { certificate, shown: AtomicBool::new(false) })
    }

    /// Returns whether the certificate has been sent to a server.
    pub(super) fn was_shown(&self) -> bool {
        self.shown.load(Ordering::Relaxed)
    }
}

/// Ignores the list of authorities that the server accepts, as libpq does: it always sends its one
/// certificate.
impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.shown.store(self.certificate.is_some(), Ordering::Relaxed);
        self.certificate.clone()
    }

    fn has_certs(&self) -> bool {
        self.certificate.is_some()
    }
}

fn load(path: &Path, key: Option<&Path>, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    let unreadable = |why: &str| format!("could not read certificate file \"{}\": {why}", path.display());
    let pem = fs::read(path).map_err(|error| unreadable(&errno_text(&error)))?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    let first = chain.first().ok_or_else(|| unreadable("no start line"))?;
    let of_certificate = certificate::key(first).ok_or_else(|| unreadable("bad certificate"))?;
    let missing =
        |path: &Path| format!("certificate present, but not private key file \"{}\"", path.display());
    let key_path = key.ok_or_else(|| missing(Path::new("")))?;
    let bytes = read_key(key_path)?.ok_or_else(|| missing(key_path))?;
    let unusable = |why: &str| format!("could not load private key file \"{}\": {why}", key_path.display());
    let key = match PrivateKeyDer::from_pem_slice(&bytes) {
        Ok(key) => key,
        Err(_) if is_encrypted(&bytes) => {
            return Err(unusable(
                "isobench does not support encrypted keys; take the password off, for instance by openssl pkey",
            ));
        }
        // As with libpq, the key may be in the binary form.
        Err(_) => PrivateKeyDer::try_from(bytes).map_err(|_| unusable("no start line"))?,
    };
    let key = provider.key_provider.load_private_key(key).map_err(|error| unusable(&error.to_string()))?;
    if key.public_key().is_some_and(|key| key != of_certificate) {
        return Err(unusable("key values mismatch"));
    }
    Ok(CertifiedKey::new(chain, key))
}

/// Reads a key, which must be inaccessible to other users; `None`: the file doesn't exist.
fn read_key(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let unreadable = |error: &std::io::Error| {
        format!("could not open private key file \"{}\": {}", path.display(), errno_text(error))
    };
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    let metadata = file.metadata().map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        return Err(format!("private key file \"{}\" is not a regular file", path.display()));
    }
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & forbidden != 0 {
        return Err(format!(
            "private key file \"{}\" has group or world access; file must have permissions u=rw (0600) or less if \
             owned by the current user, or permissions u=rw,g=r (0640) or less if owned by root",
            path.display()
        ));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    Ok(Some(bytes))
}

/// Returns whether a key requires a password.
fn is_encrypted(pem: &[u8]) -> bool {
    let text = String::from_utf8_lossy(pem);
    text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED")
}

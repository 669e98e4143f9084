//! Generates certificates for a test.

use std::fs;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType, IsCa,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate with its chain, and its key.
pub struct Identity {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    pub pem: String,
    serial: Option<SerialNumber>,
}

/// The properties of a server's certificate.
pub struct Wanted<'a> {
    pub names: &'a [&'a str],
    pub common: &'a str,
    pub expired: bool,
}

impl Wanted<'_> {
    fn params(&self) -> CertificateParams {
        let names: Vec<String> = self.names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, self.common);
        params.serial_number = Some(SerialNumber::from(4711));
        if self.expired {
            params.not_after = date_time_ymd(2001, 1, 1);
            params.not_before = date_time_ymd(2000, 1, 1);
        }
        params
    }
}

/// An authority that signs certificates.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// The chain between the authority and the certificates that it signs.
    chain: Vec<CertificateDer<'static>>,
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(authority_params(name), key).expect("a certificate");
        Self { issuer, chain: Vec::new() }
    }

    /// An authority below this one.
    pub fn below(&self, name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let issuer =
            CertifiedIssuer::signed_by(authority_params(name), key, &self.issuer).expect("a certificate");
        let chain = vec![issuer.der().clone()];
        Self { issuer, chain }
    }

    pub fn sign(&self, wanted: &Wanted<'_>) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let params = wanted.params();
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let chain = [certificate.der().clone()].into_iter().chain(self.chain.iter().cloned()).collect();
        Identity { chain, key: private(&key), pem: certificate.pem(), serial: params.serial_number }
    }

    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A list of revoked certificates.
    pub fn revoking(&self, identities: &[&Identity]) -> String {
        let revoked = |identity: &&Identity| RevokedCertParams {
            serial_number: identity.serial.clone().expect("a number"),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(2100, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: identities.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).expect("a list").pem().expect("a text")
    }
}

/// A self-signed certificate, marked as an authority's, as `openssl req -x509` does.
pub fn self_signed(wanted: &Wanted<'_>) -> Identity {
    let key = KeyPair::generate().expect("a key");
    let mut params = wanted.params();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).expect("a certificate");
    Identity {
        chain: vec![certificate.der().clone()],
        key: private(&key),
        pem: certificate.pem(),
        serial: params.serial_number,
    }
}

fn private(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()))
}

/// Writes a file in the test's folder.
pub fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("a file");
    path
}

//! Which servers' certificates are trusted: any, or those that a trusted authority has signed.
//!
//! Chains are checked by webpki, the library under rustls. It is stricter than OpenSSL in two ways
//! that matter with PostgreSQL, whose manual leads to certificates of version 1 and to servers that
//! show the very certificate that the clients trust. For these two, and only where no lists of
//! revoked certificates are at work, a certificate counts that a trusted one has signed directly,
//! or that is itself a trusted one. Not here: host names (`certificate.rs`).

use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerMisbehaved, SignatureScheme};
use webpki::{CertRevocationList, EndEntityCert, KeyUsage, RawPublicKeyEntity, RevocationOptionsBuilder};
use x509_cert::der::Encode as _;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, NameConstraints};

use super::certificate::{self, Certificate};

/// The purpose of a server's certificate. Source: RFC 5280, section 4.2.1.12.
const SERVER_AUTHENTICATION: &str = "1.3.6.1.5.5.7.3.1";

/// The certificates that are trusted, and the lists of those that are no longer.
#[derive(Debug)]
pub(super) struct Trusted {
    pub(super) anchors: Vec<TrustAnchor<'static>>,
    pub(super) certificates: Vec<CertificateDer<'static>>,
    pub(super) revoked: Vec<CertRevocationList<'static>>,
}

/// Verifies servers' certificates.
#[derive(Debug)]
pub(super) struct Verifier {
    /// `None`: any certificate will do.
    pub(super) trusted: Option<Trusted>,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    /// Checks a signature by the key of a certificate, whatever else the certificate says.
    fn check_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let bad = |error| Error::InvalidCertificate(error);
        let key = certificate::key(certificate).ok_or_else(|| bad(CertificateError::BadEncoding))?;
        let key = RawPublicKeyEntity::try_from(&key).map_err(|_| bad(CertificateError::BadEncoding))?;
        let candidates = self.algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
        let Some((_, candidates)) = candidates else {
            return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
        };
        let is_valid = |algorithm: &&dyn rustls::pki_types::SignatureVerificationAlgorithm| {
            key.verify_signature(*algorithm, message, signed.signature()).is_ok()
        };
        if candidates.iter().any(is_valid) {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(bad(CertificateError::BadSignature))
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_trusted = match &self.trusted {
            None => true,
            Some(trusted) => trusted.trusts(certificate, intermediates, now, &self.algorithms),
        };
        if is_trusted {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // TLS 1.3 has no PKCS#1 signatures in the handshake.
        let is_old = matches!(
            signed.scheme,
            SignatureScheme::RSA_PKCS1_SHA256
                | SignatureScheme::RSA_PKCS1_SHA384
                | SignatureScheme::RSA_PKCS1_SHA512
        );
        if is_old {
            return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
        }
        self.check_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl Trusted {
    /// Whether a chain leads from the certificate to a trusted one.
    fn trusts(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> bool {
        let lists: Vec<_> = self.revoked.iter().collect();
        let revocation = match RevocationOptionsBuilder::new(&lists) {
            Ok(builder) => Some(builder.build()),
            // There are none.
            Err(_) => None,
        };
        let checked = EndEntityCert::try_from(certificate).and_then(|parsed| {
            let usage = KeyUsage::server_auth();
            parsed
                .verify_for_usage(algorithms.all, &self.anchors, intermediates, now, usage, revocation, None)
                .map(drop)
        });
        match checked {
            Ok(()) => true,
            Err(webpki::Error::UnsupportedCertVersion | webpki::Error::CaUsedAsEndEntity) => {
                self.revoked.is_empty() && self.trusts_directly(certificate, now, algorithms)
            }
            Err(_) => false,
        }
    }

    /// Whether the certificate is a trusted one that stands for itself, or is signed by a trusted
    /// one.
    fn trusts_directly(
        &self,
        certificate: &CertificateDer<'_>,
        now: UnixTime,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> bool {
        let Some(parsed) = certificate::parse(certificate) else {
            return false;
        };
        let tbs = parsed.tbs_certificate();
        if !is_current(&parsed, now) || !is_for_servers(&parsed) {
            return false;
        }
        if tbs.subject() == tbs.issuer() && self.certificates.contains(certificate) {
            return true;
        }
        self.certificates.iter().any(|issuer| {
            let Some(parsed_issuer) = certificate::parse(issuer) else {
                return false;
            };
            parsed_issuer.tbs_certificate().subject() == tbs.issuer()
                && is_current(&parsed_issuer, now)
                && may_issue(&parsed_issuer)
                && is_signed(&parsed, issuer, algorithms)
        })
    }
}

fn is_current(certificate: &Certificate, now: UnixTime) -> bool {
    let validity = certificate.tbs_certificate().validity();
    let now = Duration::from_secs(now.as_secs());
    validity.not_before.to_unix_duration() <= now && now <= validity.not_after.to_unix_duration()
}

/// Whether the certificate may be a server's: it names that purpose or none.
fn is_for_servers(certificate: &Certificate) -> bool {
    match certificate.tbs_certificate().get_extension::<ExtendedKeyUsage>() {
        Ok(None) => true,
        Ok(Some((_, ExtendedKeyUsage(purposes)))) => {
            purposes.iter().any(|purpose| purpose.to_string() == SERVER_AUTHENTICATION)
        }
        Err(_) => false,
    }
}

/// Whether the certificate is an authority's, or so old that it can't say. One that limits names is
/// left to webpki.
fn may_issue(certificate: &Certificate) -> bool {
    let tbs = certificate.tbs_certificate();
    let is_authority = match tbs.get_extension::<BasicConstraints>() {
        Ok(Some((_, constraints))) => constraints.ca,
        Ok(None) => tbs.extensions().is_none(),
        Err(_) => false,
    };
    is_authority && matches!(tbs.get_extension::<NameConstraints>(), Ok(None))
}

/// Whether the signature of a certificate is that of its issuer.
fn is_signed(
    certificate: &Certificate,
    issuer: &CertificateDer<'_>,
    algorithms: &WebPkiSupportedAlgorithms,
) -> bool {
    let checked = || -> Option<bool> {
        let message = certificate.tbs_certificate().to_der().ok()?;
        let signature = certificate.signature().as_bytes()?;
        // Without the outer tag and length, as webpki knows algorithms.
        let algorithm = certificate.signature_algorithm().to_der().ok()?;
        let key = certificate::key(issuer)?;
        let key = RawPublicKeyEntity::try_from(&key).ok()?;
        let same = algorithms.all.iter().filter(|known| {
            algorithm.get(2..).is_some_and(|value| value == known.signature_alg_id().as_ref())
        });
        Some(same.into_iter().any(|known| key.verify_signature(*known, &message, signature).is_ok()))
    };
    checked().unwrap_or(false)
}

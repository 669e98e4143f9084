//! Verification of servers' certificates: any, or those signed by a trusted authority.
//!
//! Chains are checked by rustls' own verifier, which is webpki. It is stricter than OpenSSL in two
//! ways that matter with PostgreSQL, whose manual leads to certificates of version 1 and to servers
//! that present the same certificate that the clients trust. For these two cases, and only without
//! lists of revoked certificates, a certificate is accepted that a trusted one has signed directly,
//! or that is itself a trusted one. Not here: host names (`certificate.rs`), for which libpq's
//! rules differ from webpki's.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SignatureVerificationAlgorithm, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use webpki::RawPublicKeyEntity;
use x509_cert::der::Encode as _;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, NameConstraints};

use super::certificate::{self, Certificate};

/// The purpose of a server's certificate. Source: RFC 5280, section 4.2.1.12.
const SERVER_AUTHENTICATION: &str = "1.3.6.1.5.5.7.3.1";

/// Verifies servers' certificates.
#[derive(Debug)]
pub(super) struct Verifier {
    /// `None`: any certificate is accepted.
    pub(super) trusted: Option<Trusted>,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

/// The certificates that are trusted.
#[derive(Debug)]
pub(super) struct Trusted {
    pub(super) chains: Arc<WebPkiServerVerifier>,
    /// Certificates accepted as issuers where webpki can't parse the chain; empty if there are
    /// lists of revoked certificates.
    pub(super) certificates: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let accepted = Ok(ServerCertVerified::assertion());
        let Some(trusted) = &self.trusted else {
            return accepted;
        };
        match trusted.chains.verify_server_cert(certificate, intermediates, name, ocsp_response, now) {
            // The name is checked last, so everything else is valid.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => accepted,
            Err(error)
                if is_strictness(&error) && trusted.trusts_directly(certificate, now, &self.algorithms) =>
            {
                accepted
            }
            result => result,
        }
    }

    /// rustls' own function for this can't parse certificates of version 1.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let same = self.algorithms.mapping.iter().filter(|(scheme, _)| *scheme == signed.scheme);
        if is_signed(message, signed.signature(), certificate, same.flat_map(|(_, algorithms)| *algorithms)) {
            Ok(HandshakeSignatureValid::assertion())
        } else {
            Err(CertificateError::BadSignature.into())
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = certificate::key(certificate).ok_or(CertificateError::BadEncoding)?;
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Returns whether webpki refused a certificate for its version, or because it is an authority's.
fn is_strictness(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) = error else {
        return false;
    };
    matches!(
        cause.downcast_ref(),
        Some(webpki::Error::UnsupportedCertVersion | webpki::Error::CaUsedAsEndEntity)
    )
}

impl Trusted {
    /// Returns whether the certificate is a trusted self-signed one, or signed by a trusted one.
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
                && is_issued(&parsed, issuer, algorithms)
        })
    }
}

fn is_current(certificate: &Certificate, now: UnixTime) -> bool {
    let validity = certificate.tbs_certificate().validity();
    let now = Duration::from_secs(now.as_secs());
    validity.not_before.to_unix_duration() <= now && now <= validity.not_after.to_unix_duration()
}

/// Returns whether the certificate may be used by a server: it lists that purpose or none.
fn is_for_servers(certificate: &Certificate) -> bool {
    match certificate.tbs_certificate().get_extension::<ExtendedKeyUsage>() {
        Ok(None) => true,
        Ok(Some((_, ExtendedKeyUsage(purposes)))) => {
            purposes.iter().any(|purpose| purpose.to_string() == SERVER_AUTHENTICATION)
        }
        Err(_) => false,
    }
}

/// Returns whether the certificate is an authority's, or of a version that doesn't state it.
/// Certificates with name constraints are left to webpki.
fn may_issue(certificate: &Certificate) -> bool {
    let tbs = certificate.tbs_certificate();
    let is_authority = match tbs.get_extension::<BasicConstraints>() {
        Ok(Some((_, constraints))) => constraints.ca,
        Ok(None) => tbs.extensions().is_none(),
        Err(_) => false,
    };
    is_authority && matches!(tbs.get_extension::<NameConstraints>(), Ok(None))
}

/// Returns whether the issuer's key made the signature of a certificate.
fn is_issued(
    certificate: &Certificate,
    issuer: &CertificateDer<'_>,
    algorithms: &WebPkiSupportedAlgorithms,
) -> bool {
    let (Ok(message), Some(signature), Ok(algorithm)) = (
        certificate.tbs_certificate().to_der(),
        certificate.signature().as_bytes(),
        certificate.signature_algorithm().to_der(),
    ) else {
        return false;
    };
    // Without the outer tag and length, as webpki stores algorithms.
    let same = |known: &&&dyn SignatureVerificationAlgorithm| {
        algorithm.get(2..).is_some_and(|value| value == known.signature_alg_id().as_ref())
    };
    is_signed(&message, signature, issuer, algorithms.all.iter().filter(same))
}

/// Returns whether a signature was made with the key of a certificate and one of these algorithms,
/// regardless of the certificate's other contents.
fn is_signed<'a>(
    message: &[u8],
    signature: &[u8],
    signer: &CertificateDer<'_>,
    algorithms: impl IntoIterator<Item = &'a &'static dyn SignatureVerificationAlgorithm>,
) -> bool {
    let Some(key) = certificate::key(signer) else {
        return false;
    };
    let Ok(key) = RawPublicKeyEntity::try_from(&key) else {
        return false;
    };
    algorithms.into_iter().any(|algorithm| key.verify_signature(*algorithm, message, signature).is_ok())
}

//! The contents of a certificate: its names, its key, its issuer, and the hash that binds
//! authentication to it.
//!
//! Not here: trust in it (`verify.rs`).

use std::net::IpAddr;

use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// The common name among the attributes of a subject.
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// A certificate, parsed leniently: a client needn't reject unusual serial numbers and dates.
pub(super) type Certificate = CertificateInner<Raw>;

/// Parses a certificate.
pub(super) fn parse(certificate: &CertificateDer<'_>) -> Option<Certificate> {
    Certificate::from_der(certificate).ok()
}

/// Returns the public key of a certificate, in the form used to compare keys and check signatures.
pub(super) fn key(certificate: &CertificateDer<'_>) -> Option<SubjectPublicKeyInfoDer<'static>> {
    let parsed = parse(certificate)?;
    let key = parsed.tbs_certificate().subject_public_key_info().to_der().ok()?;
    Some(SubjectPublicKeyInfoDer::from(key))
}

/// Returns the data of the channel binding `tls-server-end-point`: the certificate's hash by the
/// algorithm of its signature, but never by a weaker one than SHA-256. `None` where that algorithm
/// has no hash of its own (Ed25519) or hides it (RSA-PSS). Source: RFC 5929, section 4.1; RFC 8017,
/// appendix C; RFC 5758, section 3.2.
pub(super) fn end_point(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let algorithm = parse(certificate)?.signature_algorithm().oid.to_string();
    Some(match algorithm.as_str() {
        // The first is MD5, the two that follow are SHA-1.
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.10045.4.1"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.3.2" => Sha256::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.14" | "1.2.840.10045.4.3.1" => Sha224::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => Sha384::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => Sha512::digest(certificate).to_vec(),
        _ => return None,
    })
}

/// The names for which a certificate is valid.
#[derive(Debug, Default)]
struct Names {
    /// Host names, and any other text in their place.
    dns: Vec<String>,
    addresses: Vec<Vec<u8>>,
    common: Option<String>,
}

impl Names {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        let mut names = Self::default();
        let Some(parsed) = parse(certificate) else {
            return names;
        };
        let tbs = parsed.tbs_certificate();
        let common = tbs.subject().iter().filter(|attribute| attribute.oid == COMMON_NAME);
        names.common = common
            .filter_map(|attribute| std::str::from_utf8(attribute.value.value()).ok())
            .map(str::to_owned)
            .last();
        if let Ok(Some((_, SubjectAltName(alternatives)))) = tbs.get_extension::<SubjectAltName>() {
            for name in alternatives {
                match name {
                    GeneralName::DnsName(name) => names.dns.push(name.to_string()),
                    GeneralName::IpAddress(address) => names.addresses.push(address.as_bytes().to_vec()),
                    _ => {}
                }
            }
        }
        names
    }

    /// Returns every name, as messages show it, the alternative names first.
    fn all(&self) -> Vec<String> {
        let address = |bytes: &Vec<u8>| {
            let four = <[u8; 4]>::try_from(bytes.as_slice()).map(IpAddr::from);
            four.or_else(|_| <[u8; 16]>::try_from(bytes.as_slice()).map(IpAddr::from))
                .map_or_else(|_| "an address of unknown length".to_owned(), |address| address.to_string())
        };
        let alternatives: Vec<_> =
            self.dns.iter().cloned().chain(self.addresses.iter().map(address)).collect();
        if alternatives.is_empty() { self.common.iter().cloned().collect() } else { alternatives }
    }

    /// Returns whether the certificate is valid for this host.
    ///
    /// Source: PostgreSQL: libpq, Client Verification of Server Certificates.
    fn are_for(&self, host: &str) -> bool {
        if let Ok(address) = host.parse::<IpAddr>() {
            let bytes = match address {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            };
            return self.addresses.contains(&bytes)
                || self.dns.iter().any(|name| name == host)
                || self.addresses.is_empty() && self.common.as_deref() == Some(host);
        }
        if self.dns.is_empty() {
            self.common.as_deref().is_some_and(|name| is_for(name, host))
        } else {
            self.dns.iter().any(|name| is_for(name, host))
        }
    }
}

/// Returns whether a name, which may start with `*.`, matches this host. The asterisk matches
/// exactly one label.
fn is_for(name: &str, host: &str) -> bool {
    if name.eq_ignore_ascii_case(host) {
        return true;
    }
    let Some(suffix) = name.strip_prefix('*').filter(|suffix| suffix.len() > 1 && suffix.starts_with('.'))
    else {
        return false;
    };
    let Some(split) = host.find('.').filter(|&split| split > 0) else {
        return false;
    };
    host.is_char_boundary(split) && host[split..].eq_ignore_ascii_case(suffix)
}

/// Checks that a certificate is valid for this host.
///
/// # Errors
/// It isn't; libpq's sentence.
pub(super) fn check_host(certificate: &CertificateDer<'_>, host: &str) -> Result<(), String> {
    if host.is_empty() {
        return Err("host name must be specified for a verified SSL connection".to_owned());
    }
    let names = Names::of(certificate);
    if names.are_for(host) {
        return Ok(());
    }
    let all = names.all();
    let others = match all.len() {
        0 => return Err("could not get server's host name from server certificate".to_owned()),
        1 => String::new(),
        2 => " (and 1 other name)".to_owned(),
        count => format!(" (and {} other names)", count - 1),
    };
    Err(format!("server certificate for \"{}\"{others} does not match host name \"{host}\"", all[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dns: &[&str], addresses: &[&[u8]], common: Option<&str>) -> Names {
        Names {
            dns: dns.iter().map(ToString::to_string).collect(),
            addresses: addresses.iter().map(|address| address.to_vec()).collect(),
            common: common.map(str::to_owned),
        }
    }

    #[test]
    fn hosts() {
        let plain = names(&["db.example", "*.pool.example"], &[&[127, 0, 0, 1]], Some("common"));
        for host in ["db.example", "DB.Example", "a.pool.example", "127.0.0.1"] {
            assert!(plain.are_for(host), "{host}");
        }
        // The common name is ignored if there are alternative names; an asterisk is exactly one
        // label.
        for host in ["common", "pool.example", ".pool.example", "a.b.pool.example", "127.0.0.2", "example"] {
            assert!(!plain.are_for(host), "{host}");
        }
        let common = names(&[], &[], Some("*.example"));
        assert!(common.are_for("a.example"));
        assert!(!common.are_for("example"));
        assert!(!names(&["*"], &[], None).are_for("a"));
        assert!(!names(&["*."], &[], None).are_for("a."));
        let address = names(&["x"], &[], Some("::1"));
        assert!(address.are_for("::1"));
        assert!(!names(&[], &[&[1, 2, 3, 4]], Some("::1")).are_for("::1"));
        assert!(names(&["10.0.0.1"], &[&[1, 2, 3, 4]], None).are_for("10.0.0.1"));
    }

    #[test]
    fn nonsense_has_no_names() {
        let nonsense = CertificateDer::from(vec![0x30, 3, 1, 2, 3]);
        let expected = "could not get server's host name from server certificate";
        assert_eq!(check_host(&nonsense, "h"), Err(expected.to_owned()));
        assert!(end_point(&nonsense).is_none());
        assert!(key(&nonsense).is_none());
    }
}

//! The builds of PostgreSQL that can be fetched, one for each major version and machine type, with
//! their checksums.
//!
//! They are those of the zonky project on Maven Central,
//! `io.zonky.test.postgres:embedded-postgres-binaries-OS-ARCH`. A checksum from the same source as
//! the build would prove nothing, so the checksums are part of this file. To use a newer build,
//! fetch it (`mvn dependency:get`), compare it with its `.sha512` there, and put its checksum here.

use std::fmt::Write as _;

use sha2::{Digest, Sha512};

use crate::MajorVersion;

/// The labels of the repository's host name.
const HOST: [&str; 3] = ["repo1", "maven", "org"];

/// The folder of the builds in the repository, with a folder for each machine type and version.
const FOLDER: &str = "maven2/io/zonky/test/postgres";

/// A build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Build {
    /// The version number in Maven.
    pub(crate) version: &'static str,
    /// The machine type, in Rust's name of the architecture; the system is Linux.
    arch: &'static str,
    /// The SHA-512 checksum of the archive.
    sha512: &'static str,
}

const fn row(version: &'static str, arch: &'static str, sha512: &'static str) -> Build {
    Build { version, arch, sha512 }
}

#[rustfmt::skip]
const BUILDS: [Build; 10] = [
    row(
        "14.23.0",
        "x86_64",
        concat!(
            "61a4d9c504e71ac8f7bfc6fb8232c9fdc631d6d7c32ed47d7e5f1a6660d5df68",
            "6d17ff3ca9ceab4bd78e2ee520a92814f881e7ece24e51f6b853abbf75cf96db"
        ),
    ),
    row(
        "15.19.0",
        "x86_64",
        concat!(
            "adfb8d9a7e0cc6452de739112b868888b35b667ad66b809bf3d4f8ab95d5d580",
            "dc3504e4e4ad15ec2086e668707c20298f916dc3c67acf47005e0371aa90395a"
        ),
    ),
    row(
        "16.15.0",
        "x86_64",
        concat!(
            "d2e37c31846268aae01c82d6854be07bafeb1cd606c7aff1132a27d02e6c6282",
            "bc4c223b2de724c4ff55f47d9d0a2fdd1ceeb8aaf0722d91b9fac2e52f12e616"
        ),
    ),
    row(
        "17.11.0",
        "x86_64",
        concat!(
            "8a6fda3090d62bb8ef6a936f6ec2a5d0f5a6775cc45d89ac70908a42efe27348",
            "48f80cd1380bca03d222dd8a7f6ca4194edb84589f927e39a52c139b688956e3"
        ),
    ),
    row(
        "18.6.0",
        "x86_64",
        concat!(
            "5161552dfeb81330df7e37938f92579aac8caa004bc4a7264511627c4a167863",
            "a6cc64347aeb1934caf0191be3bed291cea8c21e26665efbacb0cf204838e41e"
        ),
    ),
    row(
        "14.23.0",
        "aarch64",
        concat!(
            "0d81d70390085cbf7e173ebbe70d464c7a7115cfb756de43fc0fa984913a2c22",
            "9ea76d82573b3e97b6f22e1a4ed2efda60af0d090e1a7cc3c76f2b0c6af88e53"
        ),
    ),
    row(
        "15.19.0",
        "aarch64",
        concat!(
            "ef87bf0b1b306995e2d34f5c6a8165e34ceafda25586ae3bc41be2bcb5d2eb93",
            "74d0921c6f8810ac31c44339884facee4006a6acc4ce3bcf5f9a13ec1459aa35"
        ),
    ),
    row(
        "16.15.0",
        "aarch64",
        concat!(
            "9c179fa1ca1dcf669e7106010aef68fe38a10646ad9a3e90c6bb43843b71fdb2",
            "49d2c04a5c1ee95517eb50b431dcffa5b1c50b41f26afbc4b8fdb50a88adb959"
        ),
    ),
    row(
        "17.11.0",
        "aarch64",
        concat!(
            "27501a8524d082b2b27d19f71aad8414a90fc7dc111c9f38f7ae2c872b93b041",
            "07c0e6b24016d0f89e050e4ca9729693fcb0703d89327d7374196be0666acedc"
        ),
    ),
    row(
        "18.6.0",
        "aarch64",
        concat!(
            "9ac44cbc5a69f0908520668688419d43d22e1f5d9ed887a9410dddf4a1087458",
            "fe70102749fb05d1470a008f18e330bd693c33776ed17c5717f24b02bd5a14a8"
        ),
    ),
];

impl Build {
    /// The build of a major version for this machine, if there is one.
    pub(crate) fn find(major: MajorVersion) -> Option<Self> {
        Self::find_for(major, std::env::consts::OS, std::env::consts::ARCH)
    }

    fn find_for(major: MajorVersion, os: &str, arch: &str) -> Option<Self> {
        let is_of =
            |build: &&Self| build.version.split('.').next().is_some_and(|number| number == major.to_string());
        BUILDS.iter().filter(is_of).find(|build| os == "linux" && build.arch == arch).copied()
    }

    /// The name of its folder in the cache, which machines of several types may share.
    pub(crate) fn folder(&self) -> String {
        format!("{}-linux-{}", self.version, self.arch)
    }

    /// The download address.
    pub(crate) fn url(&self) -> String {
        let version = self.version;
        let arch = match self.arch {
            "x86_64" => "amd64",
            "aarch64" => "arm64v8",
            other => other,
        };
        let artifact = format!("embedded-postgres-binaries-linux-{arch}");
        format!("https://{}/{FOLDER}/{artifact}/{version}/{artifact}-{version}.jar", HOST.join("."))
    }

    /// Checks that an archive is this build.
    ///
    /// # Errors
    /// A sentence, if it isn't.
    pub(crate) fn verify(&self, archive: &[u8]) -> Result<(), String> {
        let sum = Sha512::digest(archive).iter().fold(String::new(), |mut text, byte| {
            // Writing to a String can't fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        if sum == self.sha512 {
            return Ok(());
        }
        Err(format!("the file received for version {} differs from the one known to isobench", self.version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn major(number: u8) -> MajorVersion {
        number.to_string().parse().expect("a supported version")
    }

    #[test]
    fn each_version_has_a_build_for_each_machine() {
        for number in 14..=18 {
            for arch in ["x86_64", "aarch64"] {
                let build = Build::find_for(major(number), "linux", arch).expect("a build");
                assert!(build.version.starts_with(&format!("{number}.")) && build.arch == arch);
                assert_eq!(build.folder(), format!("{}-linux-{arch}", build.version));
                assert!(build.url().ends_with(&format!("-{}.jar", build.version)));
            }
        }
        assert!(Build::find_for(major(18), "plan9", "x86_64").is_none());
        assert!(Build::find_for(major(18), "linux", "vax").is_none());
    }

    #[test]
    fn sums_are_sums_and_all_different() {
        for (index, build) in BUILDS.iter().enumerate() {
            assert!(build.sha512.len() == 128 && build.sha512.bytes().all(|digit| digit.is_ascii_hexdigit()));
            assert!(BUILDS[..index].iter().all(|other| other.sha512 != build.sha512));
        }
    }

    #[test]
    fn another_archive_is_refused() {
        // The checksum of an empty input, the example in FIPS 180-4.
        let empty = concat!(
            "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce",
            "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
        );
        let build = row("18.4.0", "x86_64", empty);
        assert_eq!(build.verify(b""), Ok(()));
        let refusal = build.verify(b"x").expect_err("another archive");
        assert!(refusal.contains("18.4.0") && refusal.contains("differs from"), "{refusal}");
    }
}

//! Unpacks a build: a zip file that contains a `.txz` (a compressed tar).
//!
//! Nothing is written outside the folder (tar prevents paths above it and links that lead out of
//! it), and the size is limited.

use std::io::{self, Read};
use std::path::Path;

use flate2::bufread::DeflateDecoder;
use lzma_rust2::XzReader;
use rawzip::{CompressionMethod, ZipArchive};

/// The memory limit for xz, in KiB; its strongest preset takes 65 MB.
const XZ_MEMORY: u32 = 1 << 20;

/// Unpacks at most `limit` bytes into a folder, which need not exist.
///
/// # Errors
/// If the archive is damaged or too large, or a file can't be written.
pub(crate) fn unpack(archive: &[u8], folder: &Path, limit: u64) -> io::Result<()> {
    let zip = ZipArchive::from_slice(archive).map_err(io::Error::other)?;
    let mut entries = zip.entries();
    while let Some(entry) = entries.next_entry().map_err(io::Error::other)? {
        if !entry.file_path().as_ref().ends_with(b".txz") {
            continue;
        }
        let stored = zip.get_entry(entry.wayfinder()).map_err(io::Error::other)?;
        return match entry.compression_method() {
            CompressionMethod::DEFLATE => {
                unpack_txz(stored.verifying_reader(DeflateDecoder::new(stored.data())), folder, limit)
            }
            CompressionMethod::STORE => unpack_txz(stored.verifying_reader(stored.data()), folder, limit),
            _ => Err(io::Error::other("the archive is compressed in an unknown way")),
        };
    }
    Err(io::Error::other("the archive holds no .txz file"))
}

fn unpack_txz(txz: impl Read, folder: &Path, limit: u64) -> io::Result<()> {
    let bounded = LimitedReader { inner: XzReader::new_mem_limit(txz, true, XZ_MEMORY), left: limit };
    let mut tar = tar::Archive::new(bounded);
    tar.set_preserve_mtime(false);
    tar.unpack(folder)
}

/// A reader that fails, rather than ending early, if the input exceeds the limit.
struct LimitedReader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let left = self.left.checked_sub(count as u64);
        self.left = left.ok_or_else(|| io::Error::other("the archive is larger than any build"))?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use lzma_rust2::{XzOptions, XzWriter};
    use rawzip::ZipArchiveWriter;
    use tar::{Builder, EntryType, Header};

    type Tar = Builder<XzWriter<Vec<u8>>>;

    fn header(kind: EntryType, size: usize) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(size as u64);
        header
    }

    /// Adds a file with exactly this name, which tar's own functions might refuse.
    fn add(tar: &mut Tar, name: &str, text: &str) {
        let mut header = header(EntryType::Regular, text.len());
        header.as_gnu_mut().expect("GNU").name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        tar.append(&header, text.as_bytes()).expect("append");
    }

    fn link(tar: &mut Tar, kind: EntryType, name: &str, target: &str) {
        tar.append_link(&mut header(kind, 0), name, target).expect("append");
    }

    fn txz(fill: impl FnOnce(&mut Tar)) -> Vec<u8> {
        let writer = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).expect("a writer");
        let mut tar = Builder::new(writer);
        fill(&mut tar);
        tar.into_inner().expect("ends").finish().expect("ends")
    }

    fn zip(name: &str, content: &[u8]) -> Vec<u8> {
        let mut zip = ZipArchiveWriter::new(Vec::new());
        for (name, content) in [("META-INF/MANIFEST.MF", b"Manifest".as_slice()), (name, content)] {
            let new = zip.new_file(name).compression_method(CompressionMethod::DEFLATE);
            let (entry, config) = new.start().expect("start");
            let encoder = flate2::write::DeflateEncoder::new(entry, flate2::Compression::fast());
            let mut writer = config.wrap(encoder);
            writer.write_all(content).expect("write");
            let (encoder, descriptor) = writer.finish().expect("finish");
            encoder.finish().expect("finish").finish(descriptor).expect("finish");
        }
        zip.finish().expect("finish")
    }

    fn unpack_to(folder: &Path, limit: u64, fill: impl FnOnce(&mut Tar)) -> io::Result<()> {
        unpack(&zip("postgres.txz", &txz(fill)), &folder.join("new"), limit)
    }

    #[test]
    fn files_links_and_modes_are_unpacked() {
        let folder = tempfile::tempdir().expect("folder");
        unpack_to(folder.path(), 1 << 20, |tar| {
            add(tar, "bin/postgres", "program");
            link(tar, EntryType::Symlink, "bin/postmaster", "postgres");
            link(tar, EntryType::Link, "bin/same", "bin/postgres");
        })
        .expect("unpacks");
        let bin = folder.path().join("new/bin");
        for name in ["postgres", "postmaster", "same"] {
            assert_eq!(fs::read_to_string(bin.join(name)).expect("read"), "program");
        }
        let meta = fs::metadata(bin.join("postgres")).expect("metadata");
        assert_eq!((meta.permissions().mode() & 0o700, meta.nlink()), (0o700, 2));
        assert_eq!(fs::read_link(bin.join("postmaster")).expect("a link"), Path::new("postgres"));
    }

    #[test]
    fn nothing_is_written_outside() {
        let top = tempfile::tempdir().expect("folder");
        let outside = top.path().join("outside");
        fs::create_dir(&outside).expect("create");
        let victim = outside.join("absolute");
        // It doesn't matter whether the entry is refused or left out.
        for (name, led) in
            [("../up", None), (victim.to_str().expect("text"), None), ("out/led", Some("../outside"))]
        {
            let _ = unpack_to(top.path(), 1 << 20, |tar| {
                if let Some(target) = led {
                    link(tar, EntryType::Symlink, "out", target);
                }
                add(tar, name, "planted");
            });
        }
        let _ = unpack_to(top.path(), 1 << 20, |tar| {
            link(tar, EntryType::Link, "hard", "../secret");
        });
        let there = |folder: &Path| {
            let resolver = fs::read_dir(folder).expect("read").flatten().map(|entry| entry.file_name());
            let mut resolver: Vec<_> = resolver.collect();
            resolver.sort();
            resolver
        };
        assert!(there(&outside).is_empty(), "{:?}", there(&outside));
        assert_eq!(there(top.path()), ["new", "outside"]);
    }

    #[test]
    fn more_than_the_limit_is_refused() {
        let folder = tempfile::tempdir().expect("folder");
        let zeros = "0".repeat(100_000);
        let error = unpack_to(folder.path(), 50_000, |tar| add(tar, "large", &zeros)).expect_err("too large");
        assert!(format!("{error:?}").contains("larger than any build"), "{error:?}");
        unpack_to(folder.path(), 200_000, |tar| add(tar, "large", &zeros)).expect("unpacks");
    }

    #[test]
    fn damage_is_an_error() {
        let folder = tempfile::tempdir().expect("folder");
        let mut packed = txz(|tar| add(tar, "file", "text"));
        let refused =
            |archive: &[u8]| unpack(archive, folder.path(), 1 << 20).expect_err("damaged").to_string();
        assert!(refused(&zip("postgres.tar", &packed)).contains("no .txz"));
        refused(b"no zip");
        refused(&zip("postgres.txz", &packed[..packed.len() / 2]));
        let middle = packed.len() / 2;
        packed[middle] ^= 0xff;
        refused(&zip("postgres.txz", &packed));
    }
}

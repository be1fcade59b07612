//! Archive bombs, and archives with member names that lead elsewhere.

use super::craft::{HUGE_MIB, Member, Packed, noise, overlapping, zip};
use super::{Expect, Hostile};

const TOO_MUCH: Expect = Expect::Code("too-much-inside");

pub(super) fn all() -> Vec<Hostile> {
    let bomb = Packed::run(b' ', HUGE_MIB);
    let flat = Packed::run(b'a', 40);
    let mebibyte = Packed::run(b' ', 1);
    let many: Vec<_> = (0..100_000)
        .map(|number| Member::stored(format!("{number}.txt"), "x"))
        .collect();
    let mut encrypted = Member::stored("a.txt", noise(64, 3));
    encrypted.flags = 1;
    let mut lie = Member::packed("a.txt", &flat);
    lie.size = 10;
    let cut = zip(&[
        Member::stored("a.txt", "one"),
        Member::stored("b.txt", "two"),
    ]);
    vec![
        Hostile::new("zip-42.zip", nested(), TOO_MUCH),
        Hostile::new(
            "zip-flat.zip",
            zip(&[Member::packed("a.txt", &flat)]),
            TOO_MUCH,
        ),
        Hostile::new(
            "zip-2gb.zip",
            zip(&[Member::packed("a.txt", &bomb)]),
            Expect::Documents(0),
        ),
        Hostile::new("zip-lies.zip", zip(&[lie]), Expect::Documents(0)),
        // Takes long: ten thousand files are read from it.
        Hostile::new(
            "zip-100000-entries.zip",
            zip(&many),
            Expect::Documents(10_000),
        ),
        Hostile::new(
            "zip-overlapping.zip",
            overlapping(&Member::packed("a.txt", &mebibyte), 1_000),
            TOO_MUCH,
        ),
        Hostile::new("zip-names.zip", names(), Expect::Documents(1)),
        Hostile::new("zip-encrypted.zip", zip(&[encrypted]), Expect::Documents(0)),
        Hostile::new(
            "zip-cut.zip",
            cut.split_at(cut.len() - 10).0,
            Expect::Code("damaged"),
        ),
        Hostile::new(
            "zip-noise.zip",
            [b"PK\x03\x04".to_vec(), noise(5_000, 5)].concat(),
            Expect::Code("damaged"),
        ),
        Hostile::new("gzip-bomb.gz", bomb.gzip(), Expect::Documents(0)),
        Hostile::new("gzip-flat.gz", flat.gzip(), TOO_MUCH),
        Hostile::new("gzip-in-gzip.gz", gzip_in_gzip(), Expect::Documents(0)),
        Hostile::new(
            "gzip-noise.gz",
            [b"\x1F\x8B\x08\0".to_vec(), noise(5_000, 7)].concat(),
            Expect::Code("damaged"),
        ),
        Hostile::new(
            "tar-lies.tar",
            tar_header("a.txt", b'0', "77777777777"),
            Expect::Code("damaged"),
        ),
        Hostile::new(
            "tar-long-name.tar",
            tar_header("a.txt", b'L', "77777777777"),
            Expect::Code("damaged"),
        ),
        Hostile::new(
            "tar-pax.tar",
            tar_header("a.txt", b'x', "77777777777"),
            Expect::Code("damaged"),
        ),
        Hostile::new(
            "tar-link.tar",
            tar_header("a.txt", b'2', "00000000000"),
            Expect::Documents(0),
        ),
        Hostile::new(
            "tar-device.tar",
            tar_header("a.txt", b'3', "00000000000"),
            Expect::Documents(0),
        ),
        Hostile::new(
            "tar-name.tar",
            tar_header("../../a.txt", b'0', "00000000000"),
            Expect::Documents(0),
        ),
    ]
}

/// Sixteen archives in each archive, on five levels, with four megabytes in each innermost one: four
/// terabytes.
fn nested() -> Vec<u8> {
    let mut inner = zip(&[Member::packed("0.txt", &Packed::run(b' ', 4))]);
    for _ in 0..5 {
        let members = (0..16).map(|number| Member::deflated(&format!("{number}.zip"), &inner));
        inner = zip(&members.collect::<Vec<_>>());
    }
    inner
}

fn names() -> Vec<u8> {
    let long = "x".repeat(60_000);
    let mut link = Member::stored("link.txt", "/etc/passwd");
    link.mode = 0o120_777;
    let bad = [
        "/etc/passwd",
        "../../../out.txt",
        "a\0b.txt",
        "C:\\boot.txt",
        "\\\\host\\a.txt",
        &long,
    ];
    let mut members: Vec<_> = bad.iter().map(|name| Member::stored(name, "bad")).collect();
    members.push(Member::stored(b"\xFF\xFE.png", "bad"));
    members.push(link);
    members.push(Member::stored("good.txt", "good"));
    zip(&members)
}

fn gzip_in_gzip() -> Vec<u8> {
    let mut bytes = b"deep".to_vec();
    for _ in 0..10 {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, &bytes).unwrap();
        bytes = encoder.finish().unwrap();
    }
    bytes
}

/// A tar header with a size that may be false, and little content.
fn tar_header(name: &str, kind: u8, size: &str) -> Vec<u8> {
    let mut header = vec![0; 512];
    let mut put = |at: usize, bytes: &[u8]| {
        header.splice(at..at + bytes.len(), bytes.iter().copied());
    };
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(124, size.as_bytes());
    put(136, b"00000000000");
    put(148, b"        ");
    put(156, &[kind]);
    put(157, b"/etc/passwd");
    put(257, b"ustar\x0000");
    let sum: u64 = header.iter().map(|&byte| u64::from(byte)).sum();
    header.splice(148..156, format!("{sum:06o}\0 ").into_bytes());
    header.extend([0; 1_024]);
    header
}

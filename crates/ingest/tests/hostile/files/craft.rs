//! Writers for malformed files: zip archives with false headers, endless runs of one byte, and PDFs with
//! cycles.

use std::io::Write as _;

use flate2::write::DeflateEncoder;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// What the worst files unpack to: 2 GiB.
pub(super) const HUGE_MIB: u64 = 2_048;

/// A compressed run of one byte.
pub(crate) struct Packed {
    pub(crate) deflated: Vec<u8>,
    pub(crate) crc: u32,
    pub(crate) size: u64,
    byte: u8,
}

impl Packed {
    /// A run of this many mebibytes. One is compressed and its output repeated, which takes almost no time.
    pub(crate) fn run(byte: u8, mebibytes: u64) -> Self {
        let plain = vec![byte; 1 << 20];
        let mut chunk = Vec::with_capacity(1 << 16);
        let mut compress = Compress::new(Compression::best(), false);
        let status = compress.compress_vec(&plain, &mut chunk, FlushCompress::Full);
        assert_eq!(status.unwrap(), Status::Ok);
        let mut one = Crc::new();
        one.update(&plain);
        let mut crc = Crc::new();
        (0..mebibytes).for_each(|_| crc.combine(&one));
        let mut deflated = chunk.repeat(usize::try_from(mebibytes).unwrap());
        // An empty final block.
        deflated.extend([3, 0]);
        Self {
            deflated,
            crc: crc.sum(),
            size: mebibytes << 20,
            byte,
        }
    }

    pub(super) fn gzip(&self) -> Vec<u8> {
        let mut out = vec![0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255];
        out.extend(&self.deflated);
        out.extend(self.crc.to_le_bytes());
        out.extend(
            u32::try_from(self.size & 0xFFFF_FFFF)
                .unwrap()
                .to_le_bytes(),
        );
        out
    }

    pub(super) fn zlib(&self) -> Vec<u8> {
        const BASE: u128 = 65_521;
        let (count, value) = (u128::from(self.size), u128::from(self.byte));
        let low = (1 + count * value) % BASE;
        let high = (count + value * (count * (count + 1) / 2)) % BASE;
        let mut out = vec![0x78, 0x9C];
        out.extend(&self.deflated);
        out.extend(u32::try_from(high << 16 | low).unwrap().to_be_bytes());
        out
    }
}

/// A zip member whose header fields can all be set freely.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) name: Vec<u8>,
    pub(crate) data: Vec<u8>,
    pub(crate) method: u16,
    pub(crate) crc: u32,
    pub(crate) size: u64,
    pub(crate) flags: u16,
    /// The Unix file type and permissions.
    pub(crate) mode: u32,
}

impl Member {
    pub(crate) fn stored(name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Self {
        let mut crc = Crc::new();
        crc.update(content.as_ref());
        Self {
            name: name.as_ref().to_vec(),
            data: content.as_ref().to_vec(),
            method: 0,
            crc: crc.sum(),
            size: content.as_ref().len() as u64,
            flags: 0,
            mode: 0o100_644,
        }
    }

    pub(crate) fn deflated(name: &str, content: &[u8]) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        Self {
            data: encoder.finish().unwrap(),
            method: 8,
            ..Self::stored(name, content)
        }
    }

    pub(crate) fn packed(name: &str, packed: &Packed) -> Self {
        Self {
            data: packed.deflated.clone(),
            method: 8,
            crc: packed.crc,
            size: packed.size,
            ..Self::stored(name, "")
        }
    }

    /// The fields that the local and the central header share.
    fn shared(&self) -> Vec<u8> {
        let short = |number: usize| u16::try_from(number).unwrap().to_le_bytes();
        let long = |number: u64| u32::try_from(number).unwrap().to_le_bytes();
        let mut out = Vec::new();
        out.extend(20_u16.to_le_bytes());
        out.extend(self.flags.to_le_bytes());
        out.extend(self.method.to_le_bytes());
        out.extend([0, 0, 0x21, 0x58]);
        out.extend(self.crc.to_le_bytes());
        out.extend(long(self.data.len() as u64));
        out.extend(long(self.size));
        out.extend(short(self.name.len()));
        out.extend([0, 0]);
        out
    }

    fn local(&self) -> Vec<u8> {
        [
            b"PK\x03\x04".as_slice(),
            &self.shared(),
            &self.name,
            &self.data,
        ]
        .concat()
    }

    fn central(&self, offset: usize) -> Vec<u8> {
        let mut out = b"PK\x01\x02\x14\x03".to_vec();
        out.extend(self.shared());
        out.extend([0; 6]);
        out.extend((self.mode << 16).to_le_bytes());
        out.extend(u32::try_from(offset).unwrap().to_le_bytes());
        out.extend(&self.name);
        out
    }
}

pub(crate) fn zip(members: &[Member]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut central = Vec::new();
    for member in members {
        central.extend(member.central(out.len()));
        out.extend(member.local());
    }
    finish(out, &central, members.len())
}

/// A zip in which many directory entries share one content.
pub(super) fn overlapping(member: &Member, count: usize) -> Vec<u8> {
    let mut central = Vec::new();
    for number in 0..count {
        let mut other = member.clone();
        other.name = format!("{number}.txt").into_bytes();
        central.extend(other.central(0));
    }
    finish(member.local(), &central, count)
}

fn finish(mut out: Vec<u8>, central: &[u8], count: usize) -> Vec<u8> {
    let start = out.len();
    out.extend(central);
    // Member counts beyond the 16-bit field need a zip64 end of the directory.
    let short = u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes();
    if count > usize::from(u16::MAX) {
        let at = out.len() as u64;
        out.extend(b"PK\x06\x06");
        out.extend(44_u64.to_le_bytes());
        out.extend([45, 0, 45, 0]);
        out.extend([0; 8]);
        out.extend((count as u64).to_le_bytes());
        out.extend((count as u64).to_le_bytes());
        out.extend((central.len() as u64).to_le_bytes());
        out.extend((start as u64).to_le_bytes());
        out.extend(b"PK\x06\x07");
        out.extend([0; 4]);
        out.extend(at.to_le_bytes());
        out.extend(1_u32.to_le_bytes());
    }
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(short);
    out.extend(short);
    out.extend(u32::try_from(central.len()).unwrap().to_le_bytes());
    out.extend(u32::try_from(start).unwrap().to_le_bytes());
    out.extend([0, 0]);
    out
}

/// A PDF file of these objects, numbered from 1 with the catalog first, and their cross-reference table.
pub(super) fn pdf(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut out = b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n".to_vec();
    let mut table = String::from("0000000000 65535 f \n");
    for (object, number) in objects.iter().zip(1..) {
        table.push_str(&format!("{:010} 00000 n \n", out.len()));
        out.extend(format!("{number} 0 obj\n").into_bytes());
        out.extend(object);
        out.extend(b"\nendobj\n");
    }
    let (start, count) = (out.len(), objects.len() + 1);
    out.extend(format!("xref\n0 {count}\n{table}").into_bytes());
    let trailer = format!("trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    out.extend(trailer.into_bytes());
    out
}

pub(super) fn object(text: impl Into<String>) -> Vec<u8> {
    text.into().into_bytes()
}

/// A stream object whose dictionary has these entries besides its length.
pub(super) fn stream(entries: &str, data: &[u8]) -> Vec<u8> {
    let head = format!("<< {entries} /Length {} >>\nstream\n", data.len());
    [head.as_bytes(), data, b"\nendstream"].concat()
}

/// Pseudo-random bytes, the same on every run.
pub(super) fn noise(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(count).collect()
}

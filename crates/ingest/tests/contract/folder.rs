//! Folders with symbolic links, pipes, unusual names and too many files.

use std::path::Path;

use docent_ingest::{FolderSource, IngestError, Limits};

use crate::{TestFolder, find, paths, skipped};

#[test]
fn a_listing_is_sorted_and_leaves_out_what_is_no_document() {
    let folder = TestFolder::new();
    for path in [
        "b.md",
        "a/z.md",
        "a-b.md",
        "README.md",
        "docent.toml",
        ".git/x.md",
        ".docent/y.md",
        "a/README.md",
        "a/.x.md",
    ] {
        folder.write(path, "x");
    }
    let listing = folder.list(Limits::default());
    assert_eq!(paths(&listing), ["a-b.md", "a/README.md", "a/z.md", "b.md"]);
    assert_eq!(skipped(&listing), [""; 0]);
    assert_eq!(listing.ignored, 5);
}

#[test]
fn the_root_must_be_a_folder() {
    let folder = TestFolder::new();
    folder.write("a.md", "x");
    for path in ["a.md", "missing"] {
        let error = FolderSource::open(folder.path(path), Limits::default()).unwrap_err();
        assert_eq!(error.code(), "root", "{path}");
    }
}

#[test]
fn content_decides_and_the_rest_is_refused_with_a_code() {
    let folder = TestFolder::new();
    let cases: &[(&str, &[u8], &str)] = &[
        ("a.md", b"%PDF-1.7 text", "damaged"),
        ("a.xyz", b"body {}", "unsupported"),
        ("a.txt", b"a\0b", "binary"),
        ("b.txt", b"", "empty"),
        ("c.md", b" \n\n", "empty"),
        ("d.md", b"---\n---\n", "empty"),
        ("e.jsonl", b"", "empty"),
    ];
    for (path, content, code) in cases {
        folder.write(path, content);
        let reason = folder.read(path, Limits::default()).unwrap_err();
        assert_eq!(reason.code(), *code, "{path}");
        assert!(!reason.hint().is_empty());
    }
}

#[test]
fn a_file_ends_at_its_bound() {
    let folder = TestFolder::new();
    folder
        .write("exact.txt", "x".repeat(20_000))
        .write("over.txt", "x".repeat(20_001));
    let limits = Limits {
        max_file_bytes: 20_000,
        ..Limits::default()
    };
    assert_eq!(
        folder
            .read("exact.txt", limits.clone())
            .unwrap()
            .fingerprint
            .size,
        20_000
    );
    let over = IngestError::TooLarge {
        bytes: 20_001,
        limit: 20_000,
    };
    assert_eq!(folder.read("over.txt", limits.clone()).unwrap_err(), over);
    let source = folder.source(limits);
    assert_eq!(
        source
            .fingerprint(&find(&source.list(), "over.txt"))
            .unwrap_err(),
        over
    );
}

#[test]
fn a_sparse_giant_is_not_read() {
    let folder = TestFolder::new();
    folder.write("giant.txt", "");
    let file = std::fs::File::options()
        .write(true)
        .open(folder.path("giant.txt"))
        .unwrap();
    file.set_len(4 << 30).unwrap();
    assert_eq!(
        folder.read("giant.txt", Limits::default()).unwrap_err(),
        IngestError::Binary
    );
    let source = folder.source(Limits::default());
    let reason = source
        .fingerprint(&find(&source.list(), "giant.txt"))
        .unwrap_err();
    assert_eq!(
        reason,
        IngestError::TooLarge {
            bytes: 4 << 30,
            limit: 64 << 20
        }
    );
}

/// Kernel files report a size of zero but have content, like a file that grows while it is read.
#[cfg(target_os = "linux")]
#[test]
fn reading_is_bounded_whatever_the_size_says() {
    let limits = Limits {
        max_file_bytes: 10,
        max_depth: 0,
        ..Limits::default()
    };
    let source = FolderSource::open("/proc/sys/kernel/random", limits).unwrap();
    let entry = find(&source.list(), "uuid");
    assert_eq!(entry.size, 0);
    assert_eq!(
        source.fingerprint(&entry).unwrap_err(),
        IngestError::TooLarge {
            bytes: 11,
            limit: 10
        }
    );
    assert_eq!(source.read(&entry).unwrap_err().code(), "too-large");
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_read_is_a_reason() {
    let limits = Limits {
        max_depth: 0,
        ..Limits::default()
    };
    let source = FolderSource::open("/proc/self", limits).unwrap();
    let memory = find(&source.list(), "mem");
    assert_eq!(source.read(&memory).unwrap_err().code(), "unreadable");
}

#[test]
fn names_are_counted_and_the_smallest_are_kept() {
    let folder = TestFolder::new();
    for path in ["c.md", "a.md", "d/e.md", "b.md"] {
        folder.write(path, "x");
    }
    let limits = |max_files| Limits {
        max_files,
        ..Limits::default()
    };
    assert_eq!(
        paths(&folder.list(limits(5))),
        ["a.md", "b.md", "c.md", "d/e.md"]
    );
    assert_eq!(skipped(&folder.list(limits(5))), [""; 0]);
    let four = folder.list(limits(4));
    assert_eq!(paths(&four), ["a.md", "b.md", "c.md"]);
    assert_eq!(skipped(&four), ["d:too-many-files"]);
    let two = folder.list(limits(2));
    assert_eq!(paths(&two), ["a.md", "b.md"]);
    assert_eq!(skipped(&two), [":too-many-files"]);
}

#[test]
fn depth_and_paths_end_at_their_bounds() {
    let folder = TestFolder::new();
    folder.write("a/b/c.md", "x").write("a/b/d/e.md", "x");
    let deep = folder.list(Limits {
        max_depth: 2,
        ..Limits::default()
    });
    assert_eq!(paths(&deep), ["a/b/c.md"]);
    assert_eq!(skipped(&deep), ["a/b/d:too-deep"]);
    folder.write("a/b/cc.md", "x");
    let long = folder.list(Limits {
        max_path_bytes: 8,
        ..Limits::default()
    });
    assert_eq!(paths(&long), ["a/b/c.md"]);
    assert_eq!(
        skipped(&long),
        ["a/b/cc.md:path-too-long", "a/b/d/e.md:path-too-long"]
    );
}

#[test]
fn very_deep_folders_end_the_descent_and_nothing_else() {
    use cap_std::{ambient_authority, fs::Dir};
    let folder = TestFolder::new();
    folder.write("z.md", "x");
    let mut dir = Dir::open_ambient_dir(folder.path(""), ambient_authority()).unwrap();
    for _ in 0..200 {
        dir.create_dir("d").unwrap();
        dir = dir.open_dir("d").unwrap();
    }
    let listing = folder.list(Limits::default());
    assert_eq!(paths(&listing), ["z.md"]);
    assert_eq!(listing.skipped.len(), 1);
    assert_eq!(listing.skipped[0].path, ["d"; 65].join("/"));
    assert_eq!(
        listing.skipped[0].reason,
        IngestError::TooDeep { limit: 64 }
    );
}

#[test]
fn a_fingerprint_changes_with_the_content_only() {
    let folder = TestFolder::new();
    folder.write("a.md", "one");
    let source = folder.source(Limits::default());
    let entry = find(&source.list(), "a.md");
    let first = source.read(&entry).unwrap();
    assert_eq!(source.fingerprint(&entry).unwrap(), first.fingerprint);
    assert_eq!(first.documents[0].hash, first.fingerprint.sha256);
    folder.write("a.md", "two");
    let second = source.fingerprint(&entry).unwrap();
    assert_ne!(second.sha256, first.fingerprint.sha256);
    folder.write("a.md", "one");
    assert_eq!(
        source.fingerprint(&entry).unwrap().sha256,
        first.fingerprint.sha256
    );
}

#[test]
fn long_names_are_read() {
    let folder = TestFolder::new();
    let name = format!("{}.md", "n".repeat(252));
    let path = format!("{name}/{name}/{name}");
    folder.write(&path, "x");
    let reading = folder.read(&path, Limits::default()).unwrap();
    let id = reading.documents[0].id.as_str();
    assert_eq!(id.len(), 512);
    assert_eq!(reading.documents[0].source, path);
    assert_eq!(folder.list(Limits::default()).entries[0].id(), id);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    fn pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .unwrap();
        assert!(made.success());
    }

    #[test]
    fn links_pipes_and_sockets_are_left_out() {
        let outside = TestFolder::new();
        outside.write("secret.md", "secret");
        let folder = TestFolder::new();
        folder.write("good.md", "good").write("sub/x.md", "x");
        symlink(outside.path("secret.md"), folder.path("file.md")).unwrap();
        symlink(outside.path(""), folder.path("folder")).unwrap();
        symlink("self.md", folder.path("self.md")).unwrap();
        symlink("..", folder.path("sub/up")).unwrap();
        symlink("good.md", folder.path("inside.md")).unwrap();
        pipe(&folder.path("pipe.md"));
        let _socket = UnixListener::bind(folder.path("socket.md")).unwrap();
        let listing = folder.list(Limits::default());
        assert_eq!(paths(&listing), ["good.md", "sub/x.md"]);
        let expect = [
            "file.md:link",
            "folder:link",
            "inside.md:link",
            "pipe.md:special",
            "self.md:link",
            "socket.md:special",
            "sub/up:link",
        ];
        assert_eq!(skipped(&listing), expect);
        let few = folder.list(Limits {
            max_reported: 6,
            ..Limits::default()
        });
        assert_eq!(few.skipped.len(), 7);
        assert!(
            few.skipped
                .iter()
                .any(|skipped| skipped.reason == IngestError::More { count: 1, lost: 0 })
        );
    }

    #[test]
    fn a_link_may_be_the_root_itself() {
        let folder = TestFolder::new();
        folder.write("real/a.md", "x");
        symlink("real", folder.path("link")).unwrap();
        let source = FolderSource::open(folder.path("link"), Limits::default()).unwrap();
        assert_eq!(paths(&source.list()), ["a.md"]);
    }

    #[test]
    fn a_hard_link_is_a_file() {
        let folder = TestFolder::new();
        folder.write("a.md", "x");
        std::fs::hard_link(folder.path("a.md"), folder.path("b.md")).unwrap();
        assert_eq!(
            folder.read("b.md", Limits::default()).unwrap().documents[0].text,
            "x"
        );
    }

    /// Lists the folder, lets `swap` change it, and then reads.
    fn check_swap(swap: impl Fn(&TestFolder, &TestFolder), code: &str) {
        let outside = TestFolder::new();
        outside.write("x.md", "secret");
        let folder = TestFolder::new();
        folder.write("sub/x.md", "good");
        let source = folder.source(Limits::default());
        let entry = find(&source.list(), "sub/x.md");
        assert_eq!(source.read(&entry).unwrap().documents[0].text, "good");
        swap(&folder, &outside);
        assert_eq!(source.read(&entry).unwrap_err().code(), code);
        assert_eq!(source.fingerprint(&entry).unwrap_err().code(), code);
    }

    #[test]
    fn a_path_that_is_swapped_after_the_listing_is_not_read() {
        let gone = |folder: &TestFolder| std::fs::remove_file(folder.path("sub/x.md")).unwrap();
        let moved =
            |folder: &TestFolder| std::fs::rename(folder.path("sub"), folder.path("old")).unwrap();
        check_swap(|folder, _| gone(folder), "gone");
        check_swap(|folder, _| moved(folder), "gone");
        check_swap(
            |folder, outside| {
                gone(folder);
                symlink(outside.path("x.md"), folder.path("sub/x.md")).unwrap();
            },
            "link",
        );
        check_swap(
            |folder, outside| {
                moved(folder);
                symlink(outside.path(""), folder.path("sub")).unwrap();
            },
            "link",
        );
        check_swap(
            |folder, _| {
                moved(folder);
                symlink("old", folder.path("sub")).unwrap();
            },
            "link",
        );
        check_swap(
            |folder, _| {
                gone(folder);
                pipe(&folder.path("sub/x.md"));
            },
            "special",
        );
        check_swap(
            |folder, _| {
                gone(folder);
                std::fs::create_dir(folder.path("sub/x.md")).unwrap();
            },
            "special",
        );
    }

    /// Race test: one thread swaps a folder for a link to the outside and back while another reads through
    /// it.
    #[test]
    fn a_race_of_renames_never_leaks() {
        let outside = TestFolder::new();
        outside.write("x.md", "secret");
        let folder = TestFolder::new();
        folder.write("sub/x.md", "good");
        symlink(outside.path(""), folder.path(".link")).unwrap();
        let source = folder.source(Limits::default());
        let entry = find(&source.list(), "sub/x.md");
        let swaps = || {
            for _ in 0..500 {
                for (from, to) in [
                    ("sub", ".real"),
                    (".link", "sub"),
                    ("sub", ".link"),
                    (".real", "sub"),
                ] {
                    std::fs::rename(folder.path(from), folder.path(to)).unwrap();
                }
            }
        };
        std::thread::scope(|scope| {
            let swapping = scope.spawn(swaps);
            while !swapping.is_finished() {
                match source.read(&entry) {
                    Ok(reading) => assert_eq!(reading.documents[0].text, "good"),
                    Err(reason) => assert!(["gone", "link"].contains(&reason.code()), "{reason}"),
                }
                let listing = source.list();
                assert!(
                    listing.entries.iter().all(|entry| entry.size == 4),
                    "{listing:?}"
                );
            }
        });
        assert_eq!(source.read(&entry).unwrap().documents[0].text, "good");
    }

    #[test]
    fn strange_names_are_read_and_shown_safely() {
        let folder = TestFolder::new();
        let long = [b"x".repeat(252).as_slice(), b".md"].concat();
        let names: [&[u8]; 6] = [
            b"a\nb.md",
            "a\u{202E}dm.md".as_bytes(),
            b"a\xFFb.md",
            b"a\x1B[2J.md",
            b"%0A.md",
            &long,
        ];
        for name in names {
            folder.write(Path::new(std::ffi::OsStr::from_bytes(name)), "x");
        }
        let source = folder.source(Limits::default());
        let listing = source.list();
        assert_eq!(listing.entries.len(), names.len());
        for entry in &listing.entries {
            let document = source.read(entry).unwrap().documents.remove(0);
            assert_eq!(document.id.as_str(), entry.id());
            for shown in [entry.path(), &document.source, &document.title] {
                assert!(!shown.contains(char::is_control), "{shown:?}");
                assert!(!shown.contains('\u{202E}'), "{shown:?}");
            }
            assert!(entry.id().bytes().all(|byte| byte.is_ascii_graphic()));
        }
        let ids: Vec<_> = listing.entries.iter().map(|entry| entry.id()).collect();
        assert_eq!(
            ids[..5],
            [
                "%250A.md",
                "a%0Ab.md",
                "a%1B%5B2J.md",
                "a%E2%80%AEdm.md",
                "a%FFb.md"
            ]
        );
    }
}

//! Kernels and containers without one of the parser's walls: where `ingest.require_sandbox` is set, nothing of a
//! foreign format is read there, each file is named with the wall that is missing, and `docent doctor` says why.
//!
//! A wall is taken away as a container does it: by a seccomp filter around the whole program, under which the
//! calls that build the wall fail. A filter belongs to the thread that installs it and to all it starts.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use serde_json::Value;

use crate::process::{Dir, Ran, Server};

const LANDLOCK_CREATE_RULESET: i64 = 444;
#[cfg(target_arch = "x86_64")]
const SECCOMP: i64 = 317;
#[cfg(not(target_arch = "x86_64"))]
const SECCOMP: i64 = 277;
#[cfg(target_arch = "x86_64")]
const PRLIMIT64: i64 = 302;
#[cfg(not(target_arch = "x86_64"))]
const PRLIMIT64: i64 = 261;
const RLIMIT_STACK: u64 = 3;
const RLIMIT_AS: u64 = 9;
const EPERM: u32 = 1;
const ENOSYS: u32 = 38;
const EOPNOTSUPP: u32 = 95;

/// A system call that fails, with its error, under a condition on its second argument.
#[derive(Clone, Copy)]
struct Forbidden {
    call: i64,
    errno: u32,
    second: Option<u64>,
}

const fn forbidden(call: i64, errno: u32) -> Forbidden {
    Forbidden {
        call,
        errno,
        second: None,
    }
}

impl Forbidden {
    fn filter(self) -> BpfProgram {
        let second = self.second.map(|value| {
            let is = |index, operator, value| {
                SeccompCondition::new(index, SeccompCmpArgLen::Qword, operator, value).unwrap()
            };
            // A limit that is only looked at has no new value.
            let sets = is(2, SeccompCmpOp::Ne, 0);
            SeccompRule::new(vec![is(1, SeccompCmpOp::Eq, value), sets]).unwrap()
        });
        let rules = BTreeMap::from([(self.call, second.into_iter().collect())]);
        let filter = SeccompFilter::new(
            rules,
            SeccompAction::Allow,
            SeccompAction::Errno(self.errno),
            std::env::consts::ARCH.try_into().unwrap(),
        );
        filter.unwrap().try_into().unwrap()
    }

    /// Does something on a thread of its own, whose calls and whose children's calls fail.
    fn within<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let within = scope.spawn(|| {
                apply_filter(&self.filter()).unwrap();
                work()
            });
            within.join().unwrap()
        })
    }
}

/// Every way to lose a wall, and how the report and the doctor call it.
const LOST: [(Forbidden, &str, &str); 6] = [
    (
        forbidden(LANDLOCK_CREATE_RULESET, ENOSYS),
        "Landlock missing",
        "this kernel is older than it",
    ),
    (
        forbidden(LANDLOCK_CREATE_RULESET, EOPNOTSUPP),
        "Landlock missing",
        "turned off in this kernel",
    ),
    (
        forbidden(SECCOMP, ENOSYS),
        "seccomp missing",
        "this kernel is older than it",
    ),
    (
        forbidden(SECCOMP, EPERM),
        "seccomp missing",
        "the container forbids its system calls",
    ),
    (
        Forbidden {
            second: Some(RLIMIT_AS),
            ..forbidden(PRLIMIT64, EPERM)
        },
        "resource limits missing",
        "the container forbids its system calls",
    ),
    (
        Forbidden {
            second: Some(RLIMIT_STACK),
            ..forbidden(PRLIMIT64, EPERM)
        },
        "resource limits incomplete",
        "only 5 of its parts",
    ),
];

/// A folder with files of our own formats, and two of foreign ones.
fn folder(is_required: bool) -> Dir {
    let dir = Dir::small();
    dir.write("docs/page.html", "<title>Quay</title><p>The quay is wet.");
    dir.write(
        "docs/table.csv",
        "id,title,text\n1,Pier,The pier is long.\n",
    );
    dir.write(
        "docs/docent.toml",
        &format!("[ingest]\nrequire_sandbox = {is_required}\n[search]\nmode = \"lexical\"\n"),
    );
    dir
}

/// The report; what is refused counts as lost in the exit status.
fn index(dir: &Dir) -> Value {
    let ran = dir.run(&["index", "docs", "--json"]);
    let report = ran.json();
    let is_whole = skipped(&report).is_empty();
    assert_eq!(ran.code, Some(if is_whole { 0 } else { 3 }), "{ran:?}");
    report
}

fn skipped(report: &Value) -> Vec<(&str, &str, &str, &str)> {
    let rows = report["skipped"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            let of = |name: &str| row[name].as_str().unwrap();
            (of("path"), of("code"), of("message"), of("hint"))
        })
        .collect()
}

fn doctor(dir: &Dir) -> (Ran, Value) {
    let ran = dir.run(&["doctor", "docs", "--json"]);
    let findings = ran.json();
    let finding = findings["findings"].as_array().unwrap().iter();
    let mut finding = finding.filter(|finding| finding["about"] == "sandbox");
    let found = finding.next().unwrap().clone();
    (ran, found)
}

#[test]
fn without_a_wall_foreign_files_are_refused_and_named() {
    for (lost, gap, why) in LOST {
        let dir = folder(true);
        let report = lost.within(|| index(&dir));
        let found = skipped(&report);
        assert_eq!(found.len(), 2, "{gap}: {report}");
        for (path, code, message, hint) in found {
            assert!(path == "page.html" || path == "table.csv", "{path}");
            assert_eq!(code, "no-sandbox");
            assert!(message.contains(gap), "{message}");
            assert!(hint.contains("require_sandbox"), "{hint}");
        }
        // Our own formats are read without a child.
        assert_eq!(report["documents"], 3, "{report}");
        let (ran, finding) = lost.within(|| doctor(&dir));
        assert_eq!(finding["state"], "wrong", "{finding}");
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let says = finding["says"].as_str().unwrap();
        assert!(says.contains(gap) && says.contains(why), "{says}");
    }
}

#[test]
fn what_was_read_without_a_wall_goes_when_the_sandbox_is_demanded() {
    let (lost, gap, _) = LOST[2];
    let dir = folder(false);
    let before = lost.within(|| index(&dir));
    assert_eq!(
        (&before["documents"], skipped(&before).len()),
        (&5.into(), 0)
    );
    let (_, finding) = lost.within(|| doctor(&dir));
    assert_eq!(finding["state"], "warning", "{finding}");
    let toml = "[ingest]\nrequire_sandbox = true\n[search]\nmode = \"lexical\"\n";
    dir.write("docs/docent.toml", toml);
    let after = lost.within(|| index(&dir));
    assert_eq!(after["documents"], 3, "{after}");
    assert!(skipped(&after).iter().all(|row| row.2.contains(gap)));
    // The environment wins over the file, as for every setting.
    let off = |value: &str| {
        let mut command = dir.docent(&["index", "docs", "--json"]);
        command.env("DOCENT_INGEST_REQUIRE_SANDBOX", value);
        Ran::of(command.output().unwrap())
    };
    assert_eq!(lost.within(|| off("false")).json()["documents"], 5);
    for malformed in ["maybe", "2", "yes please"] {
        let ran = off(malformed);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("`ingest.require_sandbox`"), "{ran:?}");
    }
}

#[test]
fn a_server_takes_the_demand_over_while_it_runs() {
    let (lost, gap, _) = LOST[0];
    let dir = folder(false);
    let server = lost.within(|| Server::start(&dir, &["docs"]));
    server.wait_for("5 documents");
    let toml = "[ingest]\nrequire_sandbox = true\n[search]\nmode = \"lexical\"\n";
    dir.write("docs/docent.toml", toml);
    server.wait_for("`ingest.require_sandbox` from now on");
    server.wait_for(gap);
    server.wait_for("3 documents");
}

#[test]
fn where_every_wall_stands_everything_is_read() {
    let dir = folder(true);
    let (_, finding) = doctor(&dir);
    let report = index(&dir);
    // Whether Landlock is there is a matter of the kernel that runs the test; the report has to agree with it.
    if finding["state"] == "ok" {
        assert_eq!(
            (&report["documents"], skipped(&report).len()),
            (&5.into(), 0)
        );
    } else {
        let says = finding["says"].as_str().unwrap();
        assert!(says.contains("Landlock"), "{says}");
        assert_eq!(
            (&report["documents"], skipped(&report).len()),
            (&3.into(), 2)
        );
    }
}

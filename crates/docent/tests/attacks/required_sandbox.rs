//! `ingest.require_sandbox` on kernels and in containers that lack a layer of the parser sandbox: files of third-party
//! formats are skipped, the report names the missing layer, and `docent doctor` gives the reason.
//!
//! The tests remove a layer as containers do: by a seccomp filter around the whole program, under which the system
//! calls of the layer fail. A filter applies to the thread that installs it and to everything that this thread starts.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use serde_json::Value;

use crate::process::{ProcessOutput, ServerProcess, TestDir};

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

/// A system call that the filter lets fail with `errno`, optionally only for one value of its second argument.
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
            // Only setting a limit is denied: a call that reads one passes no new value.
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

    /// Runs `work` on a new thread under the filter, which its child processes inherit.
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

/// Every way to lose a sandbox layer, with the texts of the report and of `docent doctor`.
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

/// A folder with three files of formats that Docent parses itself, and two that third-party parsers read.
fn folder(is_required: bool) -> TestDir {
    let dir = TestDir::small();
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

/// Indexes the folder and returns the report. Skipped files count as lost in the exit status.
fn index(dir: &TestDir) -> Value {
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

fn doctor(dir: &TestDir) -> (ProcessOutput, Value) {
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
        // Docent's own parsers need no child process.
        assert_eq!(report["documents"], 3, "{report}");
        let (ran, finding) = lost.within(|| doctor(&dir));
        assert_eq!(finding["state"], "wrong", "{finding}");
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let says = finding["says"].as_str().unwrap();
        assert!(says.contains(gap) && says.contains(why), "{says}");
    }
}

#[test]
fn documents_parsed_without_a_sandbox_are_deleted_when_it_is_required() {
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
    // The environment overrides the file, as for every setting.
    let off = |value: &str| {
        let mut command = dir.docent(&["index", "docs", "--json"]);
        command.env("DOCENT_INGEST_REQUIRE_SANDBOX", value);
        ProcessOutput::of(command.output().unwrap())
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
    let server = lost.within(|| ServerProcess::start(&dir, &["docs"]));
    server.wait_for("5 documents");
    let toml = "[ingest]\nrequire_sandbox = true\n[search]\nmode = \"lexical\"\n";
    dir.write("docs/docent.toml", toml);
    server.wait_for("docent.toml changed: applied `ingest.require_sandbox`");
    server.wait_for(gap);
    server.wait_for("3 documents");
}

#[test]
fn where_every_wall_stands_everything_is_read() {
    let dir = folder(true);
    let (_, finding) = doctor(&dir);
    let report = index(&dir);
    // Whether Landlock is available depends on the kernel of the test machine; doctor and report have to agree.
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

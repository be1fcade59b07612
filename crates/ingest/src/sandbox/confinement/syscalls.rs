//! Seccomp filters: an allowlist of system calls for memory, time and two pipes. One filter answers every
//! other call with `EPERM`, which a library that merely probes survives; the other kills the process at
//! once on calls that only an attacker makes.

use std::collections::BTreeMap;
use std::os::fd::RawFd;

use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, apply_filter,
};

type SeccompRules = BTreeMap<i64, Vec<SeccompRule>>;

/// `RLIMIT_CPU`, whose type differs between C libraries.
const RLIMIT_CPU: u64 = libc::RLIMIT_CPU as u64;

/// System calls that are allowed with any arguments.
const ALLOWED_CALLS: &[i64] = &[
    libc::SYS_close,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// System calls that kill the process, because no parser makes them even by mistake.
const KILLED_CALLS: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_kill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_capset,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_reboot,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// The number of seccomp filters.
pub(super) const FILTERS: u16 = 2;

/// Installs the filters for the rest of this process's life; of its open files only the two pipes stay
/// usable. Returns how many filters apply, and why the next one failed.
pub(super) fn restrict_syscalls(input: RawFd, output: RawFd) -> (u16, Option<Error>) {
    let (killed, allowed) = match filters(input, output) {
        Ok(filters) => filters,
        Err(error) => return (0, Some(error)),
    };
    // The order matters: the allowlist does not include the call that installs a filter.
    for (installed, filter) in [(0, killed), (1, allowed)] {
        if let Err(error) = apply_filter(&filter) {
            return (installed, Some(error));
        }
    }
    (FILTERS, None)
}

fn filters(input: RawFd, output: RawFd) -> Result<(BpfProgram, BpfProgram), Error> {
    let not_permitted = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let allowed = program(
        allowed_rules(input, output)?,
        not_permitted,
        SeccompAction::Allow,
    )?;
    let killed = KILLED_CALLS
        .iter()
        .map(|&call| (call, Vec::new()))
        .collect();
    let killed = program(killed, SeccompAction::Allow, SeccompAction::KillProcess)?;
    Ok((killed, allowed))
}

fn program(
    rules: SeccompRules,
    otherwise: SeccompAction,
    on_match: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, otherwise, on_match, arch)?.try_into()
}

fn allowed_rules(input: RawFd, output: RawFd) -> Result<SeccompRules, BackendError> {
    let mut rules: SeccompRules = ALLOWED_CALLS
        .iter()
        .map(|&call| (call, Vec::new()))
        .collect();
    // Other open files are inherited from whoever started the server and must not be touched. What parsers
    // print goes to `/dev/null`, and errors go to stderr.
    let file = |file: RawFd| rule(vec![argument(0, SeccompCmpOp::Eq, number(file))?]);
    for call in [libc::SYS_read, libc::SYS_readv] {
        rules.insert(call, vec![file(input)?]);
    }
    for call in [libc::SYS_write, libc::SYS_writev] {
        let files = [output, libc::STDOUT_FILENO, libc::STDERR_FILENO];
        rules.insert(call, files.into_iter().map(file).collect::<Result<_, _>>()?);
    }
    // Only anonymous memory that is not executable.
    let no_code = || argument(2, SeccompCmpOp::MaskedEq(number(libc::PROT_EXEC)), 0);
    let anonymous = number(libc::MAP_ANONYMOUS);
    let anonymous = argument(3, SeccompCmpOp::MaskedEq(anonymous), anonymous)?;
    rules.insert(libc::SYS_mmap, vec![rule(vec![no_code()?, anonymous])?]);
    rules.insert(libc::SYS_mprotect, vec![rule(vec![no_code()?])?]);
    // `abort` sends a signal to the own process.
    let own = u64::from(std::process::id());
    for call in [libc::SYS_tgkill, libc::SYS_tkill] {
        rules.insert(call, vec![rule(vec![argument(0, SeccompCmpOp::Eq, own)?])?]);
    }
    // Only the CPU limit, which is set again for each file.
    let time = vec![
        argument(0, SeccompCmpOp::Eq, 0)?,
        argument(1, SeccompCmpOp::Eq, RLIMIT_CPU)?,
    ];
    rules.insert(libc::SYS_prlimit64, vec![rule(time)?]);
    Ok(rules)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions)
}

/// A small C integer as a system call argument.
fn number(small: i32) -> u64 {
    small.cast_unsigned().into()
}

fn argument(
    index: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// System calls behind each restriction that Landlock gained after its first version. As long as the
    /// filters deny all of them, an older Landlock leaves nothing open.
    const LATER_LANDLOCK: &[(&str, &[i64])] = &[
        (
            "version 2: links and renames between folders",
            &[libc::SYS_linkat, libc::SYS_renameat, libc::SYS_renameat2],
        ),
        (
            "version 3: truncating",
            &[
                libc::SYS_truncate,
                libc::SYS_ftruncate,
                libc::SYS_openat,
                libc::SYS_openat2,
                libc::SYS_open_by_handle_at,
            ],
        ),
        (
            "version 4: TCP; version 6: abstract sockets",
            &[
                libc::SYS_socket,
                libc::SYS_socketpair,
                libc::SYS_bind,
                libc::SYS_connect,
                libc::SYS_listen,
                libc::SYS_accept4,
                libc::SYS_sendto,
                libc::SYS_sendmsg,
                libc::SYS_sendmmsg,
                libc::SYS_recvfrom,
                libc::SYS_recvmsg,
                libc::SYS_io_uring_setup,
                libc::SYS_io_uring_enter,
                libc::SYS_pidfd_getfd,
            ],
        ),
        ("version 5: devices", &[libc::SYS_ioctl]),
        (
            "version 6: signals",
            &[
                libc::SYS_kill,
                libc::SYS_rt_sigqueueinfo,
                libc::SYS_rt_tgsigqueueinfo,
                libc::SYS_pidfd_open,
                libc::SYS_pidfd_send_signal,
                libc::SYS_fcntl,
                libc::SYS_prctl,
                libc::SYS_clone,
            ],
        ),
    ];

    #[test]
    fn nothing_that_a_later_landlock_forbids_is_left() {
        let rules = allowed_rules(10, 11).unwrap();
        for (what, calls) in LATER_LANDLOCK {
            for call in *calls {
                assert!(!rules.contains_key(call), "{what}: {call}");
            }
        }
        // The only signals left are those to the process itself; a rule without conditions would allow any.
        for call in [libc::SYS_tgkill, libc::SYS_tkill] {
            assert_eq!(rules.get(&call).map(Vec::len), Some(1));
        }
    }
}

//! `memcpy` and `memmove` in SSE2, which every x86-64 processor has.
//!
//! Copies of up to 64 bytes read everything before they write anything, from both ends; bytes in the middle may be
//! read twice. The last 64 bytes of a longer copy are read first and written last. So the forward copy is also correct
//! where the target overlaps the source and begins before it. Where the target begins inside the source, `memmove`
//! copies more than 64 bytes backwards.

use core::arch::global_asm;

global_asm!(
    ".pushsection .text.docent_copy, \"ax\", @progbits",
    ".p2align 5",
    ".globl docent_copy",
    ".hidden docent_copy",
    ".type docent_copy, @function",
    "docent_copy:",
    ".cfi_startproc",
    "    mov rax, rdi",
    "    cmp rdx, 16",
    "    jb 20f",
    "    cmp rdx, 32",
    "    ja 50f",
    "    movups xmm0, [rsi]",
    "    movups xmm1, [rsi + rdx - 16]",
    "    movups [rdi], xmm0",
    "    movups [rdi + rdx - 16], xmm1",
    "    ret",
    // Fewer than 16 bytes.
    "20: cmp edx, 8",
    "    jb 30f",
    "    mov rcx, [rsi]",
    "    mov r8, [rsi + rdx - 8]",
    "    mov [rdi], rcx",
    "    mov [rdi + rdx - 8], r8",
    "    ret",
    "30: cmp edx, 4",
    "    jb 40f",
    "    mov ecx, [rsi]",
    "    mov r8d, [rsi + rdx - 4]",
    "    mov [rdi], ecx",
    "    mov [rdi + rdx - 4], r8d",
    "    ret",
    // Up to 3 bytes: the first, the middle and the last one, some of which may coincide.
    "40: test edx, edx",
    "    jz 41f",
    "    mov r9d, edx",
    "    shr r9d, 1",
    "    movzx ecx, byte ptr [rsi]",
    "    movzx r8d, byte ptr [rsi + r9]",
    "    movzx r10d, byte ptr [rsi + rdx - 1]",
    "    mov [rdi], cl",
    "    mov [rdi + r9], r8b",
    "    mov [rdi + rdx - 1], r10b",
    "41: ret",
    // 33 bytes and more.
    "50: cmp rdx, 64",
    "    ja 60f",
    "    movups xmm0, [rsi]",
    "    movups xmm1, [rsi + 16]",
    "    movups xmm2, [rsi + rdx - 32]",
    "    movups xmm3, [rsi + rdx - 16]",
    "    movups [rdi], xmm0",
    "    movups [rdi + 16], xmm1",
    "    movups [rdi + rdx - 32], xmm2",
    "    movups [rdi + rdx - 16], xmm3",
    "    ret",
    // 65 bytes and more: the last 64 are kept in registers.
    "60: movups xmm4, [rsi + rdx - 64]",
    "    movups xmm5, [rsi + rdx - 48]",
    "    movups xmm6, [rsi + rdx - 32]",
    "    movups xmm7, [rsi + rdx - 16]",
    "    lea rcx, [rdi + rdx - 64]",
    "61: movups xmm0, [rsi]",
    "    movups xmm1, [rsi + 16]",
    "    movups xmm2, [rsi + 32]",
    "    movups xmm3, [rsi + 48]",
    "    movups [rdi], xmm0",
    "    movups [rdi + 16], xmm1",
    "    movups [rdi + 32], xmm2",
    "    movups [rdi + 48], xmm3",
    "    add rsi, 64",
    "    add rdi, 64",
    "    cmp rdi, rcx",
    "    jb 61b",
    "    movups [rcx], xmm4",
    "    movups [rcx + 16], xmm5",
    "    movups [rcx + 32], xmm6",
    "    movups [rcx + 48], xmm7",
    "    ret",
    ".cfi_endproc",
    ".size docent_copy, . - docent_copy",
    ".p2align 5",
    ".globl docent_move",
    ".hidden docent_move",
    ".type docent_move, @function",
    "docent_move:",
    ".cfi_startproc",
    "    mov rax, rdi",
    "    sub rax, rsi",
    "    cmp rax, rdx",
    "    jae docent_copy",
    "    cmp rdx, 64",
    "    jbe docent_copy",
    // The target begins inside the source: the first 64 bytes are kept in registers.
    "    movups xmm4, [rsi]",
    "    movups xmm5, [rsi + 16]",
    "    movups xmm6, [rsi + 32]",
    "    movups xmm7, [rsi + 48]",
    "    mov rax, rdi",
    "    lea rcx, [rdi + 64]",
    "    add rsi, rdx",
    "    add rdi, rdx",
    "80: movups xmm0, [rsi - 16]",
    "    movups xmm1, [rsi - 32]",
    "    movups xmm2, [rsi - 48]",
    "    movups xmm3, [rsi - 64]",
    "    movups [rdi - 16], xmm0",
    "    movups [rdi - 32], xmm1",
    "    movups [rdi - 48], xmm2",
    "    movups [rdi - 64], xmm3",
    "    sub rsi, 64",
    "    sub rdi, 64",
    "    cmp rdi, rcx",
    "    ja 80b",
    "    movups [rax], xmm4",
    "    movups [rax + 16], xmm5",
    "    movups [rax + 32], xmm6",
    "    movups [rax + 48], xmm7",
    "    ret",
    ".cfi_endproc",
    ".size docent_move, . - docent_move",
    ".popsection",
);

// Both are replaced, because musl's `memmove` calls its `memcpy`.
#[cfg(all(target_env = "musl", not(test)))]
global_asm!(
    ".globl memcpy",
    ".set memcpy, docent_copy",
    ".globl memmove",
    ".set memmove, docent_move",
);

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    unsafe extern "C" {
        fn docent_copy(to: *mut u8, from: *const u8, count: usize) -> *mut u8;
        fn docent_move(to: *mut u8, from: *const u8, count: usize) -> *mut u8;
    }

    /// Every length around a change of the code path, and some long ones.
    fn lengths() -> impl Iterator<Item = usize> {
        (0..=600).chain(4_000..=4_200)
    }

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|at| (at * 31 % 251) as u8).collect()
    }

    #[test]
    fn all_of_it_and_nothing_else_is_copied() {
        for count in lengths() {
            for (ahead, behind) in [(0, 0), (1, 0), (0, 3), (7, 15), (16, 9), (63, 33)] {
                let from = bytes(ahead + count);
                let mut to = std::vec![0xEE; behind + count + 64];
                // SAFETY: both buffers have `count` bytes at these offsets, and they do not overlap.
                let returned = unsafe {
                    docent_copy(to.as_mut_ptr().add(behind), from.as_ptr().add(ahead), count)
                };
                assert_eq!(returned, to[behind..].as_mut_ptr());
                assert_eq!(to[behind..behind + count], from[ahead..], "{count} bytes");
                assert!(to[..behind].iter().all(|byte| *byte == 0xEE));
                assert!(to[behind + count..].iter().all(|byte| *byte == 0xEE));
            }
        }
    }

    #[test]
    fn overlapping_ranges_are_moved_in_both_directions() {
        for count in lengths() {
            for apart in [0, 1, 2, 7, 8, 15, 16, 17, 31, 63, 64, 65, 100, count] {
                for (to, from) in [(0, apart), (apart, 0)] {
                    let mut both = bytes(count + apart);
                    let mut expected = both.clone();
                    expected.copy_within(from..from + count, to);
                    let start = both.as_mut_ptr();
                    // SAFETY: the range that begins later ends at the end of the buffer.
                    let returned = unsafe { docent_move(start.add(to), start.add(from), count) };
                    assert_eq!(returned, both[to..].as_mut_ptr());
                    assert_eq!(both, expected, "{count} bytes from {from} to {to}");
                }
            }
        }
    }
}

//! The command line: the library's deadlines, workers and demo in a shell. See [`cli`].

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")
)]

mod cli;

/// A request of the daemon allocates a hundred times; the system's allocator took a sixth of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}

//! The command line: the library's deadlines, workers and demo in a shell. See [`cli`].

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may stop at the first surprise")
)]

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}

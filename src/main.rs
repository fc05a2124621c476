//! The command line: the library's deadlines, workers and demo in a shell. See [`cli`].

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}

//! What forewarn costs, beside the bare commands on the same server in the same run: `cargo bench`, or `make bench`.
//!
//! `cargo bench -- [SECTION]... [--quick]` runs some sections only, or all of them in little time and with less meaning.
//! Prints tables and how the figures stand to their targets. Asserts nothing: the machine decides how fast it is, and a
//! missed target is no failure. Starts its own servers and leaves nothing behind.

#![expect(clippy::print_stderr, reason = "wrong arguments are told to the person who gave them")]

#[path = "../tests/harness/mod.rs"]
mod harness;

mod arrivals;
mod bare;
mod bare_file;
mod bytes;
mod claims;
mod embedded;
mod figure;
mod growth;
mod http;
mod idle;
mod lateness;
mod machine;
mod meter;
mod neighbours;
mod operations;
mod pair;
mod rig;
mod table;
mod work;

use std::process::ExitCode;

use anyhow::Result;

use pair::Round;
use table::Targets;

/// That of the command line, for both sides of every comparison.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The sections, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Operations,
    Bytes,
    Growth,
    Idle,
    Lateness,
    Neighbours,
    Embedded,
    Http,
}

impl Section {
    const ALL: [(&str, Self); 8] = [
        ("operations", Self::Operations),
        ("bytes", Self::Bytes),
        ("growth", Self::Growth),
        ("idle", Self::Idle),
        ("lateness", Self::Lateness),
        ("neighbours", Self::Neighbours),
        ("embedded", Self::Embedded),
        ("http", Self::Http),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, section)| *section == self).map_or("unknown", |(name, _)| name)
    }

    async fn run(self, effort: Effort, targets: &mut Targets) -> Result<()> {
        match self {
            Self::Operations => operations::run(effort, targets).await,
            Self::Bytes => bytes::run(effort, targets).await,
            Self::Growth => growth::run(effort, targets).await,
            Self::Idle => idle::run(effort, targets).await,
            Self::Lateness => lateness::run(effort, targets).await,
            Self::Neighbours => neighbours::run(effort, targets).await,
            Self::Embedded => embedded::run(effort, targets).await,
            Self::Http => http::run(effort, targets).await,
        }
    }
}

/// How much time the run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    Full,
    Quick,
}

impl Effort {
    /// One of two amounts.
    fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }

    /// How many rounds count.
    fn count(self) -> usize {
        self.pick(7, 3)
    }

    /// The round that warms up, and those that count.
    fn rounds(self) -> impl Iterator<Item = Round> {
        (0..=self.count()).map(Round)
    }
}

/// What the arguments say; the error is for the person who gave them.
fn read(arguments: impl Iterator<Item = String>) -> Result<Option<(Vec<Section>, Effort)>, String> {
    let (mut sections, mut effort, mut is_bench) = (Vec::new(), Effort::Full, false);
    for argument in arguments {
        let named = Section::ALL.iter().find(|(name, _)| *name == argument);
        match (argument.as_str(), named) {
            // Cargo gives it to a benchmark, and does not when it only wants to see that it runs.
            ("--bench", _) => is_bench = true,
            ("--quick", _) => effort = Effort::Quick,
            (_, Some((_, section))) => sections.push(*section),
            _ => {
                let names: Vec<&str> = Section::ALL.iter().map(|(name, _)| *name).collect();
                return Err(format!("unknown argument \"{argument}\"; give --quick or sections: {}", names.join(" ")));
            }
        }
    }
    if sections.is_empty() {
        sections = Section::ALL.iter().map(|(_, section)| *section).collect();
    }
    Ok(is_bench.then_some((sections, effort)))
}

fn main() -> ExitCode {
    match read(std::env::args().skip(1)) {
        Ok(Some((sections, effort))) => match run(&sections, effort) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error:#}");
                ExitCode::FAILURE
            }
        },
        Ok(None) => ExitCode::SUCCESS,
        Err(usage) => {
            eprintln!("error: {usage}");
            ExitCode::from(2)
        }
    }
}

#[tokio::main]
async fn run(sections: &[Section], effort: Effort) -> Result<()> {
    machine::tell();
    let mut targets = Targets::default();
    for section in sections {
        machine::begin(section.name());
        section.run(effort, &mut targets).await?;
    }
    targets.print();
    Ok(())
}

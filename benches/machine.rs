//! The machine of a run, said above its tables: figures without it mean little.

use std::{fs, process::Command, thread};

use crate::table::say;

/// Prints what is known of the machine. What cannot be read is left out.
pub(crate) fn tell() {
    let cores = thread::available_parallelism().map_or_else(|_| "cores unknown".to_owned(), |n| format!("cores: {n}"));
    let cpu = line("/proc/cpuinfo", "model name").map(|line| line.trim_start_matches([' ', '\t', ':']).to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|kernel| format!("Linux {}", kernel.trim()));
    let server = Command::new("redis-server").arg("--version").output().ok();
    let server = server.and_then(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Some(format!("Redis {}", text.split(' ').find_map(|word| word.strip_prefix("v="))?))
    });
    let known: Vec<String> = [server, Some(cores), cpu, kernel].into_iter().flatten().collect();
    say(known.join("; "));
}

/// Prints which section begins, and how busy the machine is with anything else by then.
pub(crate) fn begin(section: &str) {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown");
    say(format!("\nSection {section}; load of the last minute: {load}"));
}

fn line(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned))
}

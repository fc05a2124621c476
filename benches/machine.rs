//! The machine of a run, said above its tables: figures without it mean little.

use std::{fs, process::Command, thread};

use crate::table::say;

/// Prints what is known of the machine and how busy it is. What cannot be read is left out.
pub(crate) fn tell() {
    let cores = thread::available_parallelism().map_or_else(|_| "cores unknown".to_owned(), |n| format!("cores: {n}"));
    let cpu = line("/proc/cpuinfo", "model name").map(|line| line.trim_start_matches([' ', '\t', ':']).to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|kernel| format!("Linux {}", kernel.trim()));
    let load = fs::read_to_string("/proc/loadavg").ok().map(|load| {
        let first: Vec<&str> = load.split(' ').take(1).collect();
        format!("load of the last minute: {}", first.concat())
    });
    let server = Command::new("redis-server").arg("--version").output().ok();
    let server = server.and_then(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Some(format!("Redis {}", text.split(' ').find_map(|word| word.strip_prefix("v="))?))
    });
    let known: Vec<String> = [server, Some(cores), cpu, kernel, load].into_iter().flatten().collect();
    say(known.join("; "));
}

fn line(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned))
}

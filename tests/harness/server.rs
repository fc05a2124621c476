//! Servers that belong to the tests: each on a free port, in a directory of its own, gone when the test process is.
//!
//! A server is only ever ended by its own process id. It persists nothing unless its arguments say so. Its default user is
//! the harness's own, with which forewarn can do nothing; forewarn connects as a user with the documented rights.

use std::{
    collections::VecDeque,
    fmt,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, OnceLock, mpsc},
    thread,
};

use redis::{AsyncConnectionConfig, aio::MultiplexedConnection};

use super::process::signal;
use super::rights::{self, Rights, as_forewarn};
use super::wait::PATIENCE;

/// Which server software.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `redis-server`, found on the path; every run needs it.
    Redis,
    /// `valkey-server`, from `FOREWARN_VALKEY_SERVER` or where `make test` puts it.
    Valkey,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redis => "redis",
            Self::Valkey => "valkey",
        })
    }
}

impl Kind {
    /// Where the program is, if it is at hand.
    fn program(self) -> Option<PathBuf> {
        match self {
            Self::Redis => std::env::split_paths(&std::env::var_os("PATH")?)
                .map(|directory| directory.join("redis-server"))
                .find(|program| program.is_file()),
            Self::Valkey => match std::env::var_os("FOREWARN_VALKEY_SERVER") {
                Some(program) => {
                    let program = PathBuf::from(program);
                    assert!(program.is_file(), "FOREWARN_VALKEY_SERVER names no file: {}", program.display());
                    Some(program)
                }
                None => {
                    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(".test-tools/valkey/valkey-server");
                    program.is_file().then_some(program)
                }
            },
        }
    }
}

/// The kinds of servers at hand: always Redis, without which the run fails, and Valkey where it is installed.
pub(crate) fn servers() -> Vec<Kind> {
    assert!(Kind::Redis.program().is_some(), "redis-server is not on the PATH; `make test` installs it");
    [Kind::Redis, Kind::Valkey].into_iter().filter(|kind| kind.program().is_some()).collect()
}

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server {
    kind: Kind,
    port: u16,
    directory: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// Users that the test asked for: for a restart, which knows no others than its arguments name.
    users: Mutex<Vec<String>>,
    process: Mutex<Option<Process>>,
}

impl Server {
    /// Starts a Redis with nothing but the defaults of the harness.
    pub(crate) fn start() -> Self {
        Self::start_with(Kind::Redis, &[])
    }

    /// Starts a server with further arguments, such as `["--appendonly", "yes"]`.
    pub(crate) fn start_with(kind: Kind, arguments: &[&str]) -> Self {
        Self::start_under(kind, arguments, &[])
    }

    /// Starts a server with further variables in its environment, such as `[("LC_ALL", "en_US.UTF-8")]`.
    pub(crate) fn start_under(kind: Kind, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let environment: Vec<(String, String)> =
            environment.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let directory = tempfile::Builder::new().prefix("forewarn-").tempdir().expect("a temporary directory").keep();
        let own = arguments.iter().map(|&argument| argument.to_owned());
        let users = [("default", Rights::of_owner()), (rights::USER, Rights::documented())];
        let users = users.iter().flat_map(|(name, rights)| user_argument(name, rights));
        let arguments: Vec<String> = own.chain(users).collect();
        let mut problems = Vec::new();
        // Between the probe of a port and the server's start another process may take it.
        for _ in 0..8 {
            let port = free_port();
            match Process::start(kind, port, &directory, &arguments, &environment) {
                Ok(process) => {
                    let process = Mutex::new(Some(process));
                    return Self { kind, port, directory, arguments, environment, users: Mutex::default(), process };
                }
                Err(problem) => problems.push(problem),
            }
        }
        panic!("{kind} does not start:\n{}", problems.join("\n"));
    }

    /// The one server of this kind that all tests of this binary share; started by the first that asks.
    pub(crate) fn shared(kind: Kind) -> &'static Self {
        static REDIS: OnceLock<Server> = OnceLock::new();
        static VALKEY: OnceLock<Server> = OnceLock::new();
        let shared = match kind {
            Kind::Redis => &REDIS,
            Kind::Valkey => &VALKEY,
        };
        shared.get_or_init(|| Self::start_with(kind, &[]))
    }

    /// Which software it is.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Its URL for forewarn's own connections, as `redis://USER:PASSWORD@127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        as_forewarn(&self.owner_url())
    }

    /// The same with a new user that has these rights.
    pub(crate) fn url_with(&self, rights: &Rights) -> String {
        let mut users = self.users.lock().unwrap();
        let user = format!("{}-{}", rights::USER, users.len());
        let mut set = redis::cmd("ACL");
        set.arg("SETUSER").arg(&user).arg(rights.words().collect::<Vec<_>>());
        set.exec(&mut self.blocking_connection()).expect("the test's own server takes its rights");
        users.extend(user_argument(&user, rights));
        rights::as_user(&user, &self.owner_url())
    }

    /// Its URL for the test itself, which may do all but run a script by its hash: `redis://127.0.0.1:PORT`.
    pub(crate) fn owner_url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The same by the Unix socket it listens on, too.
    pub(crate) fn owner_socket_url(&self) -> String {
        format!("redis+unix://{}", self.directory.join("socket").display())
    }

    /// Its port on the loopback address.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.lock().unwrap().as_ref().expect("the server runs").pid
    }

    /// A connection for direct commands, without any time limit of its own.
    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        connect(&self.owner_url()).await
    }

    /// The same for a new user that has these rights.
    pub(crate) async fn connection_with(&self, rights: &Rights) -> MultiplexedConnection {
        connect(&self.url_with(rights)).await
    }

    /// The same without a runtime.
    pub(crate) fn blocking_connection(&self) -> redis::Connection {
        redis::Client::open(self.owner_url()).unwrap().get_connection().expect("the test's own server answers")
    }

    /// Runs a command of words.
    pub(crate) fn command(&self, line: &str) {
        let mut words = line.split_whitespace();
        let mut command = redis::cmd(words.next().expect("a word"));
        command
            .arg(words.collect::<Vec<_>>())
            .exec(&mut self.blocking_connection())
            .expect("the test's own server obeys");
    }

    /// Ends it as a crash would. Its directory stays for a restart.
    pub(crate) fn kill(&self) {
        if let Some(process) = self.process.lock().unwrap().take() {
            process.end(Leftover::Keep);
        }
    }

    /// Starts it again on the same port and directory, after ending it as a crash would if it runs.
    pub(crate) fn restart(&self) {
        self.kill();
        let arguments = [&self.arguments[..], &self.users.lock().unwrap()].concat();
        let process = Process::start(self.kind, self.port, &self.directory, &arguments, &self.environment);
        *self.process.lock().unwrap() = Some(process.unwrap_or_else(|problem| panic!("no restart: {problem}")));
    }

    /// Stops its execution: connections stay, nothing is answered.
    pub(crate) fn pause(&self) {
        signal(self.pid(), "STOP");
    }

    /// Goes on after a pause.
    pub(crate) fn resume(&self) {
        signal(self.pid(), "CONT");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        match self.process.get_mut().unwrap().take() {
            Some(process) => process.end(Leftover::Remove),
            None => std::fs::remove_dir_all(&self.directory).unwrap(),
        }
    }
}

async fn connect(url: &str) -> MultiplexedConnection {
    let unlimited = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    let client = redis::Client::open(url).unwrap();
    client.get_multiplexed_async_connection_with_config(&unlimited).await.expect("the test's own server answers")
}

/// What gives a server this user when it starts.
fn user_argument(name: &str, rights: &Rights) -> Vec<String> {
    ["--user", name].into_iter().chain(rights.words()).map(str::to_owned).collect()
}

/// A port nobody listens on, below the range from which the system takes those of outgoing connections: one that is
/// free for a moment during a restart is not given away meanwhile.
pub(crate) fn free_port() -> u16 {
    std::iter::repeat_with(|| fastrand::u16(12_000..32_000))
        .take(1_000)
        .find(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok())
        .expect("a free port")
}

/// What becomes of the directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leftover {
    Keep,
    Remove,
}

/// One run of the server under its watchdog.
#[derive(Debug)]
struct Process {
    watchdog: Child,
    pid: u32,
}

impl Process {
    /// Starts it and returns once it accepts connections; else answers with its last words.
    fn start(
        kind: Kind,
        port: u16,
        directory: &Path,
        arguments: &[String],
        environment: &[(String, String)],
    ) -> Result<Self, String> {
        let program = kind.program().unwrap_or_else(|| panic!("no {kind} server at hand; `make test` installs it"));
        let port = port.to_string();
        let mut watchdog = Command::new("sh")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/harness/watchdog.sh"))
            .arg(directory)
            .arg(program)
            .args(["--port", &port, "--bind", "127.0.0.1", "--dir"])
            .arg(directory)
            .arg("--unixsocket")
            .arg(directory.join("socket"))
            .args(["--save", "", "--appendonly", "no", "--daemonize", "no", "--enable-debug-command", "yes"])
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A Ctrl-C meant for the tests must not end the watchdog before it has done its work.
            .process_group(0)
            .spawn()
            .expect("sh runs");
        let output = watchdog.stdout.take().expect("piped");

        // Read to its end, so that a talkative server never blocks on a full pipe.
        let (tell, told) = mpsc::channel();
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&last_words);
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(pid) = line.strip_prefix("pid ") {
                    tell.send(Word::Pid(pid.parse().unwrap())).ok();
                } else if line.contains("Ready to accept connections") {
                    tell.send(Word::Ready).ok();
                }
                let mut kept = kept.lock().unwrap();
                kept.push_back(line);
                if kept.len() > 30 {
                    kept.pop_front();
                }
            }
        });

        let mut process = Self { watchdog, pid: 0 };
        loop {
            match told.recv_timeout(PATIENCE) {
                Ok(Word::Pid(pid)) => process.pid = pid,
                Ok(Word::Ready) => return Ok(process),
                Err(_) => {
                    process.end(Leftover::Keep);
                    let words = last_words.lock().unwrap();
                    return Err(words.iter().map(String::as_str).collect::<Vec<_>>().join("\n"));
                }
            }
        }
    }

    /// Kills the server, waits until it is gone and says what becomes of its directory.
    fn end(mut self, leftover: Leftover) {
        let mut stdin = self.watchdog.stdin.take().expect("piped");
        if leftover == Leftover::Keep {
            // It fails only if the watchdog is gone, and then there is nobody to tell.
            stdin.write_all(b"keep\n").ok();
        }
        drop(stdin);
        self.watchdog.wait().expect("the watchdog ends");
    }
}

/// What a starting server has said.
enum Word {
    Pid(u32),
    Ready,
}

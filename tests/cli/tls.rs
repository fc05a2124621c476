//! A store over TLS: a private CA is trusted by `SSL_CERT_FILE`, and a certificate nobody vouches for is a clear error.
//!
//! Server and certificates are made for the run and gone after it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    harness::{Kind, Server, as_forewarn, free_port, namespace},
    process::{Running, bare, end},
};

/// A CA, and a certificate of its own for `localhost`.
const CERTIFICATES: &str = r#"set -e
key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }
key ca.key; key server.key
openssl req -x509 -new -key ca.key -subj "/CN=a CA of the tests" -days 2 -out ca.pem \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
openssl req -new -key server.key -subj /CN=localhost -out server.csr
echo subjectAltName=DNS:localhost > names
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem
"#;

/// A server that speaks TLS and nothing else over the network.
struct Guarded {
    certificates: tempfile::TempDir,
    port: u16,
    _server: Server,
}

impl Guarded {
    fn start() -> Self {
        let certificates = tempfile::tempdir().unwrap();
        let made = Command::new("sh").args(["-c", CERTIFICATES]).current_dir(&certificates).output().unwrap();
        assert!(made.status.success(), "openssl, which `make test` installs, fails: {made:?}");
        let file = |name: &str| certificates.path().join(name).display().to_string();
        let port = free_port();
        let server = Server::start_with(
            Kind::Redis,
            &[
                ["--port", "0"],
                ["--tls-port", &port.to_string()],
                ["--tls-cert-file", &file("server.pem")],
                ["--tls-key-file", &file("server.key")],
                ["--tls-ca-cert-file", &file("ca.pem")],
                ["--tls-auth-clients", "no"],
            ]
            .concat(),
        );
        Self { certificates, port, _server: server }
    }

    fn authority(&self) -> PathBuf {
        self.certificates.path().join("ca.pem")
    }

    /// A command on this store that trusts what `authority` vouches for.
    fn command(&self, authority: &Path, words: &[&str]) -> Command {
        let mut command = bare();
        command
            .args(words)
            .env_remove("SSL_CERT_DIR")
            .env("SSL_CERT_FILE", authority)
            .env("FOREWARN_STORE", as_forewarn(&format!("rediss://localhost:{}", self.port)));
        command
    }
}

#[test]
fn a_private_ca_is_trusted_by_its_file() {
    let server = Guarded::start();
    let name = namespace();
    let command = |words: &[&str]| server.command(&server.authority(), words);
    end(command(&["namespace", "apply", &name])).done();
    let work = Running::start(command(&["work", &name]));
    end(command(&["track", &name, "a", "--at-ms", "1000000000000"])).done();
    assert!(work.line().contains("\"subject\":\"a\""));
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_a_clear_error() {
    let server = Guarded::start();
    let stranger = Guarded::start();
    let said = end(server.command(&stranger.authority(), &["namespace", "list"])).failed();
    assert!(said.starts_with("error: ") && said.contains("certificate"), "{said}");
    assert!(said.contains(&format!("localhost:{}", server.port)), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_plain_connection_to_a_server_of_tls_fails_in_one_line() {
    let server = Guarded::start();
    let mut command = server.command(&server.authority(), &["namespace", "list"]);
    command.env("FOREWARN_STORE", as_forewarn(&format!("redis://localhost:{}", server.port)));
    let said = end(command).failed();
    assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
}

//! A wire between workers and their server that a test can cut.

use std::net::Ipv4Addr;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

use crate::harness::{Server, as_forewarn};

/// A proxy in front of a server. Dropped, it takes all connections along.
pub(crate) struct Proxy {
    port: u16,
    is_cut: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn before(server: &Server) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_cut, cut) = watch::channel(false);
        let task = tokio::spawn(serve(listener, server.port(), cut));
        Self { port, is_cut, task }
    }

    pub(crate) fn url(&self) -> String {
        as_forewarn(&format!("redis://127.0.0.1:{}", self.port))
    }

    /// Ends all connections, and from now on each at once.
    pub(crate) fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    pub(crate) fn mend(&self) {
        self.is_cut.send_replace(false);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, to: u16, cut: watch::Receiver<bool>) {
    loop {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut cut = cut.clone();
        tokio::spawn(async move {
            let passing = async {
                // The server may be away: then so is what leads to it.
                if let Ok(mut far) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await {
                    copy_bidirectional(&mut near, &mut far).await.ok();
                }
            };
            tokio::select! {
                biased;
                // Also when whoever cuts it is gone.
                _ = cut.wait_for(|is_cut| *is_cut) => {}
                () = passing => {}
            }
        });
    }
}

//! Certificate and key of the listener.

use std::{path::Path, sync::Arc};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio_rustls::TlsAcceptor;

use crate::config::Tls;
use crate::daemon::DaemonError;

/// Loads the files.
pub(super) fn load(tls: &Tls) -> Result<TlsAcceptor, DaemonError> {
    let Tls { cert_file, key_file } = tls;
    let chain = CertificateDer::pem_file_iter(cert_file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| unusable(cert_file, e))?;
    if chain.is_empty() {
        return Err(unusable(cert_file, "it holds no certificate in PEM"));
    }
    let key = PrivateKeyDer::from_pem_file(key_file).map_err(|e| unusable(key_file, e))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
    let mut config = config.map_err(|e| unusable(key_file, format!("it does not fit the certificate: {e}")))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config).into())
}

fn unusable(file: &Path, problem: impl ToString) -> DaemonError {
    DaemonError::Tls { file: file.display().to_string(), problem: problem.to_string() }
}

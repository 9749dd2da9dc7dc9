//! The door for other machines: the same API over TLS.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto::ring};
use tokio_rustls::server::TlsStream;

/// How long a caller may take to agree on a key.
const PATIENCE: Duration = Duration::from_secs(10);
/// Callers that have agreed on a key and are not served yet.
const WAITING: usize = 64;
/// What is waited after an error of the listener, such as too many open files.
const PAUSE: Duration = Duration::from_millis(200);

/// Where to listen, and who we are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// The address.
    pub listen: String,
    /// The certificate and those that vouch for it, as PEM.
    pub certificate: PathBuf,
    /// Its key, as PEM.
    pub key: PathBuf,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that does not hold what it should.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A certificate and a key that do not go together.
    #[error("the certificate {} and the key {} cannot be used: {reason}", certificate.display(), key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// Accepts callers, and agrees on a key with each of them beside the others.
pub(crate) struct TlsListener {
    address: SocketAddr,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
}

/// Reads certificate and key.
pub(crate) fn acceptor(settings: &TlsSettings) -> Result<TlsAcceptor, TlsError> {
    let TlsSettings { certificate, key, .. } = settings;
    let wrong = |path: &Path, reason: &dyn std::fmt::Display| TlsError::File {
        path: path.to_owned(),
        reason: reason.to_string(),
    };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| wrong(certificate, &error))?;
    if chain.is_empty() {
        return Err(wrong(certificate, &"there is no certificate in it; PEM is expected"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let pair = |error: tokio_rustls::rustls::Error| TlsError::Pair {
        certificate: certificate.clone(),
        key: key.clone(),
        reason: error.to_string(),
    };
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(pair)?;
    let config = config.with_no_client_auth().with_single_cert(chain, private).map_err(pair)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

impl TlsListener {
    /// On a listener, from now on.
    pub(crate) fn new(listener: TcpListener, acceptor: TlsAcceptor) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (sender, ready) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            while !sender.is_closed() {
                let Ok((stream, from)) = listener.accept().await else {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                };
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                tokio::spawn(async move {
                    // Who does not speak TLS, or takes too long, is not served.
                    if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
                        let _ = sender.send((stream, from)).await;
                    }
                });
            }
        });
        Ok(Self { address, ready })
    }
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(caller) => caller,
            // The task that accepts ends only after us.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.address)
    }
}

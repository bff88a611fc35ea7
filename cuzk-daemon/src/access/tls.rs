//! Certificates of the TCP listeners, and the handshake with a client.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use cuzk_server::{Handshake, Secure, Secured};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    server::WebPkiClientVerifier,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use x509_parser::{certificate::X509Certificate, prelude::FromDer};

use super::files::{FileError, Privacy, read_private};
use crate::config::TlsFiles;

/// The protocols of a gRPC listener.
pub const GRPC: &[&[u8]] = &[b"h2"];
/// The protocols of a listener for browsers.
pub const WEB: &[&[u8]] = &[b"h2", b"http/1.1"];
/// How long before its end a certificate is worth a warning.
const WARN_BEFORE: Duration = Duration::from_secs(14 * 24 * 3600);

/// The certificates in force. Clones share them, and new connections see what a reload brings; those that are open
/// keep the ones they began with.
#[derive(Clone, Debug)]
pub struct Tls(Arc<RwLock<Loaded>>);

#[derive(Clone, Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    cert: PathBuf,
    expires: SystemTime,
}

/// Why certificates are not used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file without what it should hold.
    #[error("{key}: {} holds no {what} in PEM form: {reason}", path.display())]
    Content {
        /// The configuration key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is missing.
        what: &'static str,
        /// The parser's words.
        reason: String,
    },
    /// Certificate and key do not go together, or one of them is of no use.
    #[error("tls.cert {} and tls.key {}: {reason}", cert.display(), key.display())]
    Pair {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Tls {
    /// Reads certificate, key and the authority of clients; `None` where no certificate is configured.
    ///
    /// # Errors
    /// If they cannot be read or used.
    pub fn load(files: &TlsFiles) -> Result<Option<Self>, TlsError> {
        Ok(read(files)?.map(|loaded| Self(Arc::new(RwLock::new(loaded)))))
    }

    /// Reads them again, and uses them for connections from now on.
    ///
    /// # Errors
    /// If they cannot be read or used: the old ones stay.
    pub fn reload(&self, files: &TlsFiles) -> Result<(), TlsError> {
        if let Some(loaded) = read(files)? {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        }
        Ok(())
    }

    /// What secures the connections of a listener that speaks these protocols.
    pub fn acceptor(&self, protocols: &'static [&'static [u8]]) -> Arc<dyn Secure> {
        Arc::new(Acceptor { tls: self.clone(), protocols })
    }

    /// What the operator should hear about the certificate's end at the time `now`.
    pub fn expiry_warning(&self, now: SystemTime) -> Option<String> {
        let loaded = self.loaded();
        expiry_text(&loaded.cert, loaded.expires, now)
    }

    fn loaded(&self) -> Loaded {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Handshakes with the certificates in force.
#[derive(Debug)]
struct Acceptor {
    tls: Tls,
    protocols: &'static [&'static [u8]],
}

impl Secure for Acceptor {
    fn handshake(&self, stream: TcpStream) -> Handshake {
        let mut config = (*self.tls.loaded().config).clone();
        config.alpn_protocols = self.protocols.iter().map(|p| p.to_vec()).collect();
        let accepting = TlsAcceptor::from(Arc::new(config)).accept(stream);
        Box::pin(async move {
            let stream = accepting.await?;
            let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| subject(chain.first()?));
            Ok(Secured { io: Box::new(stream), certificate })
        })
    }
}

fn read(files: &TlsFiles) -> Result<Option<Loaded>, TlsError> {
    // The configuration has been checked to have both or none.
    let (Some(cert), Some(key)) = (&files.cert, &files.key) else { return Ok(None) };
    let chain = certificates("tls.cert", cert)?;
    let key_text = read_private("tls.key", key, Privacy::NotOthers)?;
    let private = PrivateKeyDer::from_pem_slice(key_text.as_bytes()).map_err(|e| TlsError::Content {
        key: "tls.key",
        path: key.clone(),
        what: "private key",
        reason: e.to_string(),
    })?;
    let pair = |reason: String| TlsError::Pair { cert: cert.clone(), key: key.clone(), reason };
    let expires = expires(&chain[0]).map_err(|e| pair(e.to_string()))?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| pair(e.to_string()))?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => builder.with_client_cert_verifier(verifier(path, provider)?),
    };
    let config = builder.with_single_cert(chain, private).map_err(|e| {
        pair(match e {
            rustls::Error::InconsistentKeys(_) => "the key is not that of the certificate".to_owned(),
            other => other.to_string(),
        })
    })?;
    Ok(Some(Loaded { config: Arc::new(config), cert: cert.clone(), expires }))
}

/// At least one certificate.
fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read_private(key, path, Privacy::Public)?;
    let content = |reason: String| TlsError::Content { key, path: path.to_owned(), what: "certificate", reason };
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let all = all.map_err(|e| content(e.to_string()))?;
    if all.is_empty() { Err(content("no CERTIFICATE section is in it".to_owned())) } else { Ok(all) }
}

fn verifier(
    path: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let content = |reason: String| TlsError::Content {
        key: "tls.client_ca",
        path: path.to_owned(),
        what: "certificate of an authority",
        reason,
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates("tls.client_ca", path)? {
        roots.add(certificate).map_err(|e| content(e.to_string()))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    builder.build().map_err(|e| content(e.to_string()))
}

fn expires(certificate: &CertificateDer<'_>) -> io::Result<SystemTime> {
    let invalid = |e| io::Error::new(io::ErrorKind::InvalidData, format!("the certificate is malformed: {e}"));
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(invalid)?;
    let seconds = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or(0);
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

fn subject(certificate: &CertificateDer<'_>) -> Option<Arc<str>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    Some(parsed.subject().to_string().into())
}

fn expiry_text(cert: &Path, expires: SystemTime, now: SystemTime) -> Option<String> {
    let path = cert.display();
    match expires.duration_since(now) {
        Err(_) => Some(format!("tls.cert {path} has expired: clients refuse it; renew it, and it is read by itself")),
        Ok(left) if left < WARN_BEFORE => Some(format!(
            "tls.cert {path} expires in {} days; renew it, and it is read by itself",
            left.as_secs() / 86_400
        )),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_certificate_is_told_two_weeks_before() {
        let (day, end) = (Duration::from_secs(86_400), SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 31));
        let text = |now| expiry_text(Path::new("/c.pem"), end, now);
        assert_eq!(text(end - 15 * day), None);
        assert!(text(end - 13 * day).is_some_and(|t| t.contains("/c.pem expires in 13 days")));
        assert!(text(end + day).is_some_and(|t| t.contains("has expired")));
    }
}

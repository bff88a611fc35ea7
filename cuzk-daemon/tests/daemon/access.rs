//! Certificates and tokens, over real sockets.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use cuzk_daemon::{access::Guard, cli::ClientArgs, client, exit::Exit, shutdown::Trigger};
use cuzk_proto::v1::{GetStatusRequest, proving_engine_client::ProvingEngineClient};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};
use tokio::net::TcpStream;

use super::*;

/// An authority, and a folder with what it signs.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    dir: PathBuf,
}

impl Authority {
    pub(crate) fn new(dir: &Path, name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed");
        let dir = dir.join(name);
        fs::create_dir(&dir).expect("writable");
        fs::write(dir.join("ca.pem"), issuer.pem()).expect("writable");
        Self { issuer, dir }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// Writes `NAME.pem` and `NAME.key`.
    pub(crate) fn sign(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) {
        let mut params = CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()]).expect("legal names");
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        fs::write(self.dir.join(format!("{name}.pem")), certificate.pem()).expect("writable");
        let key_path = self.dir.join(format!("{name}.key"));
        fs::write(&key_path, key.serialize_pem()).expect("writable");
        chmod(&key_path, 0o600);
    }

    pub(crate) fn config(&self, name: &str) -> Config {
        let mut config = Config::default();
        config.daemon.listen = OneOrMany(vec![Endpoint::Tcp(([127, 0, 0, 1], 0).into())]);
        config.tls.cert = Some(self.dir.join(format!("{name}.pem")));
        config.tls.key = Some(self.dir.join(format!("{name}.key")));
        config
    }

    fn client(&self, target: &Target) -> ClientArgs {
        ClientArgs {
            addr: target.clone(),
            tls_ca: Some(self.dir.join("ca.pem")),
            tls_cert: None,
            tls_key: None,
            token_file: None,
        }
    }
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
}

/// A daemon with its guard, which goes on until the trigger is dropped.
fn guarded(config: Config) -> (Target, Guard, Trigger) {
    let bound = Bound::bind(&config).expect("good files and a free port");
    let guard = bound.guard().clone();
    let Endpoint::Tcp(address) = bound.endpoints()[0] else { panic!("it is TCP") };
    let (trigger, asked) = shutdown::manual();
    tokio::spawn(async move { run::run_daemon(&config, &PLAN, bound, None, Arc::new(Pretender), asked).await });
    let target = match guard.tls {
        Some(_) => Target::Tls(address.to_string()),
        None => Target::Tcp(address.to_string()),
    };
    (target, guard, trigger)
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_serves_those_who_know_its_authority_and_explains_itself_to_others() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (ours, other) = (Authority::new(dir.path(), "ours"), Authority::new(dir.path(), "other"));
    ours.sign("server", |_| ());
    ours.sign("old", |params| params.not_after = date_time_ymd(2001, 1, 1));
    ours.sign("elsewhere", |params| params.subject_alt_names.truncate(1));
    let (target, _guard, _running) = guarded(ours.config("server"));
    let ca = ours.path("ca.pem");
    let good = cuzk(&target, &["status", "--tls-ca", &ca]).await;
    assert_eq!((good.code, good.out.contains("serving")), (0, true), "{}", good.err);

    let refused = cuzk(&target, &["status", "--tls-ca", &other.path("ca.pem")]).await;
    assert_eq!((refused.code, refused.err.contains("--tls-ca")), (3, true), "{}", refused.err);
    let unnamed = cuzk(&target, &["status"]).await;
    assert_eq!((unnamed.code, unnamed.err.contains("--tls-ca")), (2, true), "{}", unnamed.err);
    let Target::Tls(authority) = &target else { panic!("it speaks TLS") };
    let plain = cuzk(&Target::Tcp(authority.clone()), &["status"]).await;
    assert_eq!((plain.code, plain.err.contains("https://")), (3, true), "{}", plain.err);

    let (target, _guard, _running) = guarded(ours.config("old"));
    let expired = cuzk(&target, &["status", "--tls-ca", &ca]).await;
    assert_eq!((expired.code, expired.err.contains("has expired")), (3, true), "{}", expired.err);
    let (target, _guard, _running) = guarded(ours.config("elsewhere"));
    let misnamed = cuzk(&target, &["status", "--tls-ca", &ca]).await;
    assert_eq!((misnamed.code, misnamed.err.contains("another host")), (3, true), "{}", misnamed.err);

    let plain = daemon();
    let Target::Tcp(authority) = plain.target.clone() else { panic!("it speaks plain text") };
    let reverse = cuzk(&Target::Tls(authority), &["status", "--tls-ca", &ca]).await;
    assert_eq!((reverse.code, reverse.err.contains("http://")), (3, true), "{}", reverse.err);
    plain.stop().await.expect("drained");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_client_authority_only_those_whom_it_signed_come_in() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (ours, other) = (Authority::new(dir.path(), "ours"), Authority::new(dir.path(), "other"));
    ours.sign("server", |_| ());
    ours.sign("node", |_| ());
    other.sign("stranger", |_| ());
    let mut config = ours.config("server");
    config.tls.client_ca = Some(ours.dir.join("ca.pem"));
    let (target, _guard, _running) = guarded(config);
    let ca = ours.path("ca.pem");
    let show = |cert: String, key: String| {
        let (target, ca) = (target.clone(), ca.clone());
        async move { cuzk(&target, &["status", "--tls-ca", &ca, "--tls-cert", &cert, "--tls-key", &key]).await }
    };
    let good = show(ours.path("node.pem"), ours.path("node.key")).await;
    assert_eq!(good.code, 0, "{}", good.err);
    let none = cuzk(&target, &["status", "--tls-ca", &ca]).await;
    assert_eq!((none.code, none.err.contains("--tls-cert")), (3, true), "{}", none.err);
    let stranger = show(other.path("stranger.pem"), other.path("stranger.key")).await;
    assert_eq!((stranger.code, stranger.err.contains("client_ca")), (3, true), "{}", stranger.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_for_new_connections_and_a_bad_one_for_none() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (old, new) = (Authority::new(dir.path(), "old"), Authority::new(dir.path(), "new"));
    old.sign("server", |_| ());
    new.sign("server", |_| ());
    let config = old.config("server");
    let (target, guard, _running) = guarded(config.clone());
    let mut lives = client::open(&old.client(&target)).await.expect("it is there");
    lives.get_status(GetStatusRequest {}).await.expect("answered");

    fs::copy(new.dir.join("server.pem"), old.dir.join("server.pem")).expect("writable");
    let mismatch = guard.reload(&config).expect_err("half of a pair").to_string();
    assert!(
        mismatch.contains("the key is not that of the certificate") && mismatch.contains("server.key"),
        "{mismatch}"
    );
    client::open(&old.client(&target)).await.expect("the old pair is still in force");

    fs::copy(new.dir.join("server.key"), old.dir.join("server.key")).expect("writable");
    guard.reload(&config).expect("a pair");
    lives.get_status(GetStatusRequest {}).await.expect("the connection that was open goes on");
    let refused = client::open(&old.client(&target)).await.expect_err("signed by another");
    assert_eq!(refused.exit, Exit::Unreachable);
    let mut fresh = client::open(&new.client(&target)).await.expect("the new pair is in force");
    fresh.get_status(GetStatusRequest {}).await.expect("answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_not_fit_for_use_are_refused_by_name() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ours = Authority::new(dir.path(), "ours");
    ours.sign("server", |_| ());
    let refused = |config: &Config| Bound::bind(config).expect_err("not fit").to_string();
    let config = ours.config("server");
    chmod(&ours.dir.join("server.key"), 0o644);
    let text = refused(&config);
    assert!(text.contains("chmod 0640") && text.contains("server.key"), "{text}");
    chmod(&ours.dir.join("server.key"), 0o600);
    let mut swapped = config.clone();
    swapped.tls.cert = config.tls.key.clone();
    assert!(refused(&swapped).contains("tls.cert") && refused(&swapped).contains("no certificate"));
    let mut lost = config.clone();
    lost.tls.client_ca = Some(ours.dir.join("nowhere.pem"));
    assert!(refused(&lost).contains("nowhere.pem"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_holds_up_nobody() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ours = Authority::new(dir.path(), "ours");
    ours.sign("server", |_| ());
    let (target, _guard, _running) = guarded(ours.config("server"));
    let Target::Tls(authority) = &target else { panic!("it speaks TLS") };
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(authority).await.expect("accepted"));
    }
    let mut client = client::open(&ours.client(&target)).await.expect("beside the silent ones");
    client.get_status(GetStatusRequest {}).await.expect("answered");
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_made_here_opens_what_its_scope_says() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let nowhere = Target::Tcp("127.0.0.1:1".into());
    let made = cuzk(&nowhere, &["token", "new", "--name", "watch", "--scope", "read"]).await;
    assert_eq!(made.code, 0, "{}", made.err);
    let lines: Vec<_> = made.out.lines().collect();
    let (file, token) = (dir.path().join("tokens"), dir.path().join("token"));
    fs::write(&file, lines[1]).expect("writable");
    chmod(&file, 0o600);
    fs::write(&token, lines[3]).expect("writable");
    assert!(!lines[1].contains(lines[3]), "the file holds no token");

    let mut config = Config::default();
    config.daemon.listen = OneOrMany(vec![Endpoint::Tcp(([127, 0, 0, 1], 0).into())]);
    config.auth.tokens = Some(file);
    let (target, _guard, _running) = guarded(config);
    let token = token.display().to_string();
    let missing = cuzk(&target, &["status"]).await;
    assert_eq!((missing.code, missing.err.contains("--token-file")), (1, true), "{}", missing.err);
    let good = cuzk(&target, &["status", "--token-file", &token]).await;
    assert_eq!(good.code, 0, "{}", good.err);
    let denied = cuzk(&target, &["cancel", "j-1", "--token-file", &token]).await;
    assert_eq!((denied.code, denied.err.contains("lacks the scope \"submit\"")), (1, true), "{}", denied.err);
    let far = Target::Tcp("192.0.2.1:1".into());
    let leaked = cuzk(&far, &["status", "--token-file", &token]).await;
    assert_eq!((leaked.code, leaked.err.contains("in plain text")), (2, true), "{}", leaked.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn pings_without_a_call_are_no_offence() {
    let daemon = daemon();
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", daemon.target)).expect("an address");
    let every = Duration::from_millis(5);
    let channel = endpoint.http2_keep_alive_interval(every).keep_alive_while_idle(true).connect().await;
    let mut client = ProvingEngineClient::new(channel.expect("it listens"));
    client.get_status(GetStatusRequest {}).await.expect("answered");
    // Far more than the two or three after which some servers send GOAWAY (too_many_pings).
    tokio::time::sleep(every * 60).await;
    client.get_status(GetStatusRequest {}).await.expect("the same connection, still open");
    daemon.stop().await.expect("drained");
}

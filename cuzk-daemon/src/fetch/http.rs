//! Requests over HTTP: TLS with the operating system's roots of trust, proxies from the environment, limits on silence.

use std::{io::Read, time::Duration};

use http::{HeaderMap, HeaderName, header};
use ureq::{
    Agent, Proxy,
    tls::{RootCerts, TlsConfig},
};

use super::answer::{ContentRange, Fault, Head, Validator};

/// What sends requests.
#[derive(Clone, Debug)]
pub struct Http {
    https: Agent,
    /// `None` if nothing is asked for without encryption.
    http: Option<Agent>,
    silence: Duration,
}

/// An answer.
pub struct Reply {
    /// Its head.
    pub head: Head,
    /// Its body. Errors of it are told by [`Http::fault`].
    pub body: Box<dyn Read>,
}

/// How requests are sent.
#[derive(Clone, Copy, Debug)]
pub struct HttpOptions {
    /// Whether mirrors, and what they redirect to, may be without encryption.
    pub allow_http: bool,
    /// How long a mirror may bring nothing.
    pub silence: Duration,
}

/// A proxy in the environment that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("environment {variable}: it is no URL of a proxy, such as http://proxy.example:3128")]
pub struct ProxyError {
    variable: String,
}

impl Http {
    /// With the proxies that the environment names: `HTTPS_PROXY` for https, `HTTP_PROXY` for http, `ALL_PROXY` for both,
    /// none for hosts in `NO_PROXY`; also in lower case, which wins.
    pub fn new(options: HttpOptions, variable: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let https = agent(options, proxy("HTTPS_PROXY", &variable)?);
        let http = match options.allow_http {
            true => Some(agent(options, proxy("HTTP_PROXY", &variable)?)),
            false => None,
        };
        Ok(Self { https, http, silence: options.silence })
    }

    /// Asks for a file, from some byte on. With a validator, a mirror that has another version gives the whole of it.
    pub fn get(&self, url: &str, from: u64, validator: Option<&Validator>) -> Result<Reply, Fault> {
        let agent = match (url.starts_with("https://"), &self.http) {
            (true, _) => &self.https,
            (false, Some(http)) => http,
            (false, None) => return Err(Fault::lasting("is not encrypted (https), and --allow-http is not given")),
        };
        let mut request = agent.get(url).header(header::ACCEPT_ENCODING, "identity");
        if from > 0 {
            request = request.header(header::RANGE, format!("bytes={from}-"));
            if let Some(validator) = validator {
                request = request.header(header::IF_RANGE, validator.text());
            }
        }
        let (parts, body) = request.call().map_err(|error| self.fault(error))?.into_parts();
        let head = head(parts.status.as_u16(), &parts.headers);
        Ok(Reply { head, body: Box::new(body.into_reader()) })
    }

    /// What an error means. Whatever is not known to last may pass.
    pub fn fault(&self, error: impl Into<ureq::Error>) -> Fault {
        use ureq::{Error, Timeout};
        match error.into() {
            Error::Timeout(Timeout::PerRead) => Fault::passing(format!("sent nothing for {:?}", self.silence)),
            Error::Timeout(Timeout::Connect) => Fault::passing(format!("could not be reached within {CONNECT:?}")),
            Error::HostNotFound => Fault::passing("is a host whose address is not found"),
            Error::RequireHttpsOnly(to) => {
                Fault::lasting(format!("redirects to {to}, which is not encrypted, and --allow-http is not given"))
            }
            Error::TooManyRedirects => Fault::lasting(format!("redirects more than {REDIRECTS} times")),
            error @ (Error::RedirectFailed | Error::BadUri(_) | Error::Rustls(_) | Error::Tls(_)) => {
                Fault::lasting(format!("cannot be used: {error}"))
            }
            Error::Io(error) => Fault::passing(format!("broke off: {error}")),
            error => Fault::passing(format!("failed: {error}")),
        }
    }
}

fn agent(options: HttpOptions, proxy: Option<Proxy>) -> Agent {
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .proxy(proxy)
        .https_only(!options.allow_http)
        .http_status_as_error(false)
        .max_redirects(REDIRECTS)
        .timeout_connect(Some(CONNECT.min(options.silence)))
        .timeout_per_read(Some(options.silence))
        .timeout_per_write(Some(options.silence))
        .user_agent(concat!("cuzk-daemon/", env!("CARGO_PKG_VERSION")))
        .build();
    config.into()
}

/// The proxy that a variable, or else `ALL_PROXY`, names.
fn proxy(name: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<Option<Proxy>, ProxyError> {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let either = |name: &str| {
        let lower = name.to_ascii_lowercase();
        set(&lower).map(|value| (lower, value)).or_else(|| set(name).map(|value| (name.to_owned(), value)))
    };
    let Some((variable, value)) = either(name).or_else(|| either("ALL_PROXY")) else {
        return Ok(None);
    };
    let wrong = || ProxyError { variable: variable.clone() };
    let plain = Proxy::new(value.trim()).map_err(|_| wrong())?;
    let Some((_, except)) = either("NO_PROXY") else {
        return Ok(Some(plain));
    };
    let mut builder = Proxy::builder(plain.protocol()).host(plain.host()).port(plain.port());
    if let Some(user) = plain.username() {
        builder = builder.username(user);
    }
    if let Some(password) = plain.password() {
        builder = builder.password(password);
    }
    for host in except.split(',').map(str::trim).filter(|host| !host.is_empty()) {
        builder = builder.no_proxy(host);
    }
    builder.build().map(Some).map_err(|_| wrong())
}

fn head(status: u16, headers: &HeaderMap) -> Head {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    Head {
        status,
        content_type: text(header::CONTENT_TYPE).map(str::to_owned),
        length: text(header::CONTENT_LENGTH).and_then(|text| text.trim().parse().ok()),
        range: text(header::CONTENT_RANGE).and_then(ContentRange::parse),
        validator: Validator::of(text(header::ETAG), text(header::LAST_MODIFIED)),
        // The form with a date is as good as none: pauses have an end of their own.
        retry_after: text(header::RETRY_AFTER).and_then(|text| text.trim().parse().ok()).map(Duration::from_secs),
    }
}

/// Whether a proxy would be gone around for a URL.
#[cfg(test)]
fn goes_through(proxy: Option<&Proxy>, url: &str) -> bool {
    let uri: http::Uri = url.parse().expect("legal");
    proxy.is_some_and(|proxy| !proxy.is_no_proxy(&uri))
}

const CONNECT: Duration = Duration::from_secs(30);
const REDIRECTS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(scheme: &str, variables: &[(&str, &str)]) -> Result<Option<Proxy>, ProxyError> {
        let variable = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        proxy(scheme, &variable)
    }

    fn host(scheme: &str, variables: &[(&str, &str)]) -> Option<String> {
        choose(scheme, variables).expect("legal").map(|proxy| format!("{}:{}", proxy.host(), proxy.port()))
    }

    #[test]
    fn each_scheme_has_its_proxy() {
        let all = [("HTTPS_PROXY", "http://s:1"), ("http_proxy", "http://p:2"), ("ALL_PROXY", "socks5://a:3")];
        assert_eq!(host("HTTPS_PROXY", &all).as_deref(), Some("s:1"));
        assert_eq!(host("HTTP_PROXY", &all).as_deref(), Some("p:2"));
        assert_eq!(host("HTTPS_PROXY", &all[1..]).as_deref(), Some("a:3"));
        assert_eq!(host("HTTPS_PROXY", &[("HTTP_PROXY", "http://p:2")]), None);
        assert_eq!(host("HTTPS_PROXY", &[("HTTPS_PROXY", " ")]), None);
        let both = [("HTTPS_PROXY", "http://upper:1"), ("https_proxy", "http://lower:1")];
        assert_eq!(host("HTTPS_PROXY", &both).as_deref(), Some("lower:1"));
    }

    #[test]
    fn some_hosts_have_none() {
        let variables = [("HTTPS_PROXY", "http://u:p%40@s:1"), ("NO_PROXY", "localhost, .example.org")];
        let proxy = choose("HTTPS_PROXY", &variables).expect("legal");
        assert!(goes_through(proxy.as_ref(), "https://example.com/"));
        assert!(!goes_through(proxy.as_ref(), "https://localhost/"));
        assert!(!goes_through(proxy.as_ref(), "https://a.example.org/"));
        let proxy = proxy.expect("set");
        assert_eq!((proxy.username(), proxy.password()), (Some("u"), Some("p@")));
    }

    #[test]
    fn a_wrong_proxy_is_named_by_its_variable() {
        let error = choose("HTTPS_PROXY", &[("https_proxy", "ftp://h")]).unwrap_err();
        assert!(error.to_string().contains("environment https_proxy"), "{error}");
    }
}

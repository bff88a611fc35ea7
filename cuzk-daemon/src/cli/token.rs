//! The commands about tokens.

use clap::{Args, Subcommand};
use cuzk_server::access::Scopes;

/// The commands about tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token: print the line for the file of auth.tokens, and, this once, the token itself.
    New(TokenNewArgs),
}

/// Options of `token new`.
#[derive(Args, Debug)]
pub struct TokenNewArgs {
    /// What logs call its holder.
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub name: String,
    /// What it is good for: submit, read or admin, or several with commas between.
    #[arg(long, value_name = "SCOPES")]
    pub scope: Scopes,
}

fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err("a name is made of letters, digits and - _ . @".to_owned()),
    }
}

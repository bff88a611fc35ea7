//! `token new`: makes a token.

use cuzk_server::access::Token;
use rand::{RngCore as _, rngs::OsRng};

use crate::{
    cli::{TokenCommand, TokenNewArgs},
    exit::{Exit, Failure},
};

/// Bytes of a token that cannot be guessed.
const BYTES: usize = 32;

pub(super) fn token(command: &TokenCommand) -> Result<(), Failure> {
    let TokenCommand::New(TokenNewArgs { name, scope }) = command;
    let mut bytes = [0; BYTES];
    OsRng
        .try_fill_bytes(&mut bytes)
        .map_err(|e| Failure::new(Exit::Failure, format!("the system gives no random numbers: {e}")))?;
    let token = format!("cuzk_{}", hex::encode(bytes));
    println!("# Add this line to the file of auth.tokens (mode 0600):");
    println!("{}", Token::line(name, *scope, &token));
    println!("# The token, for the client's --token-file (mode 0600); it is kept nowhere and not shown again:");
    println!("{token}");
    Ok(())
}

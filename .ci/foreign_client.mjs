// Asks a running daemon for its status through Node's gRPC: `ADDRESS [AUTHORITY.pem]`, the token in TOKEN.
// Prints the name of the status code, so that the caller can tell what it expects.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [address, authority] = process.argv.slice(2);
const root = dirname(dirname(fileURLToPath(import.meta.url)));
// The libraries lie outside of the sources.
const require = createRequire(join(root, "target/foreign-client/node/package.json"));
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const definition = loader.loadSync("cuzk/v1/proving.proto", { includeDirs: [join(root, "proto")], keepCase: true });
const { ProvingEngine } = grpc.loadPackageDefinition(definition).cuzk.v1;
const credentials = authority ? grpc.credentials.createSsl(readFileSync(authority)) : grpc.credentials.createInsecure();
// Over a unix socket the path would go into the authority, which HTTP/2 forbids.
const client = new ProvingEngine(address, credentials, { "grpc.default_authority": "localhost" });

const metadata = new grpc.Metadata();
if (process.env.TOKEN) {
    metadata.set("authorization", `Bearer ${process.env.TOKEN}`);
}
client.GetStatus({}, metadata, { deadline: Date.now() + 20_000 }, (error, status) => {
    console.log(error ? grpc.status[error.code] : status.uptime_seconds === undefined ? "EMPTY" : "OK");
    client.close();
});

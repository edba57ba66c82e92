// The official TypeScript client: makes the calls that stand on standard input and tells what it saw.
// usage: node typescript.mjs URL TOKEN < calls.json

import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token] = process.argv.slice(2);
const calls = JSON.parse(readFileSync(0, "utf8"));

const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
const client = new Client({ name: "brain-tests", version: "1" });
await client.connect(transport);

const { tools } = await client.listTools();
const results = [];
for (const [name, args] of calls) {
  const { structuredContent, content, isError } = await client.callTool({ name, arguments: args });
  results.push({ structured: structuredContent, texts: content.map((block) => block.text), isError: isError ?? false });
}
process.stdout.write(
  JSON.stringify({ version: transport.protocolVersion, instructions: client.getInstructions(), tools, results }),
);
await client.close();

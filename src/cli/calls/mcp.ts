import { Command } from 'commander';
import { packageVersion } from '../../config/package-root.ts';
import { addSandboxAddressOptions, type SandboxClientFlags, withSandbox } from '../sandbox-options.ts';

const help = `
Speaks the Model Context Protocol on standard input and output, for programs
that use language models. Tools: search_contract, describe_operation,
call_operation, explain_request, list_requests, list_events, clock, snapshot,
explain_policy. Works with a sandbox only, never with another server.

Example, as clients are configured:
  { "mcpServers": { "custos":
      { "command": "node",
        "args": ["/path/to/custos/dist/custos.js", "mcp"] } } }`;

const instructions =
  'A local sandbox of a wallet API. Look for operations with search_contract and describe_operation, call them with ' +
  'call_operation, and find out why one was refused with explain_request. With --seed-data the wallet ' +
  '`ext_wal_acme-ethereum` has no owner, and `ext_wal_alice` needs `sign_as: ["alice"]`.';

/** Returns the command `custos mcp`, which offers the running sandbox as a set of tools. */
export function mcpCommand(): Command {
  return addSandboxAddressOptions(
    new Command('mcp').description('offer the running sandbox as tools of the Model Context Protocol'),
  )
    .addHelpText('after', help)
    .action((flags: SandboxClientFlags) =>
      withSandbox(flags, async (client) => {
        const [{ serveTools }, { sandboxTools }] = await Promise.all([
          import('../../tools/mcp/serve-tools.ts'),
          import('../../tools/mcp/tools.ts'),
        ]);
        await serveTools({
          input: process.stdin,
          output: process.stdout,
          tools: sandboxTools(client),
          version: packageVersion(),
          instructions,
          onError: ({ message }) => void process.stderr.write(`custos mcp: ${message}\n`),
        });
      }),
    );
}

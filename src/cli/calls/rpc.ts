import { Command } from 'commander';
import { addSandboxClientOptions, type SandboxClientFlags, withSandbox } from '../sandbox-options.ts';

const examples = `
A parameter that is not JSON is sent as a string.

Examples:
  $ custos rpc base eth_blockNumber
  $ custos rpc eip155:1 eth_getBalance \\
      0x742D35CC6634c0532925A3b844BC9E7595F0BEb0 latest
  $ custos rpc base eth_getLogs '{"fromBlock":"earliest"}'
  $ custos rpc solana getBalance \\
      51T5ZJJd816Xi3M3yf81j9AAXsRWJBNTmKystogP5jw9`;

interface RpcAnswer {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Returns the command `custos rpc`, which calls the JSON-RPC of a simulated EVM or Solana chain. */
export function rpcCommand(): Command {
  return addSandboxClientOptions(
    new Command('rpc')
      .description('call the JSON-RPC of a simulated EVM or Solana chain')
      .argument('<chain>', 'name, number or CAIP-2 id of the chain')
      .argument('<method>', 'such as eth_blockNumber or getBalance')
      .argument('[params...]', 'the parameters, in order'),
  )
    .addHelpText('after', examples)
    .action((chain: string, method: string, params: string[], flags: SandboxClientFlags) =>
      withSandbox(flags, async (client) => {
        const body = { jsonrpc: '2.0', id: 1, method, params: params.map(readParameter) };
        const { result, error } = await client.call<RpcAnswer>('POST', `/rpc/${encodeURIComponent(chain)}`, {
          body,
        });
        if (error === undefined) {
          const isText = typeof result === 'string' && flags.json !== true;
          console.log(isText ? result : JSON.stringify(result, undefined, flags.json === true ? 0 : 2));
          return;
        }
        const data = error.data === undefined ? '' : ` ${JSON.stringify(error.data)}`;
        console.error(`custos: ${error.message} (${error.code})${data}`);
        process.exitCode = 1;
      }),
    );
}

function readParameter(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

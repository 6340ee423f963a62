import { Command, Option } from 'commander';
import { readSandboxConfig, type SandboxFlags } from '../config/config.ts';
import { addListenOptions, type ListenDefaults } from './listen-options.ts';
import { collect } from './sandbox-options.ts';
import { removeStaleReadyFile } from './serve-until-stopped.ts';
import { announce } from './shell/announce.ts';

const examples = `
Examples:
  $ custos sandbox
  $ custos sandbox --port 0 --ready-file ready.json
        any free port, written to a file
  $ custos sandbox --data ./custos
        keeps all data across restarts
  $ custos sandbox --seed demo --seed-data
        the same ids, keys and times at every start
  $ custos sandbox --seed demo --clock now
        the same ids and keys, at the time of the machine
  $ custos sandbox --rpc eip155:31337=http://127.0.0.1:8545
        a local anvil node for this chain
  $ custos sandbox --prefix acme
        for clients that send acme-app-id

A seeded sandbox starts with its clock frozen at 2026-01-01T00:00:00Z. Clients
that verify tokens by the clock of their machine need --clock now.`;

/** `custos sandbox`: runs a complete local server without further dependencies. */
export function sandboxCommand(): Command {
  return addSandboxOptions(
    new Command('sandbox').description('run a complete local server for development and tests'),
  )
    .addHelpText('after', examples)
    .action(async (flags: SandboxFlags) => {
      const config = readSandboxConfig(flags);
      if (config.readyFile !== undefined) removeStaleReadyFile(config.readyFile);
      const [{ startSandbox }, { serveUntilStopped }] = await Promise.all([
        import('../compose/sandbox.ts'),
        import('./serve-until-stopped.ts'),
      ]);
      const sandbox = await startSandbox(config);
      const withdraw = announce(sandbox, config);
      try {
        await serveUntilStopped(sandbox, config);
      } finally {
        withdraw();
      }
    });
}

/** The options of commands that start a sandbox. */
export function addSandboxOptions(command: Command, defaults: ListenDefaults = {}): Command {
  return addListenOptions(command, defaults)
    .option('--app-id <id>', 'id of the app (default: a fixed id)')
    .option(
      '--app-secret <secret>',
      'secret of the app (default: the published one on loopback, else random)',
    )
    .addOption(
      new Option(
        '--control-token <token>',
        'opens the control plane and the inspector to other machines that send it (default: closed on loopback, else random)',
      ).env('CUSTOS_CONTROL_TOKEN'),
    )
    .option('--jwt-key <file>', "PEM of the key that signs your users' tokens, which are then accepted")
    .option(
      '--seed <text>',
      'derive ids, keys and secrets from this text, so that every run is the same; never for real money',
    )
    .option(
      '--clock <now|frozen|time>',
      'start with the time of the machine, or frozen, at the given time (default: with --seed frozen at 2026-01-01, else now)',
    )
    .option(
      '--load <name|file>',
      'start with a snapshot: one in the data folder, or a file; a reset returns to it',
    )
    .option('--seed-data', 'start with named users, wallets, a key quorum, a policy and a vault')
    .option(
      '--confirm-after <ms>',
      'confirm each transaction on simulated chains after this time, 0 immediately (default: with the next block)',
    )
    .option(
      '--prepared-keys <count>',
      'how many keys of new wallets to prepare while idle, 0 for none (default: 512)',
    )
    .option(
      '--rpc <caip2=url[,url]>',
      'use real nodes for this EVM or Solana chain instead of simulating it; repeatable',
      collect,
    )
    .option(
      '--swap-router <caip2=address>',
      'the Uniswap V2 router for swaps on a chain with real nodes; repeatable',
      collect,
    )
    .option(
      '--reward-distributor <caip2=address>',
      "Merkl's distributor of rewards on a chain with real nodes; repeatable",
      collect,
    )
    .option('--merkl-url <url>', 'the API that gives proofs for them (default: https://api.merkl.xyz)')
    .option('--audit <on|off>', 'write the audit log, as in production', 'on')
    .option('--record <on|off>', 'keep the latest requests for `custos logs` and /_sandbox/requests', 'on')
    .option('--no-hints', 'answer refusals as in production, without `data.hint`');
}

import { Command } from 'commander';
import { readSandboxConfig, type SandboxFlags } from '../config.ts';
import { addListenOptions, collect } from './listen-options.ts';

const examples = `
Examples:
  $ custos sandbox
  $ custos sandbox --port 0 --ready-file ready.json    any free port, told in a file
  $ custos sandbox --data ./custos                     keeps everything over restarts
  $ custos sandbox --seed demo --seed-data             the same ids, keys and times at every start
  $ custos sandbox --rpc eip155:31337=http://127.0.0.1:8545   an anvil of yours for this chain
  $ custos sandbox --prefix acme                       for clients that send acme-app-id

A seeded sandbox starts with its clock stopped at 2026-01-01T00:00:00Z; PUT /_sandbox/clock moves or starts it.`;

/** `custos sandbox`: a whole server on this machine with nothing else installed. */
export function sandboxCommand(): Command {
  return addListenOptions(
    new Command('sandbox').description('run a whole server on this machine, for development and tests'),
  )
    .option(
      '--seed <text>',
      'draw ids, keys and secrets from this text, so that every run is the same; never for real money',
    )
    .option('--seed-data', 'start with named users, wallets, a key quorum and a policy')
    .option(
      '--confirm-after <ms>',
      'have simulated chains confirm each transaction so long after it came, 0 at once (default: with their next block)',
    )
    .option(
      '--rpc <caip2=url[,url]>',
      'ask real nodes for this EVM or Solana chain, which is then not simulated; repeatable',
      collect,
    )
    .addHelpText('after', examples)
    .action(async (flags: SandboxFlags) => {
      const config = readSandboxConfig(flags);
      const [{ startSandbox }, { serveUntilStopped }] = await Promise.all([
        import('../compose/sandbox.ts'),
        import('./serve-until-stopped.ts'),
      ]);
      await serveUntilStopped(await startSandbox(config), config);
    });
}

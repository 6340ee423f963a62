import { Command } from 'commander';
import { readSandboxConfig, type SandboxFlags } from '../config/config.ts';
import { removeStaleReadyFile } from './serve-until-stopped.ts';
import { addSettingOptions } from './setting-options.ts';
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
  const command = new Command('sandbox').description('run a complete local server for development and tests');
  return addSettingOptions(command, 'sandbox')
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

import { Command } from 'commander';
import { readSandboxConfig, type SandboxFlags } from '../config/config.ts';
import { removeStaleReadyFile } from './serve-until-stopped.ts';
import { addSettingOptions, configFileOf, givenFlags } from './setting-options.ts';
import { announce } from './shell/announce.ts';
import { watchFile } from './watch-config.ts';

const examples = `
Examples:
  $ custos sandbox
  $ custos sandbox --port 0 --ready-file ready.json
        any free port, written to a file
  $ custos sandbox --data ./custos
        keeps all data across restarts
  $ custos sandbox --seed demo --seed-data
        the same ids and keys at every start
  $ custos sandbox --seed demo --clock frozen
        the same times as well: every run is the same to the byte
  $ custos sandbox --rpc eip155:31337=http://127.0.0.1:8545
        a local anvil node for this chain
  $ custos sandbox --config shop.json
        settings, users, wallets and faults of a file, applied again when it
        changes; without the option, of custos.config.json in this folder
  $ custos sandbox --prefix acme
        for clients that send acme-app-id

A frozen clock starts at 2026-01-01T00:00:00Z with --seed, and moves by a
millisecond with each request that may change something. Access tokens then
look expired to clients that verify them by the clock of their machine.`;

/** Returns the command `custos sandbox`, which runs a complete local server without further dependencies. */
export function sandboxCommand(): Command {
  const command = new Command('sandbox').description('run a complete local server for development and tests');
  return addSettingOptions(command, 'sandbox')
    .addHelpText('after', examples)
    .action(async (flags: SandboxFlags, command: Command) => {
      const given = givenFlags(flags, command);
      const config = readSandboxConfig(given, 'sandbox', configFileOf(given));
      if (config.readyFile !== undefined) removeStaleReadyFile(config.readyFile);
      const [{ startSandbox }, { serveUntilStopped }] = await Promise.all([
        import('../compose/sandbox.ts'),
        import('./serve-until-stopped.ts'),
      ]);
      const sandbox = await startSandbox(config);
      const withdraw = announce(sandbox, config);
      const stopWatching = watchFile(config, given, sandbox);
      try {
        await serveUntilStopped(sandbox, config);
      } finally {
        stopWatching();
        withdraw();
      }
    });
}

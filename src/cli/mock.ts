import { Command } from 'commander';
import { readSandboxConfig, type SandboxFlags } from '../config/config.ts';
import { removeStaleReadyFile } from './serve-until-stopped.ts';
import { addSettingOptions } from './setting-options.ts';

const examples = `
Examples:
  $ custos mock
  $ curl ... -H 'Prefer: code=404'                     another documented status
  $ curl ... -H 'Prefer: example=personal_sign'
        a named example of the document

Validates every request, stores no state and accepts any credentials.`;

/** Returns the command `custos mock`, which responds with the examples of the OpenAPI document. */
export function mockCommand(): Command {
  const command = new Command('mock').description(
    'respond to every operation with the examples of the OpenAPI document',
  );
  return addSettingOptions(command, 'mock')
    .addHelpText('after', examples)
    .action(async (flags: SandboxFlags) => {
      const config = readSandboxConfig(flags, 'mock');
      if (config.readyFile !== undefined) removeStaleReadyFile(config.readyFile);
      const [{ startMock }, { serveUntilStopped }] = await Promise.all([
        import('../compose/mock.ts'),
        import('./serve-until-stopped.ts'),
      ]);
      await serveUntilStopped(await startMock(config), config);
    });
}

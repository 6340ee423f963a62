import { Command } from 'commander';
import { readSandboxConfig, type SandboxFlags } from '../config.ts';
import { addListenOptions } from './listen-options.ts';

const examples = `
Examples:
  $ custos mock
  $ curl ... -H 'Prefer: code=404'                     another documented status
  $ curl ... -H 'Prefer: example=personal_sign'        a named example of the document

Every request is validated; no state is kept, and any credentials are taken. --data only keeps the certificate.`;

/** `custos mock`: answers straight from the document's examples. */
export function mockCommand(): Command {
  return addListenOptions(
    new Command('mock').description("answer every operation with the document's examples, without state"),
  )
    .addHelpText('after', examples)
    .action(async (flags: SandboxFlags) => {
      const config = readSandboxConfig(flags);
      const [{ startMock }, { serveUntilStopped }] = await Promise.all([
        import('../compose/mock.ts'),
        import('./serve-until-stopped.ts'),
      ]);
      await serveUntilStopped(await startMock(config), config);
    });
}
